#include "core/pending_record.h"

#include <cstring>

#include "core/digest.h"
#include "core/utf8.h"
#include "libtrace/log_format.h"

namespace libtrace::detail {
namespace {

constexpr size_t kMaxIdDigits = 10;
constexpr size_t kKeptBufferSize = size_t{4} << 20;

// After the envelope's members: `, "has_payload": "<hash>"}` and the LF.
constexpr size_t kTailSize = sizeof(R"(, "has_payload": ""}
)") - 1 + format::kPayloadHashSize;

// As format::AppendPayloadLines, into memory that is there already: resize() would clear it first.
char* PutPayloadLines(std::string_view payload, char* out) {
  for (;;) {
    const size_t size = std::min(payload.find('\n'), payload.size());
    *out++ = format::kPayloadIndent;
    std::memcpy(out, payload.data(), size);
    out += size;
    *out++ = '\n';
    if (size == payload.size()) return out;
    payload.remove_prefix(size + 1);
  }
}

size_t CountLines(std::string_view payload) {
  size_t count = 1;
  for (const char c : payload) count += c == '\n';
  return count;
}

}  // namespace

void FramedRecord::Frame(const PendingRecord& record, bool& was_repaired) {
  payload_offset_ = record.header.size() + record.interned_names.size() * kMaxIdDigits + kTailSize;
  hash_.clear();
  was_repaired = false;
  std::string repaired;
  std::string_view payload;
  size_t framed_size = 0;
  if (record.payload.is_set()) {
    payload = record.payload.view();
    if (const size_t broken = FindBrokenUtf8(payload); broken != std::string_view::npos) {
      repaired = RepairUtf8(payload, broken);
      payload = repaired;
      was_repaired = true;
    }
    hash_ = Md5Hex(payload);
    framed_size = payload.size() + CountLines(payload) + 1;
  }
  const size_t size = payload_offset_ + framed_size;
  if (buffer_.size() < size) {
    buffer_.clear();  // nothing to copy
    buffer_.resize(size);
  }
  if (record.payload.is_set()) {
    char* const end = PutPayloadLines(payload, buffer_.data() + payload_offset_);
    framed_size = static_cast<size_t>(end - buffer_.data()) - payload_offset_;
  }
  buffer_size_ = payload_offset_ + framed_size;
}

std::string_view FramedRecord::Finish(std::string_view header) {
  std::string tail;
  if (!hash_.empty()) {
    tail.append(", \"").append(format::kHasPayload).append("\": \"").append(hash_).append("\"");
  }
  tail += "}\n";
  const size_t start = payload_offset_ - header.size() - tail.size();
  std::memcpy(buffer_.data() + start, header.data(), header.size());
  std::memcpy(buffer_.data() + start + header.size(), tail.data(), tail.size());
  return {buffer_.data() + start, buffer_size_ - start};
}

void FramedRecord::Shrink() {
  if (buffer_.capacity() <= kKeptBufferSize) return;
  std::string().swap(buffer_);
}

}  // namespace libtrace::detail

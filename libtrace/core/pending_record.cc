#include "core/pending_record.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/digest.h"
#include "core/utf8.h"
#include "libtrace/log_format.h"

namespace libtrace::detail {
namespace {

constexpr size_t kMaxIdDigits = 10;
constexpr size_t kKeptBufferSize = size_t{4} << 20;
constexpr size_t kBlockSize = 16;
constexpr size_t kSmallestPayloadInParts = size_t{8} << 20;
constexpr size_t kPartSize = size_t{1} << 20;  // of payload; its lines have a tab each

// After the envelope's members: `, "has_payload": "<hash>"}` and the LF.
constexpr size_t kTailSize = sizeof(R"(, "has_payload": ""}
)") - 1 + format::kPayloadHashSize;

// Copies from `from` up to and with the first LF, or to `end`; returns where it stopped. Blocks are
// written whole, so `to` must have room for one more than there is to copy.
const char* CopyLine(const char* from, const char* end, char*& to, bool& has_high_bit) {
#ifdef __SSE2__
  // Lines are short: a call of memchr and one of memcpy for each cost more than MD5 leaves.
  const __m128i line_feed = _mm_set1_epi8('\n');
  while (static_cast<size_t>(end - from) >= kBlockSize) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), block);
    has_high_bit |= _mm_movemask_epi8(block) != 0;
    const auto found = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(block, line_feed)));
    if (found != 0) {
      const int size = std::countr_zero(found) + 1;
      to += size;
      return from + size;
    }
    from += kBlockSize;
    to += kBlockSize;
  }
#endif
  while (from < end) {
    const char c = *from++;
    has_high_bit |= static_cast<unsigned char>(c) >= 0x80;
    *to++ = c;
    if (c == '\n') break;
  }
  return from;
}

}  // namespace

void FramedRecord::Grow(size_t capacity) {
  if (capacity <= capacity_) return;
  auto larger = std::make_unique_for_overwrite<char[]>(capacity);
  if (end_ > payload_offset_) {
    std::memcpy(larger.get() + payload_offset_, buffer_.get() + payload_offset_,
                end_ - payload_offset_);
  }
  buffer_ = std::move(larger);
  capacity_ = capacity;
}

// As format::AppendPayloadLines. False if `payload` is not ASCII.
bool FramedRecord::AppendPayloadLines(std::string_view payload) {
  const char* from = payload.data();
  const char* const end = from + payload.size();
  bool has_high_bit = false;
  size_t spare = 0;  // tabs that the buffer still has room for
  bool is_guess = true;
  for (bool is_last = false; !is_last;) {
    if (spare == 0) {
      const auto left = static_cast<size_t>(end - from);
      // A guess at the number of lines; if it was wrong they may all be empty.
      spare = is_guess ? left / kBlockSize + 64 : left + 1;
      is_guess = false;
      Grow(end_ + left + spare + 2 + kBlockSize);
    }
    --spare;
    buffer_[end_++] = format::kPayloadIndent;
    char* to = buffer_.get() + end_;
    const char* const next = CopyLine(from, end, to, has_high_bit);
    is_last = next == end && (next == from || next[-1] != '\n');
    end_ = static_cast<size_t>(to - buffer_.get());
    from = next;
  }
  buffer_[end_++] = '\n';
  return !has_high_bit;
}

// False if the payload must be laid out as a whole.
bool FramedRecord::LeaveForParts(std::string_view payload) {
  if (payload.size() < kSmallestPayloadInParts || FindBrokenUtf8(payload) != std::string_view::npos)
    return false;
  Grow(std::max(end_, 2 * kPartSize + kBlockSize + 2));  // a line may be empty
  const auto line_count = static_cast<size_t>(std::count(payload.begin(), payload.end(), '\n')) + 1;
  unframed_ = payload;
  unframed_size_ = payload.size() + line_count + 1;
  is_line_start_ = true;
  return true;
}

std::string_view FramedRecord::NextPart() {
  const char* from = unframed_.data();
  const char* const end = from + std::min(unframed_.size(), kPartSize);
  char* to = buffer_.get();
  bool has_high_bit = false;
  while (from < end) {
    if (is_line_start_) *to++ = format::kPayloadIndent;
    from = CopyLine(from, end, to, has_high_bit);
    is_line_start_ = from[-1] == '\n';
  }
  unframed_.remove_prefix(std::min(unframed_.size(), kPartSize));
  if (unframed_.empty()) {
    if (is_line_start_) *to++ = format::kPayloadIndent;
    *to++ = '\n';
  }
  return {buffer_.get(), static_cast<size_t>(to - buffer_.get())};
}

void FramedRecord::Frame(const PendingRecord& record, bool takes_parts, bool& was_repaired) {
  PutPrefixTime(record.time_us, time_);
  payload_offset_ = kPrefixTimeSize + record.header.size() +
                    record.interned_names.size() * kMaxIdDigits + kTailSize;
  end_ = payload_offset_;
  hash_.clear();
  unframed_ = {};
  unframed_size_ = 0;
  was_repaired = false;
  if (!record.payload.is_set()) {
    Grow(end_);
    return;
  }
  std::string repaired;
  std::string_view payload = record.payload.view();
  if (takes_parts && LeaveForParts(payload)) {
    hash_ = Md5Hex(payload);
    return;
  }
  if (!AppendPayloadLines(payload)) {
    if (const size_t broken = FindBrokenUtf8(payload); broken != std::string_view::npos) {
      repaired = RepairUtf8(payload, broken);
      payload = repaired;
      was_repaired = true;
      end_ = payload_offset_;
      AppendPayloadLines(payload);
    }
  }
  hash_ = Md5Hex(payload);
}

std::string_view FramedRecord::Finish(std::string_view header) {
  char tail[kTailSize + 1];
  char* at = tail;
  const auto put = [&at](std::string_view text) { at = std::copy(text.begin(), text.end(), at); };
  if (!hash_.empty()) {
    put(", \"");
    put(format::kHasPayload);
    put("\": \"");
    put(hash_);
    put("\"");
  }
  put("}\n");
  const auto tail_size = static_cast<size_t>(at - tail);
  const size_t start = payload_offset_ - tail_size - header.size() - kPrefixTimeSize;
  char* const to = buffer_.get() + start;
  std::memcpy(to, time_, kPrefixTimeSize);
  std::memcpy(to + kPrefixTimeSize, header.data(), header.size());
  std::memcpy(to + kPrefixTimeSize + header.size(), tail, tail_size);
  return {buffer_.get() + start, end_ - start};
}

void FramedRecord::Shrink() {
  if (capacity_ <= kKeptBufferSize) return;
  buffer_.reset();
  capacity_ = 0;
}

}  // namespace libtrace::detail

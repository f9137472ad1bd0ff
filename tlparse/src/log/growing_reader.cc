// RecordReader on a file that may still grow.
#include <optional>
#include <string_view>

#include "base/md5.h"
#include "log/glog_prefix.h"
#include "log/line_index.h"
#include "log/payload_text.h"
#include "log/record_reader.h"
#include "log/window_cut.h"

namespace tlparse {

namespace {

// Whether the record is complete: nothing that is appended later can belong to it.
bool IsWhole(std::string_view stanza, EnvelopeParser& parser) {
  if (!stanza.ends_with('\n')) return false;
  const std::optional<GlogPrefix> prefix = ParseGlogPrefix(FirstLine(stanza));
  if (!prefix || prefix->rank) return false;
  const Envelope* envelope = parser.Parse(prefix->json);
  if (envelope == nullptr) return false;
  std::string_view raw = stanza.substr(stanza.find('\n') + 1);
  if (raw.empty()) return !envelope->names_payload;
  if (!envelope->payload_hash) return false;
  raw.remove_suffix(1);
  ByteBuffer text;
  text.Reserve(raw.size() + kRemoveTabsSlack);
  const std::size_t size = RemoveTabs(raw, false, text.data());
  return Md5({text.data(), size}) == *envelope->payload_hash;
}

}  // namespace

bool RecordReader::FillWhole(Window& window, EnvelopeParser* whole) {
  window.Clear();
  if (is_done_) return false;
  window.file_offset = window_offset_;
  window.end = ReadRecords(window, {true, whole});
  NoteOdd(window);
  if (window.end == 0 && !is_at_end_) {
    ByteBuffer held;
    held.Append(window.bytes.view());
    carry_ = std::move(held);
    window.Clear();
    return false;
  }
  took_last_ = window.end == window.bytes.size() && !is_at_end_;
  Take(window);
  if (carry_.size() == 0) carry_.Release();  // there may be a thousand readers
  return true;
}

void RecordReader::NoteOdd(const Window& window) {
  is_odd_ |= took_last_ && window.bytes.view().starts_with('\t');
  if (window.bytes.size() > 0) took_last_ = false;
}

// Where the current bytes can be cut. Foreign lines are read with the record after them, so that
// contiguous ones are one problem.
std::size_t RecordReader::CutOfGrowing(const Window& window, EnvelopeParser* whole) const {
  const std::string_view bytes = window.bytes.view();
  const auto [cut, is_at_last] = FindCut(bytes);
  if (whole != nullptr && is_at_last && IsWhole(bytes.substr(cut), *whole)) return bytes.size();
  const bool is_at_header = cut > 0 && ParseGlogPrefix(FirstLine(bytes.substr(cut))).has_value();
  return is_at_header || bytes.size() >= window_bytes_ ? cut : 0;
}

}  // namespace tlparse

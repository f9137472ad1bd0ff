// A record between its emission and the sink.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "libtrace/trace.h"

namespace libtrace::detail {

using InternedName = MetadataWriter::InternedName;

// What is known when the record is emitted. The time's text, interned ids, payload hash and payload
// lines are added when it is written: ids belong to a file, and the rest can be done by the thread
// that writes.
struct PendingRecord {
  std::string_view name;  // record key or artifact name, for the loss ledger
  std::string header;     // prefix after its time, envelope up to has_payload or the last brace
  std::vector<InternedName> interned_names;  // by ascending offset into `header`
  int64_t time_us = 0;
  Payload payload;
};

// Bytes of a record, with free space before them for a header that grows by its interned ids.
class FramedRecord {
 public:
  // Spells the time, hashes the payload and lays its lines out; broken UTF-8 is replaced. May throw
  // std::bad_alloc. With `takes_parts` a large payload is left where it is, unless it is broken, and
  // must live until its last part.
  void Frame(const PendingRecord& record, bool takes_parts, bool& was_repaired);
  // Estimate of the whole record, before Finish.
  size_t size_bytes() const { return end_ + unframed_size_; }
  // Puts time and `header` (with its ids) before the payload; valid until the next call.
  std::string_view Finish(std::string_view header);
  // Whether payload lines are still to be had from NextPart, after what Finish returned.
  bool has_parts() const { return !unframed_.empty(); }
  // The next payload lines, about 1 MiB; valid until the next call.
  std::string_view NextPart();
  // Gives the buffer back to the system if it has grown beyond what is worth keeping.
  void Shrink();

 private:
  bool AppendPayloadLines(std::string_view payload);
  bool LeaveForParts(std::string_view payload);
  void Grow(size_t capacity);

  std::unique_ptr<char[]> buffer_;  // not a string: that would clear it before it is filled
  size_t capacity_ = 0;
  size_t payload_offset_ = 0;
  size_t end_ = 0;  // used part of buffer_
  char time_[kPrefixTimeSize]{};
  std::string hash_;           // "" = no payload
  std::string_view unframed_;  // rest of a payload that goes out in parts
  size_t unframed_size_ = 0;   // of its lines
  bool is_line_start_ = false;
};

}  // namespace libtrace::detail

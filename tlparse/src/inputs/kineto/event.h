// The members of a Kineto/Chrome trace event that become columns.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

// Views live until the next event is parsed. Empty text and nullopt: not in the event.
struct KinetoEvent {
  char phase = '\0';  // ph: X slice, i instant, s and f flow, M metadata
  std::string_view category;
  std::string_view name;
  std::string_view pid;  // numbers as digits, text without quotes
  std::string_view tid;
  std::optional<std::int64_t> start_ns;  // of the file's clock
  std::optional<std::int64_t> duration_ns;
  bool has_duration = false;  // with duration_ns empty: it is no time

  // args
  std::optional<std::int64_t> external_id;
  std::optional<std::int64_t> correlation;
  std::optional<std::int64_t> sequence_number;
  std::optional<std::int64_t> device;
  std::optional<std::int64_t> stream;
  std::optional<std::int64_t> size_bytes;
  std::string_view grid;    // JSON on one line
  std::string_view block;   // JSON on one line
  std::string_view shapes;  // "Input Dims", JSON on one line
  std::string_view types;   // "Input type", raw JSON
  std::string_view values;  // "Concrete Inputs", raw JSON
  std::string_view kernel_file;
  std::string_view called_from;    // CallFrom: file:line
  std::string_view metadata_name;  // "name" of a metadata event
  std::string_view collective;     // "Collective name"
  std::string_view group_name;
  std::string_view task_type;  // "Task Type", of an NPU
  std::string_view dtype;
  std::optional<std::int64_t> group_size;
  std::optional<std::int64_t> sequence_in_group;  // "Seq"
  std::optional<std::int64_t> peer_rank;          // "Src Rank", "Dst Rank": of the job
  std::optional<std::int64_t> in_elements;
  std::optional<std::int64_t> out_elements;
  // Of [memory] events.
  std::optional<std::int64_t> address;
  std::optional<std::int64_t> change_bytes;  // "Bytes": negative where memory is freed
  std::optional<std::int64_t> device_type;   // c10::DeviceType
  std::optional<std::int64_t> device_id;     // -1: CPU
  std::optional<std::int64_t> allocated_bytes;
  std::optional<std::int64_t> reserved_bytes;
};

// Nanoseconds of a decimal number of microseconds, exact: "4517761456977.238" becomes
// 4517761456977238. Nothing if it is not a number or exceeds 64 bits.
std::optional<std::int64_t> ParseMicroseconds(std::string_view text);

class KinetoEventParser {
 public:
  // `text`: the event's JSON, followed by simdjson's padding. kBadJson if it is not an object, or
  // damaged before its end.
  Result<void> Parse(std::string_view text, KinetoEvent& event);

 private:
  simdjson::ondemand::parser parser_;
  std::string repaired_, grid_, block_, shapes_;
};

}  // namespace tlparse

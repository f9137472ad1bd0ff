// A fast scan of a chromium event: most of a log's records are events, and a full JSON parse of
// each (above all of its numbers) costs more than everything else that is done with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tlparse {

// Views into the scanned text.
struct ScannedEvent {
  std::string_view name;
  double ts_us = 0;
  char phase = 0;
  std::int64_t thread = 0;         // tid; 0: none, or not an integer
  std::string_view compile_label;  // args.compile_id; empty: none
};

// Scans `text`, the payload of a chromium_event. Nothing unless it is one strict JSON object with
// name, ts and ph, without repeated members among those and without escapes in its strings; the
// caller then parses it as JSON. The text must be valid UTF-8.
std::optional<ScannedEvent> ScanEvent(std::string_view text);

}  // namespace tlparse

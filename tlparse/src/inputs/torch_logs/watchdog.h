// Lines of the watchdog of ProcessGroupNCCL, as PyTorch 2.1 to 2.15 prints them to standard error.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tlparse {

enum class WatchdogEvent : std::uint8_t { kTimeout, kStatus, kDumpSignal };
// "timeout", "status", "dump_signal": nccl_watchdog.event.
std::string_view Name(WatchdogEvent event);

// A member that the line does not have is empty or nothing.
struct WatchdogLine {
  WatchdogEvent event = WatchdogEvent::kTimeout;
  std::optional<std::int64_t> rank;
  std::string_view group_name, group_description;
  std::optional<std::int64_t> sequence_number;
  std::string_view op;
  std::optional<std::int64_t> numel_in, numel_out, timeout_ms, ran_ms;
  std::optional<std::int64_t> last_enqueued, last_completed;
  std::string_view text;
};

// Nothing: it is no such line, or one that repeats another ("terminated with exception: …").
std::optional<WatchdogLine> ParseWatchdogLine(std::string_view text);

}  // namespace tlparse

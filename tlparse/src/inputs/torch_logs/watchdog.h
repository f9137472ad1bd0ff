// Lines of the watchdog of ProcessGroupNCCL, as PyTorch 2.1 to 2.15 prints them to standard error.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tlparse {

enum class WatchdogEvent : std::uint8_t { kTimeout, kStatus, kDumpSignal, kNoProgress };
// "timeout", "status", "dump_signal", "no_progress": nccl_watchdog.event.
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
  std::optional<std::int64_t> signal_rank;  // of a dump signal: whose watchdog gave it
  std::string_view text;
  bool is_whole = true;  // false: its end is missing
};

// Nothing: it is no such line.
std::optional<WatchdogLine> ParseWatchdogLine(std::string_view text);

// Whether the text begins such a line, whose end may be in the next one.
bool BeginsWatchdogLine(std::string_view text);

// The lines of one file, in order. A terminal or a logger may have broken one into several.
class WatchdogText {
 public:
  // Of the event that begins in this line of the file. Its views are valid during the call.
  using Take = std::function<void(std::int64_t number, const WatchdogLine& line)>;
  // Whether the line is one of the watchdog or begins or ends one.
  bool Add(std::string_view text, std::int64_t number, const Take& take);
  // After the last line: one whose end is missing.
  void End(const Take& take);

 private:
  std::string begun_;  // of a line whose end is missing; empty: none
  std::int64_t begun_number_ = 0;
  int pieces_ = 0;
};

}  // namespace tlparse

#include "inputs/torch_logs/watchdog.h"

#include <charconv>

namespace tlparse {
namespace {

// What follows `key`, up to one of `ends`; empty: the text has no such key.
std::string_view ValueAfter(std::string_view text, std::string_view key, std::string_view ends) {
  const std::size_t at = text.find(key);
  if (at == text.npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find_first_of(ends));
}

std::optional<std::int64_t> NumberAfter(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

// "[PG ID 1 PG GUID 3(mesh_dp) Rank 0]", "[PG 0 Rank 2]", "[Rank 2]": the last such bracket before
// `end`. The GUID is the same on all ranks of a group, the ID counts the groups of one process. The rank
// is one within the group.
void ReadGroup(std::string_view text, WatchdogLine& line) {
  const std::size_t close = text.rfind(']');
  const std::size_t open = close == text.npos ? close : text.rfind('[', close);
  if (open == text.npos) return;
  const std::string_view group = text.substr(open + 1, close - open - 1);
  for (const std::string_view key : {"PG GUID ", "PG ID ", "PG "}) {
    if (line.group_name.empty()) line.group_name = ValueAfter(group, key, " (");
  }
  line.group_description = ValueAfter(group, "(", ")");
  const bool is_of_all = line.group_name.empty() || line.group_name == "0";
  if (!line.rank && is_of_all) line.rank = NumberAfter(group, "Rank ");
}

constexpr std::string_view kTimeoutText = "Watchdog caught collective operation timeout: ";
constexpr std::string_view kSignalText = "Received a dump signal due to a collective timeout";

}  // namespace

std::string_view Name(WatchdogEvent event) {
  switch (event) {
    case WatchdogEvent::kTimeout:
      return "timeout";
    case WatchdogEvent::kStatus:
      return "status";
    case WatchdogEvent::kDumpSignal:
      return "dump_signal";
  }
  return {};
}

std::optional<WatchdogLine> ParseWatchdogLine(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  if (!has("atchdog") && !has("NCCL work: ")) return std::nullopt;
  if (has("terminated with exception")) return std::nullopt;
  WatchdogLine line;
  line.rank = NumberAfter(text, "[rank");
  std::size_t begin = text.find(kTimeoutText);
  if (begin != text.npos) {
    line.sequence_number = NumberAfter(text, "SeqNum=");
    line.op = ValueAfter(text, "OpType=", ",)");
    line.numel_in = NumberAfter(text, "NumelIn=");
    line.numel_out = NumberAfter(text, "NumelOut=");
    line.timeout_ms = NumberAfter(text, "Timeout(ms)=");
    line.ran_ms = NumberAfter(text, "ran for ");
    if (!line.sequence_number) return std::nullopt;
  } else {
    const bool is_new = has("last enqueued work: ");
    line.last_enqueued = is_new ? NumberAfter(text, "last enqueued work: ")
                         : has("last enqueued NCCL work: ")
                             ? NumberAfter(text, "last enqueued NCCL work: ")
                             : NumberAfter(text, "Last enqueued NCCL work: ");
    line.last_completed =
        NumberAfter(text, is_new ? "last completed work: " : "last completed NCCL work: ");
    if (!line.last_enqueued) return std::nullopt;
    begin = text.find(kSignalText);
    if (begin != text.npos) {
      line.event = WatchdogEvent::kDumpSignal;
    } else {
      line.event = WatchdogEvent::kStatus;
      for (const std::string_view key : {"at work sequence id: ", "at NCCL work: ", "at work: "}) {
        if (!line.sequence_number) line.sequence_number = NumberAfter(text, key);
      }
      begin = text.rfind("] ");
      if (begin == text.npos) return std::nullopt;
      begin += 2;
    }
    // An old version prints what was never set.
    constexpr std::int64_t kUnset = std::int64_t{1} << 40;
    if (line.last_completed && *line.last_completed > kUnset) line.last_completed.reset();
  }
  ReadGroup(text.substr(0, begin), line);
  while (begin < text.size() && text[begin] == ' ') ++begin;
  line.text = text.substr(begin);
  return line;
}

}  // namespace tlparse

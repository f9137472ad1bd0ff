#include "inputs/torch_logs/watchdog.h"

#include "inputs/torch_logs/number_after.h"

namespace tlparse {
namespace {

// What follows `key`, up to one of `ends`; empty: the text has no such key, or ends before.
std::string_view ValueAfter(std::string_view text, std::string_view key, std::string_view ends) {
  const std::size_t at = text.find(key);
  if (at == text.npos) return {};
  text.remove_prefix(at + key.size());
  const std::size_t end = text.find_first_of(ends);
  return end == text.npos ? std::string_view() : text.substr(0, end);
}

// "[PG ID 1 PG GUID 3(mesh_dp) Rank 0]", "[PG 0 Rank 2]", "[Rank 2]": the last such bracket before
// `end`. The GUID is the same on all ranks of a group, the ID counts the groups of one process. The rank
// is one within the group.
void ReadGroup(std::string_view text, WatchdogLine& line) {
  const std::size_t close = text.rfind(']');
  const std::size_t open = close == text.npos ? close : text.rfind('[', close);
  if (open == text.npos) return;
  const std::string_view group = text.substr(open + 1, close - open);
  for (const std::string_view key : {"PG GUID ", "PG ID ", "PG "}) {
    if (line.group_name.empty()) line.group_name = ValueAfter(group, key, " (]");
  }
  line.group_description = ValueAfter(group, "(", ")");
  const bool is_of_all = line.group_name.empty() || line.group_name == "0";
  if (!line.rank && is_of_all) line.rank = NumberAfter(group, "Rank ");
}

constexpr std::string_view kTimeoutText = "Watchdog caught collective operation timeout: ";
constexpr std::string_view kSignalText = "Received a dump signal due to a collective timeout";
constexpr std::string_view kTerminatedText = "Process group watchdog thread terminated";
constexpr std::string_view kNoProgressText = "ProcessGroupNCCL's watchdog got stuck for ";
constexpr std::string_view kHeartbeatText = "Heartbeat monitor timed out!";  // the same before 2.5

// "…: WorkNCCL(SeqNum=167, OpType=ALLREDUCE, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600027 milliseconds before timing out."
void ReadTimeout(std::string_view text, WatchdogLine& line) {
  line.sequence_number = NumberAfter(text, "SeqNum=");
  line.op = ValueAfter(text, "OpType=", ",)");
  line.numel_in = NumberAfter(text, "NumelIn=");
  line.numel_out = NumberAfter(text, "NumelOut=");
  line.timeout_ms = NumberAfter(text, "Timeout(ms)=");
  line.ran_ms = NumberAfter(text, "ran for ");
  line.is_whole = line.ran_ms.has_value();
}

// How far a rank had come; of a status line also the collective that timed out.
void ReadStatus(std::string_view text, WatchdogLine& line) {
  constexpr std::string_view kNew = "last enqueued work: ";
  if (text.find(kNew) != text.npos) {
    line.last_enqueued = NumberAfter(text, kNew);
    line.last_completed = NumberAfter(text, "last completed work: ", true);
  } else {
    line.last_enqueued = NumberAfter(text, "ast enqueued NCCL work: ");  // also "Last …"
    line.last_completed = NumberAfter(text, "last completed NCCL work: ");
  }
  line.is_whole = line.last_completed.has_value();
  // An old version prints what was never set.
  constexpr std::int64_t kUnset = std::int64_t{1} << 40;
  if (line.last_completed && *line.last_completed > kUnset) line.last_completed.reset();
  for (const std::string_view key : {"at work sequence id: ", "at NCCL work: ", "at work: "})
    if (!line.sequence_number) line.sequence_number = NumberAfter(text, key);
}

}  // namespace

std::string_view Name(WatchdogEvent event) {
  switch (event) {
    case WatchdogEvent::kTimeout:
      return "timeout";
    case WatchdogEvent::kStatus:
      return "status";
    case WatchdogEvent::kDumpSignal:
      return "dump_signal";
    case WatchdogEvent::kNoProgress:
      return "no_progress";
  }
  return {};
}

std::optional<WatchdogLine> ParseWatchdogLine(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  if (!has("atchdog") && !has("NCCL work: ") && !has(kHeartbeatText)) return std::nullopt;
  WatchdogLine line;
  line.rank = NumberAfter(text, "[rank");
  // The thread's last words repeat the message, behind the group that the message may lack.
  const std::size_t terminated = text.find(kTerminatedText);
  std::size_t begin = text.find(kTimeoutText);
  if (begin != text.npos) {
    ReadTimeout(text, line);
    if (!line.sequence_number) return std::nullopt;
  } else if (terminated != text.npos) {
    return std::nullopt;
  } else if ((begin = text.find(kNoProgressText)) != text.npos ||
             (begin = text.find(kHeartbeatText)) != text.npos) {
    line.event = WatchdogEvent::kNoProgress;
    if (const auto seconds = NumberAfter(text, kNoProgressText)) line.ran_ms = *seconds * 1000;
  } else {
    ReadStatus(text, line);
    if (!line.last_enqueued) return std::nullopt;
    begin = text.find(kSignalText);
    line.event = begin == text.npos ? WatchdogEvent::kStatus : WatchdogEvent::kDumpSignal;
    if (begin == text.npos) {
      begin = text.rfind("] ");
      if (begin == text.npos) return std::nullopt;
      begin += 2;
    }
  }
  ReadGroup(text.substr(0, terminated == text.npos ? begin : terminated), line);
  if (line.event == WatchdogEvent::kDumpSignal)
    line.signal_rank = has("from this local rank") ? line.rank : NumberAfter(text, " rank ");
  while (begin < text.size() && text[begin] == ' ') ++begin;
  line.text = text.substr(begin);
  return line;
}

bool BeginsWatchdogLine(std::string_view text) {
  if (text.find("ProcessGroupNCCL.cpp:") == text.npos) return false;
  const std::size_t at = text.rfind("] ");
  if (at == text.npos) return false;
  text.remove_prefix(at + 2);
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (text.empty()) return false;
  if (text.starts_with("[PG ") || text.starts_with("[Rank ")) return true;  // cut in these
  for (const std::string_view begin :
       {kTimeoutText, kSignalText, kTerminatedText,
        std::string_view("Exception (either an error or timeout) detected by watchdog"),
        std::string_view("failure detected by watchdog at work sequence id: "),
        std::string_view("Timeout at NCCL work: ")})
    if (begin.starts_with(text) || text.starts_with(begin)) return true;
  return false;
}

bool WatchdogText::Add(std::string_view text, std::int64_t number, const Take& take) {
  constexpr std::size_t kMostBytes = 4096;
  constexpr int kMostPieces = 6;
  const bool is_begun = BeginsWatchdogLine(text);
  if (!begun_.empty() && !is_begun && text.size() < kMostBytes) {
    begun_.append(text);
    const std::optional<WatchdogLine> line = ParseWatchdogLine(begun_);
    if (line && line->is_whole) {
      take(begun_number_, *line);
      begun_.clear();
      return true;
    }
    if (++pieces_ < kMostPieces && begun_.size() < kMostBytes) return false;
    begun_.resize(begun_.size() - text.size());
  }
  End(take);
  const std::optional<WatchdogLine> line = ParseWatchdogLine(text);
  if (line && line->is_whole) {
    take(number, *line);
    return true;
  }
  if (!is_begun || text.size() >= kMostBytes) {
    if (line) take(number, *line);
    return line.has_value();
  }
  begun_ = text;
  begun_number_ = number;
  pieces_ = 1;
  return true;
}

void WatchdogText::End(const Take& take) {
  if (begun_.empty()) return;
  if (const std::optional<WatchdogLine> line = ParseWatchdogLine(begun_))
    take(begun_number_, *line);
  begun_.clear();
}

}  // namespace tlparse

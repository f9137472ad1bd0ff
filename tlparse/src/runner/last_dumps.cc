#include "runner/last_dumps.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "artifacts/common/text/python_traceback.h"
#include "facts/job/compared_ranks.h"
#include "facts/job/exits.h"

namespace tlparse {

namespace {

// What an end may be seen too late; a rank imports PyTorch for longer.
constexpr std::int64_t kSeenLateUs = 1'000'000;

struct LastDump {
  std::string path;
  std::int64_t rank = 0;
  const WatchedProcess* process = nullptr;
};

// "3.4711": rank and process id.
bool ParseName(std::string_view name, LastDump& dump, pid_t& pid) {
  const char* const end = name.data() + name.size();
  const auto [dot, error] = std::from_chars(name.data(), end, dump.rank);
  if (error != std::errc() || dot == end || *dot != '.') return false;
  return std::from_chars(dot + 1, end, pid).ptr == end;
}

}  // namespace

bool SayNoCause(const std::vector<WatchedProcess>& processes,
                const std::vector<AbortText>& aborts) {
  bool is_open = false;  // somebody was late, or called another thing
  for (const WatchedProcess& one : processes) {
    if (!one.rank) continue;
    const bool is_mismatch =
        !one.raised && one.signal == SIGABRT &&
        std::any_of(aborts.begin(), aborts.end(), [&](const AbortText& abort) {
          return (!abort.rank || abort.rank == one.rank) && SaysMismatch(abort.text);
        });
    is_open |= is_mismatch;
    if (is_mismatch) continue;
    if (!one.raised) return false;
    const TracebackSummary summary = SummarizeTraceback(one.raised->traceback);
    FatalException raised;
    raised.type = summary.type;
    raised.message = summary.message;
    if (!raised.IsTimeout() && !raised.ComesOfPeer()) return false;
    is_open |= raised.IsTimeout();
  }
  return is_open;
}

void TakeLastDumps(const RecordPlaces& places, const std::vector<WatchedProcess>& processes) {
  if (places.pipes.empty()) return;
  std::vector<LastDump> dumps;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(places.pipes + "/last", error), end;
       !error && entry != end; entry.increment(error)) {
    LastDump dump{entry->path().string(), 0, nullptr};
    pid_t pid = 0;
    if (!ParseName(entry->path().filename().string(), dump, pid)) continue;
    for (const WatchedProcess& one : processes) {
      if (one.pid == pid) dump.process = &one;
    }
    if (dump.process != nullptr) dumps.push_back(std::move(dump));
  }
  const auto started = [](const LastDump& a, const LastDump& b) {
    return a.process->started_us < b.process->started_us;
  };
  std::sort(dumps.begin(), dumps.end(), started);
  for (const LastDump& dump : dumps) {
    const std::int64_t last_us = dumps.back().process->started_us;
    if (dump.process->ended_us.value_or(INT64_MAX) - kSeenLateUs < last_us) continue;
    std::rename(dump.path.c_str(),
                fmt::format("{}/comm_lib_trace_rank_{}", places.recorded, dump.rank).c_str());
  }
}

}  // namespace tlparse

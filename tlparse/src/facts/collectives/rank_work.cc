#include "facts/collectives/rank_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "artifacts/common/text/python_traceback.h"
#include "inputs/common/generated_code.h"
#include "queries/facts/collectives/rank_work.h"

namespace tlparse {
namespace {

constexpr std::string_view kCompilePhase = " (dynamo_timed)";
constexpr std::int64_t kLeastIdleNs = 1'000'000;

enum class RunKind : std::uint8_t {
  kWork,  // works wherever no other op is inside it
  kLeaf,  // only if there is none: Python code may run between those inside it
  kWait,
};

RunKind KindOf(std::string_view name) {
  for (const std::string_view part : {"c10d::", "c10d_functional::", "gloo:", "nccl:",
                                      "wait_tensor", "record_param_comms", "autograd::"}) {
    if (name.find(part) != name.npos) return RunKind::kWait;
  }
  return name.find("::") != name.npos || name.ends_with(kCompilePhase) ? RunKind::kWork
                                                                       : RunKind::kLeaf;
}

// The runs of one thread, as they are inside each other.
class Nest {
 public:
  Nest(const std::map<std::int64_t, RunKind>& kinds, RunKind other, std::vector<WorkSpan>& work)
      : kinds_(kinds), other_(other), work_(work) {}

  void Begin(const TimeSpan& time, std::int64_t name_id) {
    EndUntil(time.from_ns);
    if (!open_.empty()) {
      open_.back().has_inner = true;
      Add(open_.back(), time.from_ns);
    }
    const auto kind = kinds_.find(name_id);
    open_.push_back({time.to_ns, name_id, kind == kinds_.end() ? other_ : kind->second});
    since_ns_ = time.from_ns;
  }
  void EndUntil(std::int64_t time_ns) {
    while (!open_.empty() && open_.back().to_ns <= time_ns) {
      Add(open_.back(), open_.back().to_ns);
      since_ns_ = std::max(since_ns_, open_.back().to_ns);
      open_.pop_back();
    }
  }

 private:
  struct Run {
    std::int64_t to_ns = 0, name_id = 0;
    RunKind kind = RunKind::kWork;
    bool has_inner = false;
  };
  void Add(const Run& run, std::int64_t to_ns) {
    const bool works = run.kind == RunKind::kWork || (run.kind == RunKind::kLeaf && !run.has_inner);
    if (works && to_ns > since_ns_) work_.push_back({{since_ns_, to_ns}, run.name_id});
  }
  const std::map<std::int64_t, RunKind>& kinds_;
  RunKind other_;  // of names without one
  std::vector<WorkSpan>& work_;
  std::vector<Run> open_;
  std::int64_t since_ns_ = 0;
};

// Modules of Python's library in which programs wait or read. Profiles give their files without a folder.
bool IsOfPython(std::string_view file) {
  constexpr std::string_view kLibraryModules[] = {
      "asyncio",         "bz2",    "codecs",  "concurrent", "contextlib", "copy",    "csv",
      "functools",       "gzip",   "http",    "importlib",  "json",       "logging", "lzma",
      "multiprocessing", "pickle", "queue",   "random",     "re",         "runpy",   "selectors",
      "shutil",          "socket", "sqlite3", "ssl",        "subprocess", "tarfile", "tempfile",
      "threading",       "urllib", "xml",     "zipfile"};
  const std::string_view module = file.substr(0, file.find('/'));
  return std::any_of(
      std::begin(kLibraryModules), std::end(kLibraryModules), [&](std::string_view one) {
        return module == one ||
               (module.ends_with(".py") && module.substr(0, module.size() - 3) == one);
      });
}

// How much each name has of times that do not overlap, in ascending order.
std::map<std::int64_t, std::int64_t> TimesOf(const std::vector<WorkSpan>& work,
                                             const std::vector<TimeSpan>& times) {
  std::map<std::int64_t, std::int64_t> by_name;
  for (const WorkSpan& one : work) {
    auto time = std::partition_point(times.begin(), times.end(), [&](const TimeSpan& at) {
      return at.to_ns <= one.time.from_ns;
    });
    for (; time != times.end() && time->from_ns < one.time.to_ns; ++time)
      by_name[one.name_id] += SharedNs(one.time, *time);
  }
  return by_name;
}

}  // namespace

std::int64_t SharedNs(const TimeSpan& a, const TimeSpan& b) {
  return std::max<std::int64_t>(0, std::min(a.to_ns, b.to_ns) - std::max(a.from_ns, b.from_ns));
}

Result<RunNames> LoadRunNames(Database& database, std::int64_t run_id) {
  RunNames names;
  FOR_EACH_ROW(const NameOfRankRun& row, Query<NameOfRankRun>(database, {.run_id = run_id}))
    names.emplace(row.id, row.name);
  return names;
}

Result<std::optional<std::vector<WorkSpan>>> LoadRankWork(Database& database, std::int64_t run_id,
                                                          std::int64_t rank, const RunNames& names,
                                                          bool is_of_devices) {
  std::map<std::int64_t, RunKind> kinds;
  for (const auto& [id, name] : names)
    kinds.emplace(id, is_of_devices ? RunKind::kWork : KindOf(name));
  std::vector<WorkSpan> work;
  std::map<std::int64_t, Nest> nests;  // by thread
  const auto begin = [&](const auto& row) {
    nests.try_emplace(row.thread_id, kinds, RunKind::kLeaf, work)
        .first->second.Begin({row.start_ns, row.end_ns}, row.name_id);
  };
  if (is_of_devices) {
    FOR_EACH_ROW(const DeviceRunOfRank& row,
                 Query<DeviceRunOfRank>(database, {.run_id = run_id, .rank = rank}))
      begin(row);
  } else {
    FOR_EACH_ROW(const RunOfRank& row, Query<RunOfRank>(database, {.run_id = run_id, .rank = rank}))
      begin(row);
  }
  if (nests.empty()) return std::optional<std::vector<WorkSpan>>();
  for (auto& [thread, nest] : nests) nest.EndUntil(INT64_MAX);
  std::sort(work.begin(), work.end(),
            [](const WorkSpan& a, const WorkSpan& b) { return a.time.from_ns < b.time.from_ns; });
  return std::optional(std::move(work));
}

MostWork MostWorkIn(const std::vector<TimeSpan>& times, const std::vector<WorkSpan>& work,
                    const RunNames& names) {
  MostWork most;
  for (const auto& [id, ns] : TimesOf(work, times)) {
    const auto name = names.find(id);
    if (name != names.end() && name->second.ends_with(kCompilePhase)) {
      most.compile_ns += ns;
    } else if (ns > most.op_ns) {
      most.op_ns = ns;
      most.op = name == names.end() ? "a compiled graph" : name->second;
    }
  }
  for (const TimeSpan& one : WithoutWork(times, work)) most.idle_ns += one.Length();
  return most;
}

std::int64_t TimeOfOp(const std::vector<TimeSpan>& times, const std::vector<WorkSpan>& work,
                      const RunNames& names, const std::string& op) {
  std::int64_t sum_ns = 0;
  for (const auto& [id, ns] : TimesOf(work, times)) {
    const auto name = names.find(id);
    if (name != names.end() && name->second == op) sum_ns += ns;
  }
  return sum_ns;
}

Result<FunctionTime> FunctionIn(Database& database, std::int64_t run_id, std::int64_t rank,
                                const std::vector<TimeSpan>& times) {
  std::map<std::int64_t, std::string> names;
  std::vector<WorkSpan> frames;
  const std::map<std::int64_t, RunKind> no_kinds;
  std::map<std::int64_t, Nest> nests;  // by thread
  FOR_EACH_ROW(const FrameOfRank& row,
               Query<FrameOfRank>(database, {.run_id = run_id, .rank = rank})) {
    const std::string_view frame_file = FileOfFrame(row.name);
    if (!IsUserFile(frame_file) || IsOfPython(frame_file)) continue;
    names.try_emplace(row.name_id, row.name);
    nests.try_emplace(row.thread_id, no_kinds, RunKind::kWork, frames)
        .first->second.Begin({row.start_ns, row.end_ns}, row.name_id);
  }
  for (auto& [thread, nest] : nests) nest.EndUntil(INT64_MAX);
  std::int64_t all_ns = 0;
  for (const TimeSpan& one : times) all_ns += one.Length();
  FunctionTime found;
  for (const auto& [id, ns] : TimesOf(frames, times)) {
    // "train.py(5): augment"
    const std::string& name = names.at(id);
    const std::size_t open = name.rfind('('), close = name.find("): ");
    if (2 * ns < all_ns || ns <= found.ns || close == name.npos || open > close) continue;
    const std::string file = name.substr(0, open);
    found = {fmt::format("{} ({}:{})", name.substr(close + 3), file.substr(file.rfind('/') + 1),
                         name.substr(open + 1, close - open - 1)),
             ns};
  }
  return found;
}

std::vector<TimeSpan> WithoutWork(const std::vector<TimeSpan>& times,
                                  const std::vector<WorkSpan>& work) {
  std::vector<TimeSpan> idle;
  std::size_t next = 0;
  for (TimeSpan time : times) {
    while (next < work.size() && work[next].time.to_ns <= time.from_ns) ++next;
    for (std::size_t i = next; i < work.size() && work[i].time.from_ns < time.to_ns; ++i) {
      if (work[i].time.from_ns > time.from_ns) idle.push_back({time.from_ns, work[i].time.from_ns});
      time.from_ns = std::max(time.from_ns, std::min(time.to_ns, work[i].time.to_ns));
    }
    if (time.Length() > 0) idle.push_back(time);
  }
  std::erase_if(idle, [](const TimeSpan& one) { return one.Length() < kLeastIdleNs; });
  return idle;
}

}  // namespace tlparse

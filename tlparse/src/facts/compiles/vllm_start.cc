#include "facts/compiles/vllm_start.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "enums/vllm.h"
#include "facts/compiles/event_times.h"
#include "queries/facts/compiles/vllm_start.h"

namespace tlparse {
namespace {

constexpr std::string_view kRestName = "not_attributed";
constexpr std::int64_t kDay = 86400;

struct StartLine {
  std::int64_t number = 0;
  std::string process;
  std::optional<std::int64_t> pid;
  std::string local_time;
  std::int64_t second = 0;  // of the day
  VllmStage stage = VllmStage::kFirstLine;
  double seconds = 0;
  std::string text;
};

struct StartFile {
  std::int64_t run_id = 0;
  std::string path;
  std::vector<StartLine> lines = {};
  std::map<std::int64_t, std::size_t> first_of_pid = {};  // index in `lines`
  // Of each line: the first one of its process since that last said that it was initialised.
  std::vector<std::size_t> since_init = {};
};

void IndexLines(StartFile& file) {
  std::map<std::optional<std::int64_t>, std::size_t> since;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const StartLine& line = file.lines[i];
    if (line.pid) file.first_of_pid.emplace(*line.pid, i);
    file.since_init.push_back(since.try_emplace(line.pid, i).first->second);
    if (line.stage == VllmStage::kInitEngine) since.erase(line.pid);
  }
}

// Of "11-29 13:36:06".
std::int64_t SecondOfDay(std::string_view time) {
  const auto two = [&](std::size_t at) { return (time[at] - '0') * 10 + (time[at + 1] - '0'); };
  return two(6) * 3600 + two(9) * 60 + two(12);
}

// A start takes less than a day, and its lines have no year.
std::int64_t SecondsBetween(std::int64_t earlier, std::int64_t later) {
  return ((later - earlier) % kDay + kDay) % kDay;
}

Result<std::vector<StartFile>> LoadStartFiles(Database& database,
                                              const std::optional<std::int64_t>& run_id) {
  std::vector<StartFile> files;
  std::int64_t last = -1;
  FOR_EACH_ROW(const VllmLineOfRun& row, Query<VllmLineOfRun>(database, {.run_id = run_id})) {
    if (row.profile_id != last) files.push_back({row.run_id, std::string(row.path)});
    last = row.profile_id;
    StartLine line;
    line.number = row.line;
    line.process = row.process_name;
    line.pid = row.pid;
    line.local_time = row.local_time;
    line.second = SecondOfDay(line.local_time);
    line.stage = row.stage;
    line.seconds = row.seconds.value_or(0);
    line.text = row.text;
    files.back().lines.push_back(std::move(line));
  }
  std::for_each(files.begin(), files.end(), IndexLines);
  return files;
}

// "_DP1" of "EngineCore_DP1" and "Worker_DP1_TP0": which of several engines it is of.
std::string_view EngineOf(std::string_view process) {
  const std::size_t at = process.find("_DP");
  if (at == process.npos) return {};
  const std::size_t end = process.find('_', at + 1);
  return process.substr(at, end == process.npos ? end : end - at);
}

// Of an engine or one of its workers, not of what starts engines.
bool IsOfEngine(std::string_view process) {
  return process.starts_with("EngineCore") || process.starts_with("Worker") ||
         process.starts_with("VllmWorker");
}

class StartMaker {
 public:
  StartMaker(Database& database, const StartFile& file, std::size_t end)
      : database_(database), file_(file), end_(file.lines[end]), last_(end) {}

  Result<VllmStart> Make();

 private:
  void TakeLines();
  void ChooseWorker();
  bool Has(VllmStage stage) const { return Find(stage) != nullptr; }
  // The last such line of the worker.
  const StartLine* Find(VllmStage stage) const;
  double Sum(VllmStage stage) const;
  StartStage& Add(std::string_view name, std::string_view within, double seconds, StartBasis basis,
                  std::int64_t line) {
    return start_.stages.emplace_back(StartStage{name, within, seconds, basis, line, {}});
  }
  // All lines of the worker for that stage; false: it has none.
  bool AddSaid(VllmStage stage, std::string_view within);
  void AddLoad();
  Result<void> AddInit();
  Result<void> AddCompile(std::string_view within);
  Result<void> AddTraced(const ProcessOfPid& process, std::string_view within);
  Result<void> AddBeforeFirstLine(const StartLine& first);
  std::string NoteOfCache() const;
  void AddRests();

  Database& database_;
  const StartFile& file_;
  const StartLine& end_;  // init engine … took
  std::size_t last_;
  std::vector<const StartLine*> lines_;  // of this start
  std::optional<std::int64_t> worker_;
  VllmStart start_;
};

// The lines since the start before, of processes that it had not; of several engines that start together
// those of this one, and those of no engine.
void StartMaker::TakeLines() {
  const std::string_view engine = EngineOf(end_.process);
  const std::size_t engine_first = file_.since_init[last_];
  // A start before this one need not have come to its end.
  std::size_t first = engine_first;
  for (; first > 0; --first) {
    const StartLine& line = file_.lines[first - 1];
    const bool is_of_other = line.stage == VllmStage::kEngine && line.pid != end_.pid &&
                             EngineOf(line.process) == engine;
    if (is_of_other || line.stage == VllmStage::kInitEngine || line.stage == VllmStage::kListen)
      break;
  }
  for (std::size_t i = first; i < last_; ++i) {
    const StartLine& line = file_.lines[i];
    const std::string_view other = EngineOf(line.process);
    // An engine's workers begin after it.
    const bool is_old =
        i < engine_first &&
        (IsOfEngine(line.process) || (line.pid && file_.first_of_pid.at(*line.pid) < first));
    if (!is_old && (other.empty() || other == engine)) lines_.push_back(&line);
  }
}

// Only one of several workers may say how long it took.
void StartMaker::ChooseWorker() {
  std::map<std::optional<std::int64_t>, double> took;
  for (const StartLine* line : lines_) {
    if (line->stage != VllmStage::kFirstLine && line->stage != VllmStage::kEngine)
      took[line->pid] += line->seconds;
  }
  double most = -1;
  for (const auto& [pid, seconds] : took) {
    if (seconds > most) most = seconds, worker_ = pid;
  }
  start_.worker_pid = worker_;
  for (const StartLine* line : lines_)
    if (line->pid == worker_) start_.worker = line->process;
}

const StartLine* StartMaker::Find(VllmStage stage) const {
  const auto found = std::find_if(lines_.rbegin(), lines_.rend(), [&](const StartLine* line) {
    return line->stage == stage && line->pid == worker_;
  });
  return found == lines_.rend() ? nullptr : *found;
}

double StartMaker::Sum(VllmStage stage) const {
  double sum = 0;
  for (const StartLine* line : lines_)
    if (line->stage == stage && line->pid == worker_) sum += line->seconds;
  return sum;
}

bool StartMaker::AddSaid(VllmStage stage, std::string_view within) {
  const StartLine* const line = Find(stage);
  if (line != nullptr) Add(Name(stage), within, Sum(stage), StartBasis::kSaid, line->number);
  return line != nullptr;
}

void StartMaker::AddLoad() {
  const bool has_whole = AddSaid(VllmStage::kLoadModel, Name(VllmStage::kLoad));
  const std::string_view within = Name(has_whole ? VllmStage::kLoadModel : VllmStage::kLoad);
  AddSaid(VllmStage::kMakeModel, within);
  AddSaid(VllmStage::kLoadWeights, within);
}

std::string StartMaker::NoteOfCache() const {
  if (Has(VllmStage::kLoadCompiled)) return "loaded what an earlier start had compiled";
  const StartLine* const again = Find(VllmStage::kCompileAgain);
  if (again == nullptr) return {};
  constexpr std::string_view kReason = ", reason: ";
  const std::size_t at = again->text.find(kReason);
  return "could not load what an earlier start had compiled" +
         (at == std::string::npos ? std::string() : ": " + again->text.substr(at + kReason.size()));
}

Result<void> StartMaker::AddBeforeFirstLine(const StartLine& first) {
  if (!first.pid) return {};
  ASSIGN_OR_RETURN(
      const FirstRow<StartOfPid> row,
      First(Query<StartOfPid>(database_, {.run_id = file_.run_id, .pid = *first.pid})));
  if (row)
    Add(kStageBeforeFirstLine, "", static_cast<double>(SecondsBetween(row->began_s, first.second)),
        StartBasis::kClock, first.number);
  return {};
}

// The timed events of the process that began while the engine was initialised.
Result<void> StartMaker::AddTraced(const ProcessOfPid& process, std::string_view within) {
  constexpr std::int64_t kMicro = 1'000'000;
  const std::int64_t first_us = process.first_record_us / kMicro * kMicro;
  const std::int64_t until_us =
      first_us + (SecondsBetween(process.first_second, end_.second) + 1) * kMicro;
  const TimeWindow window{until_us - static_cast<std::int64_t>((end_.seconds + 1) * 1e6), until_us};
  ASSIGN_OR_RETURN(const ProcessTimes times, LoadProcessTimes(database_, process.id, window));
  double seconds = 0;
  for (const TimeOfCompile& one : times.compiles) seconds += one.self_us / 1e6;
  if (seconds <= 0) return {};
  Add(Name(VllmStage::kCompile), within, seconds, StartBasis::kTrace, 0);
  for (const auto& [phase, name] :
       {std::pair(TimedPhase::kDynamo, Name(VllmStage::kDynamo)),
        std::pair(TimedPhase::kAotAutograd, std::string_view("aot_autograd")),
        std::pair(TimedPhase::kInductor, std::string_view("inductor")),
        std::pair(TimedPhase::kCodeGeneration, std::string_view("code_generation"))}) {
    double of_phase = 0;
    for (const TimeOfName& one : times.names)
      if (one.phase == phase) of_phase += one.self_us / 1e6;
    if (of_phase > 0) Add(name, Name(VllmStage::kCompile), of_phase, StartBasis::kTrace, 0);
  }
  return {};
}

// As the lines say, else as the log of the process does.
Result<void> StartMaker::AddCompile(std::string_view within) {
  if (const StartLine* const line = Find(VllmStage::kCompile)) {
    Add(Name(VllmStage::kCompile), within, Sum(VllmStage::kCompile), StartBasis::kSaid,
        line->number)
        .note = NoteOfCache();
    for (const VllmStage part :
         {VllmStage::kDynamo, VllmStage::kCompileGraph, VllmStage::kLoadGraph})
      AddSaid(part, Name(VllmStage::kCompile));
    return {};
  }
  if (AddSaid(VllmStage::kCompileAndRun, within) || !worker_) return {};
  ASSIGN_OR_RETURN(
      const FirstRow<ProcessOfPid> process,
      First(Query<ProcessOfPid>(database_, {.run_id = file_.run_id, .pid = *worker_})));
  const std::size_t before = start_.stages.size();
  if (process) RETURN_IF_ERROR(AddTraced(*process, within));
  // Where the log has no compile, it is said of what the compile is a part of.
  start_.stages[std::min(before, start_.stages.size() - 1)].note = NoteOfCache();
  return {};
}

Result<void> StartMaker::AddInit() {
  std::string_view within = Name(VllmStage::kInitEngine);
  const StartLine *const warm_up = Find(VllmStage::kBeginWarmUp), *const warm =
                                                                      Find(VllmStage::kEndWarmUp);
  if (warm_up != nullptr && warm != nullptr) {
    Add("warm_up", within, static_cast<double>(SecondsBetween(warm_up->second, warm->second)),
        StartBasis::kClock, warm->number);
    within = "warm_up";
  }
  RETURN_IF_ERROR(AddCompile(within));
  AddSaid(VllmStage::kFirstRun, within);
  for (const VllmStage stage :
       {VllmStage::kWarmUpKernels, VllmStage::kCapture, VllmStage::kCaptureEncoder})
    AddSaid(stage, Name(VllmStage::kInitEngine));
  return {};
}

// What the parts of each stage leave of it. Times of lines are whole seconds: a stage is not less than
// its parts.
void StartMaker::AddRests() {
  std::vector<StartStage> result;
  const auto add = [&](auto&& self, std::string_view within) -> double {
    double sum = 0;
    for (const StartStage& stage : start_.stages) {
      if (stage.within != within) continue;
      const std::size_t at = result.size();
      result.push_back(stage);
      const double parts = self(self, stage.name);
      if (result.size() > at + 1) {
        const double rest = stage.seconds - parts;
        if (rest > 0)
          result.push_back({kRestName, stage.name, rest, StartBasis::kRest, 0, {}});
        else
          result[at].seconds = parts;
      }
      sum += result[at].seconds;
    }
    return sum;
  };
  start_.seconds = add(add, std::string_view());
  start_.stages = std::move(result);
}

Result<VllmStart> StartMaker::Make() {
  TakeLines();
  ChooseWorker();
  start_.run_id = file_.run_id;
  start_.path = file_.path;
  start_.engine = end_.process;
  start_.engine_pid = end_.pid;
  const StartLine& first = lines_.empty() ? end_ : *lines_.front();
  start_.began = first.local_time;
  start_.ended = end_.local_time;
  const auto load = std::find_if(lines_.begin(), lines_.end(), [](const StartLine* line) {
    return line->stage == VllmStage::kLoad;
  });
  const auto since = [&](std::int64_t from, std::int64_t to) {
    return static_cast<double>(SecondsBetween(from, to));
  };
  RETURN_IF_ERROR(AddBeforeFirstLine(first));
  const std::int64_t load_second = load == lines_.end() ? end_.second : (*load)->second;
  if (load != lines_.end()) {
    Add("before_load", "", since(first.second, load_second), StartBasis::kClock, (*load)->number);
    Add(Name(VllmStage::kLoad), "", std::max(0.0, since(load_second, end_.second) - end_.seconds),
        StartBasis::kClock, end_.number);
    AddLoad();
  } else {
    Add("before_init", "", std::max(0.0, since(first.second, end_.second) - end_.seconds),
        StartBasis::kClock, end_.number);
  }
  Add(Name(VllmStage::kInitEngine), "", end_.seconds, StartBasis::kSaid, end_.number);
  RETURN_IF_ERROR(AddInit());
  const auto next =
      std::find_if(file_.lines.begin() + static_cast<std::ptrdiff_t>(last_) + 1, file_.lines.end(),
                   [](const StartLine& line) {
                     return line.stage == VllmStage::kListen || line.stage == VllmStage::kEngine;
                   });
  if (next != file_.lines.end() && next->stage == VllmStage::kListen) {
    Add(Name(VllmStage::kListen), "", since(end_.second, next->second), StartBasis::kClock,
        next->number);
    start_.ended = next->local_time;
  }
  AddRests();
  return std::move(start_);
}

}  // namespace

std::string_view Name(StartBasis basis) {
  switch (basis) {
    case StartBasis::kSaid:
      return "said";
    case StartBasis::kClock:
      return "clock";
    case StartBasis::kTrace:
      return "trace";
    case StartBasis::kRest:
      return "rest";
  }
  return {};
}

Result<std::vector<VllmStart>> LoadVllmStarts(Database& database,
                                              const std::optional<std::int64_t>& run_id) {
  std::vector<VllmStart> starts;
  ASSIGN_OR_RETURN(const std::vector<StartFile> files, LoadStartFiles(database, run_id));
  for (const StartFile& file : files) {
    const std::size_t before = starts.size();
    for (std::size_t i = 0; i < file.lines.size() && starts.size() - before < kMostStarts; ++i) {
      if (file.lines[i].stage != VllmStage::kInitEngine) continue;
      ASSIGN_OR_RETURN(VllmStart start, StartMaker(database, file, i).Make());
      starts.push_back(std::move(start));
    }
  }
  return starts;
}

}  // namespace tlparse

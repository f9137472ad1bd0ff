#include "answers/compile/compile.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "answers/compile/other_ranks.h"
#include "artifacts/common/text/python_traceback.h"
#include "facts/job/participants.h"
#include "facts/job/read_transaction.h"
#include "facts/ranks/compile_options.h"
#include "facts/text/compile_label.h"
#include "queries/answers/compile/compile.h"

namespace tlparse {
namespace {

// "1/0#2" is the second use of the label.
struct WantedLabel {
  std::string label;
  std::optional<std::int64_t> generation;
};

WantedLabel ReadLabel(const std::string& text) {
  const std::size_t mark = text.find('#');
  WantedLabel wanted{text.substr(0, mark), std::nullopt};
  if (mark == std::string::npos) return wanted;
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + mark + 1, end, number);
  if (read.ec == std::errc() && read.ptr == end && number > 0) {
    wanted.generation = number - 1;
  } else {
    wanted.label = text;
  }
  return wanted;
}

struct FoundCompile {
  std::int64_t stack_id = 0, first_record_id = 0;
  std::int64_t duration_us = 0, backward_duration_us = 0;
};

std::string Asked(const CompileOptions& options) {
  return options.asked.IsGiven() ? options.asked.Text() : "this launch";
}

Result<FoundCompile> WhyNotFound(Database& database, const ChosenLaunch& launch,
                                 const CompileOptions& options) {
  std::string labels;
  int count = 0;
  FOR_EACH_ROW(const LabelOfCompile& row,
               Query<LabelOfCompile>(database, {.run_id = launch.run_id,
                                                .launch = launch.ordinal,
                                                .rank = options.asked.rank,
                                                .pid = options.asked.pid})) {
    labels += ++count > 12 ? ", …" : (count > 1 ? ", " : "") + std::string(row.label);
  }
  RETURN_IF_ERROR(CheckAsked(database, options.asked, launch.run_id, launch.ordinal));
  if (labels.empty())
    return Fail(ErrorCode::kNotFound, fmt::format("{} has no compile", Asked(options)));
  return Fail(ErrorCode::kNotFound, fmt::format("{} has no compile '{}'; it has {}", Asked(options),
                                                options.label, labels));
}

// A compile that did not come to its end is what one asks about.
bool IsPreferred(CompileStatus status) { return !IsFinished(status); }

void Take(const CompileOfLabel& row, CompileAnswer& answer, FoundCompile& found) {
  answer.id = row.id;
  answer.rank = row.rank;
  answer.process_id = row.process_id;
  answer.pid = row.pid;
  answer.log = row.path;
  answer.log_line = row.log_line.value_or(0);
  answer.function = {std::string(row.file), std::string(row.function), {}, row.line.value_or(0)};
  answer.status = CompileStatusFrom(row.status);
  answer.start_us = row.start_time_us;
  answer.last_record_us = row.last_record_us;
  found = {row.stack_id.value_or(0), row.first_record_id, row.duration_us.value_or(0),
           row.backward_duration_us.value_or(0)};
}

Result<FoundCompile> Find(Database& database, const ChosenLaunch& launch,
                          const CompileOptions& options, CompileAnswer& answer) {
  const WantedLabel wanted = ReadLabel(options.label);
  FoundCompile found;
  bool is_preferred = false;
  FOR_EACH_ROW(const CompileOfLabel& row,
               Query<CompileOfLabel>(database, {.run_id = launch.run_id,
                                                .launch = launch.ordinal,
                                                .label = wanted.label,
                                                .rank = options.asked.rank,
                                                .pid = options.asked.pid})) {
    if (wanted.generation && row.generation != *wanted.generation) continue;
    const bool is_better = IsPreferred(CompileStatusFrom(row.status));
    if (answer.id != 0 && (is_preferred || !is_better)) continue;
    is_preferred = is_better;
    Take(row, answer, found);
    answer.label = CompileLabel(wanted.label, row.generation);
  }
  if (answer.id == 0) return WhyNotFound(database, launch, options);
  return found;
}

Result<void> LoadCallers(Database& database, std::int64_t stack_id, CompileAnswer& answer) {
  if (stack_id == 0) return {};
  bool is_first = true;
  FOR_EACH_ROW(const CompileFrame& row, Query<CompileFrame>(database, {.stack_id = stack_id})) {
    // The innermost frame is the function itself.
    const bool is_own = std::exchange(is_first, false) && row.file == answer.function.file;
    if (is_own || !IsUserFile(row.file)) continue;
    answer.callers.push_back(
        {std::string(row.file), std::string(row.function), std::string(row.code), row.line});
  }
  return {};
}

Result<void> LoadLookups(Database& database, CompileAnswer& answer) {
  FOR_EACH_ROW(const LookupInCompile& row,
               Query<LookupInCompile>(database, {.compile_id = answer.id})) {
    answer.lookups.push_back({std::string(row.layer), std::string(Name(row.state)),
                              std::string(row.direction), std::string(row.key),
                              std::string(row.bypass_reason), std::string(row.guard),
                              std::string(row.remote_error)});
  }
  return {};
}

// The same exception is in its own record, which has the place, and in the metrics, which have
// the whole message.
void AddException(CompileException one, CompileAnswer& answer) {
  for (CompileException& known : answer.exceptions) {
    if (known.is_restart || one.is_restart) continue;
    if (!one.message.empty()) known.message = std::move(one.message);
    if (!one.type.empty()) known.type = std::move(one.type);
    if (known.place.file.empty()) known.place = std::move(one.place);
    return;
  }
  answer.exceptions.push_back(std::move(one));
}

Result<void> LoadEnd(Database& database, const FoundCompile& found, CompileAnswer& answer) {
  FOR_EACH_ROW(const FailureInCompile& row,
               Query<FailureInCompile>(database, {.compile_id = answer.id})) {
    AddException({row.kind == "restart",
                  std::string(row.type),
                  std::string(row.reason),
                  {std::string(row.user_file), {}, {}, row.user_line.value_or(0)}},
                 answer);
  }
  FOR_EACH_ROW(const BreakInCompile& row,
               Query<BreakInCompile>(database, {.compile_id = answer.id})) {
    answer.graph_breaks.push_back(
        {std::string(row.user_file), {}, std::string(row.cause), row.user_line.value_or(0)});
  }
  ASSIGN_OR_RETURN(answer.cuda_graphs, LoadCudaGraphs(database, answer.id));
  ASSIGN_OR_RETURN(const FirstRow<OpenBackward> backward,
                   First(Query<OpenBackward>(
                       database, {.process_id = answer.process_id, .compile_id = answer.id})));
  answer.ends_in_backward = backward->is_open;
  FOR_EACH_ROW(const NextCompile& row,
               Query<NextCompile>(database, {.process_id = answer.process_id,
                                             .after_record_id = found.first_record_id})) {
    answer.next_label = CompileLabel(row.label, row.generation);
    answer.next_function = row.function;
    answer.next_status = row.status;
    answer.next_start_us = row.start_time_us;
  }
  return {};
}

}  // namespace

Result<CompileAnswer> AnalyzeCompile(Database& database, const CompileOptions& options) {
  ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database));
  ASSIGN_OR_RETURN(const ChosenLaunch launch, ChooseLaunch(database, options.run, options.launch));
  CompileAnswer answer;
  answer.run = launch.run_name;
  answer.launch = launch.ordinal;
  answer.launch_count = launch.count;
  ASSIGN_OR_RETURN(const FoundCompile found, Find(database, launch, options, answer));
  RETURN_IF_ERROR(LoadCallers(database, found.stack_id, answer));
  ASSIGN_OR_RETURN(answer.traced, LoadTracedLines(database, answer.id, answer.function.file));
  ASSIGN_OR_RETURN(answer.inputs, LoadInputs(database, answer.id));
  ASSIGN_OR_RETURN(answer.failed_guards, LoadFailedEntries(database, answer.id));
  ASSIGN_OR_RETURN(answer.options, OptionsOfCompile(database, answer.id));
  JobCompile times;
  times.id = answer.id;
  times.duration_us = found.duration_us;
  times.backward_duration_us = found.backward_duration_us;
  ASSIGN_OR_RETURN(answer.phases, LoadPhases(database, times));
  RETURN_IF_ERROR(LoadLookups(database, answer));
  RETURN_IF_ERROR(LoadEnd(database, found, answer));
  RETURN_IF_ERROR(CompareWithOthers(database, answer));
  return answer;
}

}  // namespace tlparse

#include "facts/compiles/compile_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "facts/compiles/advice.h"
#include "facts/compiles/recompile_reasons.h"
#include "facts/text/guard_text.h"
#include "queries/facts/compiles/compile_facts.h"

namespace tlparse {
namespace {

Result<void> LoadEvents(Database& database, CompileFacts& facts) {
  ASSIGN_OR_RETURN(const std::vector<FailedEntry> entries, LoadFailedEntries(database, facts.id));
  for (const FailedEntry& entry : entries) {
    const std::string after = entry.label.empty() ? "" : "after " + entry.label + ": ";
    facts.recompile_reasons.push_back(
        {after + GuardKey(entry.reason.guard), after + entry.reason.text});
  }
  FOR_EACH_ROW(const BreakOfCompile& row,
               KeptQuery<BreakOfCompile>(database, {.compile_id = facts.id})) {
    facts.graph_breaks.push_back(
        {row.user_file ? fmt::format("{}:{}", *row.user_file, row.user_line) : "",
         CauseOfBreak(row.reason)});
  }
  return {};
}

Result<void> LoadContents(Database& database, CompileFacts& facts) {
  FOR_EACH_ROW(const GuardOfCompile& row,
               KeptQuery<GuardOfCompile>(database, {.compile_id = facts.id})) {
    const GuardText shown =
        ReadableGuard(row.normalized_expression, row.user_code, row.user_file, row.user_line);
    std::string key = GuardKey(row.normalized_expression);
    std::string subject(GuardSubject(key));
    if (!subject.empty()) subject += fmt::format("\n{}", row.user_code);
    facts.guards.push_back({std::move(key), shown.Whole(), std::move(subject), shown.at});
  }
  std::stable_sort(facts.guards.begin(), facts.guards.end(),
                   [](const FactText& a, const FactText& b) { return a.key < b.key; });
  FOR_EACH_ROW(const KernelOfCompile& row,
               KeptQuery<KernelOfCompile>(database, {.compile_id = facts.id}))
    facts.kernels.emplace_back(row.name);
  std::sort(facts.kernels.begin(), facts.kernels.end());
  std::map<std::string, int> count;
  FOR_EACH_ROW(const CodeOfCompile& row,
               KeptQuery<CodeOfCompile>(database, {.compile_id = facts.id})) {
    std::string title(row.direction);
    if (const int n = ++count[title]; n > 1)
      title += fmt::format("{}{}", title.empty() ? "" : " ", n);
    facts.codes.push_back({std::move(title), std::string(row.hash), row.record_id});
  }
  FOR_EACH_ROW(const LookupOfCompile& row,
               KeptQuery<LookupOfCompile>(database, {.compile_id = facts.id})) {
    facts.lookups.push_back({std::string(row.layer),
                             std::string(row.state),
                             std::string(row.direction),
                             std::string(row.key),
                             std::string(row.bypass_reason),
                             std::string(row.guard_expression),
                             std::string(row.remote_error),
                             {row.component_set_id, row.device_index}});
  }
  return {};
}

}  // namespace

Result<Phases> LoadPhases(Database& database, const JobCompile& compile) {
  Phases phases;
  if (compile.duration_us != 0)
    phases[kCompilePhases[0]] = compile.duration_us + compile.backward_duration_us;
  FOR_EACH_ROW(const PhaseTimesOfCompile& row,
               KeptQuery<PhaseTimesOfCompile>(database, {.compile_id = compile.id})) {
    const std::optional<std::int64_t> times[] = {row.dynamo_us,   row.aot_autograd_us,
                                                 row.inductor_us, row.code_gen_us,
                                                 row.triton_us,   row.backward_us};
    for (std::size_t i = 0; i < std::size(times); ++i) {
      if (times[i]) phases[kCompilePhases[i + 1]] = *times[i];
    }
  }
  return phases;
}

Result<ParticipantFacts> LoadParticipantFacts(Database& database, const Job& job,
                                              RankIndex participant) {
  const JobParticipant& who = job.participants()[static_cast<std::size_t>(participant)];
  ParticipantFacts result;
  result.title = job.run_name();
  if (job.launch_count() > 1) result.title += fmt::format(", launch {}", job.launch());
  if (job.HasSeveral()) result.title += fmt::format(", {}{}", who.rank ? "rank " : "", who.name);
  result.torch_version = who.torch_version;
  result.python_version = who.python_version;
  std::map<std::int64_t, CudaGraphSummary> recorded;
  for (const std::int64_t process_id : who.process_ids) {
    ASSIGN_OR_RETURN(auto of_process, LoadRecordedCudaGraphs(database, process_id));
    recorded.merge(std::move(of_process));
  }
  for (const JobCompile& compile : job.compiles()) {
    if (compile.participant != participant) continue;
    CompileFacts facts;
    facts.id = compile.id;
    facts.label = job.string(compile.label_id);
    facts.key = compile.is_synthetic ? job.string(compile.key_id) : facts.label;
    if (compile.function_id >= 0) facts.function = job.string(compile.function_id);
    if (compile.file_id >= 0) facts.file = job.string(compile.file_id);
    facts.status = compile.status;
    facts.graph_content = compile.graph_content;
    if (compile.graph_content != 0) {
      ASSIGN_OR_RETURN(
          facts.graph_hash,
          database.QueryText("SELECT hash FROM content_row WHERE id = ?", compile.graph_content));
    }
    ASSIGN_OR_RETURN(facts.phases_us, LoadPhases(database, compile));
    RETURN_IF_ERROR(LoadEvents(database, facts));
    RETURN_IF_ERROR(LoadContents(database, facts));
    ASSIGN_OR_RETURN(const FirstRow<FunctorchConfig> config,
                     First(KeptQuery<FunctorchConfig>(database, {.compile_id = compile.id})));
    if (config) facts.functorch_config_payload = config->payload_id;
    facts.cuda_graphs = recorded[compile.id];
    ASSIGN_OR_RETURN(facts.cuda_graphs.skips, LoadCudaGraphSkips(database, compile.id));
    result.compiles.push_back(std::move(facts));
  }
  return result;
}

}  // namespace tlparse

#include "findings/caught_failures.h"

#include <optional>
#include <string>

#include "facts/compiles/eager_compiles.h"
#include "facts/job/exits.h"
#include "queries/findings/failures.h"

namespace tlparse {
namespace {

Result<bool> SaySuppressed(const FindingContext& context, const std::vector<std::int64_t>& ids,
                           Finding& finding) {
  ASSIGN_OR_RETURN(const bool is_suppressed, AreErrorsSuppressed(context.database, ids));
  if (!is_suppressed || finding.kind != FindingKind::kCompileFailed) return false;
  finding.severity = FindingSeverity::kWarning;
  finding.detail +=
      "torch._dynamo.config.suppress_errors is set: the function runs eagerly instead. ";
  return true;
}

// The test may want it to fail.
Result<bool> AreInTests(const FindingContext& context, const std::vector<std::int64_t>& ids) {
  for (const std::int64_t id : ids) {
    ASSIGN_OR_RETURN(const FirstRow<IsInTest> row,
                     First(Query<IsInTest>(context.database, {.compile_id = id})));
    if (!row) return false;
  }
  return true;
}

// Whether the place is in a shell or notebook: these continue after every exception.
bool IsTyped(const std::optional<FindingPlace>& place) {
  return place && (place->file.starts_with("<ipython-input-") || place->file == "<stdin>" ||
                   place->file.find("/ipykernel_") != std::string::npos);
}

// Whether what the process showed last is this failure: another one says nothing of it.
bool HasRaisedIt(const ProcessExit& exit, const Finding& finding) {
  return exit.raised && (finding.cause.find(exit.raised->type) != std::string::npos ||
                         exit.raised->Text().find(finding.cause) != std::string::npos);
}

}  // namespace

Result<void> SaySurvived(const FindingContext& context, const std::vector<std::int64_t>& ids,
                         Finding& finding) {
  ASSIGN_OR_RETURN(const bool is_suppressed, SaySuppressed(context, ids, finding));
  if (finding.kind != FindingKind::kCompileFailed) return {};
  ASSIGN_OR_RETURN(const std::vector<ProcessExit> exits,
                   LoadExits(context.database, context.job.run_id()));
  ASSIGN_OR_RETURN(const bool are_tests, AreInTests(context, ids));
  bool is_survived = true, goes_on = true;
  for (const std::int64_t id : ids) {
    const JobCompile* const one = context.job.FindCompile(id);
    if (one == nullptr) return {};
    const RankIndex rank = one->participant;
    const ProcessExit* const exit = ExitOf(exits, context.StatusOf(rank).process_id);
    const JobCompile* const last = context.LastCompile(rank);
    const bool is_raised = exit != nullptr && HasRaisedIt(*exit, finding) && !are_tests;
    const bool is_caught = exit == nullptr || (exit->raised && !is_raised);
    is_survived = is_survived && exit != nullptr && exit->exit_code == 0 && !is_raised;
    goes_on = goes_on && is_caught && last != nullptr && last->id > one->id &&
              last->status != CompileStatus::kFailed;
  }
  if (!is_survived && !goes_on) return {};
  const bool is_of_all =
      context.job.participants().size() == 1 || (finding.ranks.empty() && finding.logs.empty());
  const bool is_handled = is_of_all && !is_suppressed && !IsTyped(finding.place);
  finding.is_asked_for = false;
  finding.severity = is_handled ? FindingSeverity::kNote : FindingSeverity::kWarning;
  const bool is_one = ids.size() == 1;
  finding.detail += is_one ? "Its " : "Their ";
  finding.detail += is_survived ? is_one
                                      ? "process ended with exit code 0 all the same (run.json). "
                                      : "processes ended with exit code 0 all the same (run.json). "
                    : is_one    ? "log goes on to another compile: the exception was caught. "
                                : "logs go on to another compile: the exception was caught. ";
  if (!is_survived || !are_tests) return {};
  finding.severity = FindingSeverity::kNote;
  finding.is_asked_for = true;
  finding.detail += "A test called it, and may expect that. ";
  return {};
}

}  // namespace tlparse

// Compiles that failed: with which exception, on which ranks.
#include "queries/findings/failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "artifacts/common/text/python_traceback.h"
#include "artifacts/common/text/recompile_limit.h"
#include "base/ascii.h"
#include "facts/cache/cause.h"
#include "facts/compiles/advice.h"
#include "facts/compiles/eager_compiles.h"
#include "facts/compiles/exceptions.h"
#include "facts/compiles/recompile_reasons.h"
#include "facts/text/compile_label.h"
#include "facts/text/shorten.h"
#include "findings/caught_failures.h"
#include "findings/context.h"
#include "findings/recompile_places.h"

namespace tlparse {
namespace {

// One failed compile: what the records of its failure say together.
struct Failure {
  const JobCompile* compile = nullptr;
  std::string type, reason;
  FindingPlace place;
  std::optional<std::int64_t> time_us;
  std::int64_t record_id = 0;
  bool is_backward = false;
  bool is_raised = false;  // by the code that was traced
};

// The line of code below the innermost frame of a place; empty: the message has none.
std::string CodeOfFrame(std::string_view message, std::string_view file, std::int64_t line) {
  std::string code;
  bool is_next = false;
  while (!message.empty() && !file.empty()) {
    const std::string_view text = NextLine(message);
    const std::optional<PythonFrame> frame = ParseFrameLine(text);
    if (is_next && !frame) code = Trimmed(text);
    is_next = frame && frame->file == file && frame->line == line;
  }
  return code;
}

// Where a failure was, else where the function begins.
std::optional<FindingPlace> PlaceOfFailure(const FindingContext& context, const Failure& failure) {
  if (!failure.place.file.empty()) return failure.place;
  const JobCompile& compile = *failure.compile;
  if (compile.file_id < 0) return std::nullopt;
  return FindingPlace{context.job.string(compile.file_id), compile.line, {}};
}

// Of a compile without an id: the user's line that began it, by the stack of its last record with one.
Result<std::optional<FindingPlace>> PlaceOfRecords(Database& database, std::int64_t compile_id) {
  FOR_EACH_ROW(const FrameOfLastRecord& row,
               Query<FrameOfLastRecord>(database, {.compile_id = compile_id})) {
    if (IsUserFile(row.file))
      return FindingPlace{std::string(row.file), row.line, std::string(row.code)};
  }
  return std::optional<FindingPlace>();
}

Result<std::vector<Failure>> LoadFailures(FindingContext& context) {
  std::vector<Failure> failures;
  std::map<std::int64_t, std::size_t> by_compile;
  FOR_EACH_ROW(
      const FailureOfCompile& row,
      Query<FailureOfCompile>(context.database, {.in_logs = context.job.InLogs("f.record_id")})) {
    const JobCompile* compile = context.job.FindCompile(row.compile_id);
    if (compile == nullptr) continue;
    const bool is_eager_backward = row.kind == "eager_compile_backwards_failure";
    if (compile->status != CompileStatus::kFailed && !is_eager_backward) continue;
    const auto [found, is_new] = by_compile.try_emplace(compile->id, failures.size());
    if (is_new) failures.push_back({compile, {}, {}, {}, row.time_us, row.record_id, false});
    Failure& failure = failures[found->second];
    failure.is_backward = is_eager_backward || row.record_kind.starts_with("bwd_") ||
                          row.record_kind.starts_with("aot_autograd_backward");
    if (failure.reason.empty() || row.kind == "failure") {
      failure.type = row.type;
      failure.reason = row.reason;
    }
    if (failure.place.file.empty() && row.user_file)
      failure.place = {std::string(*row.user_file), row.user_line, {}};
    if (failure.place.code.empty())
      failure.place.code = CodeOfFrame(row.reason, failure.place.file, failure.place.line);
  }
  // PyTorch names no exception that is no Exception (KeyboardInterrupt, SystemExit).
  for (const JobCompile& compile : context.job.compiles()) {
    if (compile.status == CompileStatus::kFailed && !by_compile.contains(compile.id))
      failures.push_back({&compile, {}, {}, {}, {}, 0, false});
  }
  ASSIGN_OR_RETURN(const BrokenCompiles broken, FindBrokenCompiles(context.database, context.job));
  for (Failure& one : failures) one.is_raised = broken.raised.contains(one.compile->id);
  std::erase_if(failures, [&](const Failure& one) {
    return IsRecompileLimit(one.type, one.reason) ||  // a finding of its own
           broken.eager.contains(one.compile->id) ||  // the break is the finding
           // The frame within it is.
           (one.is_raised && context.LastCompile(one.compile->participant) != one.compile);
  });
  return failures;
}

// PyTorch before 2.9 logs an unsupported construct in the same way whether the frame then runs
// eagerly or, with fullgraph=True, the caller gets the exception. A frame that runs eagerly is not
// compiled again.
bool MayRunEagerly(const FindingContext& context, const std::vector<const Failure*>& group) {
  std::set<std::pair<RankIndex, std::string>> frames;
  for (const Failure* one : group) {
    const std::string& label = context.job.string(one->compile->label_id);
    const std::string& version =
        context.job.participants()[static_cast<std::size_t>(one->compile->participant)]
            .torch_version;
    const bool is_recent =
        !version.starts_with("1.") && !version.starts_with("2.") && !version.empty();
    int minor = -1;
    if (version.starts_with("2."))
      std::from_chars(version.data() + 2, version.data() + version.size(), minor);
    if (!one->type.ends_with("Unsupported") || is_recent || minor >= 9 ||
        context.LastCompile(one->compile->participant) == one->compile ||
        !frames.insert({one->compile->participant, label.substr(0, label.rfind('/'))}).second)
      return false;
  }
  return true;
}

std::string TitleOf(const FindingContext& context, const std::vector<RankIndex>& who,
                    const std::string& compiles, const std::string& cause, const Finding& finding) {
  const std::optional<FindingPlace>& place = finding.place;
  const bool has_id = std::none_of(finding.compiles.begin(), finding.compiles.end(),
                                   [](const std::string& one) { return IsWithoutId(one); });
  const std::string of = fmt::format("The compile{} of {}",
                                     compiles.find(", ") == std::string::npos ? "" : "s", compiles);
  // An export, or a compile of AOTInductor.
  const std::string without_id =
      fmt::format("{}{}", place ? "The compile at " + PlaceText(*place) : "A compile without an id",
                  context.HasRanks() ? " on " + context.WhoInside(who) : "");
  if (cause.empty())
    return fmt::format("{} ended without code, and the log names no exception",
                       !has_id              ? without_id
                       : context.HasRanks() ? fmt::format("{} on {}", of, context.WhoInside(who))
                                            : of);
  if (!has_id) return fmt::format("{} failed: {}", without_id, cause);
  if (context.HasRanks())
    return fmt::format("{} failed to compile {}: {}", context.Who(who), compiles, cause);
  return fmt::format("{} failed: {}", of, cause);
}

void SetMayRunEagerly(Finding& finding) {
  finding.kind = FindingKind::kGraphBreak;
  finding.severity = FindingSeverity::kWarning;
  finding.detail =
      "It runs eagerly, or its caller got this exception if it was compiled with "
      "fullgraph=True: the log of this version of PyTorch does not show which. ";
}

// Whether another rank went on: it compiles, or has compiled what comes after this compile.
bool DoOthersGoOn(const FindingContext& context, const std::vector<RankIndex>& who,
                  const JobCompile& compile) {
  const std::vector<RankIndex> others = context.Others(who);
  const std::int32_t position = compile.slot < 0 ? -1 : context.job.SlotPosition(compile.slot);
  return std::any_of(others.begin(), others.end(),
                     [&](RankIndex other) {
                       return context.StatusOf(other).state == RankState::kCompiling;
                     }) ||
         std::any_of(context.job.compiles().begin(), context.job.compiles().end(),
                     [&](const JobCompile& one) {
                       return one.slot >= 0 && position >= 0 &&
                              std::binary_search(others.begin(), others.end(), one.participant) &&
                              (context.job.SlotPosition(one.slot) > position ||
                               (one.slot == compile.slot && one.backward_duration_us > 0));
                     });
}

// An exception of the user's code. A caller may handle it where no other rank shows otherwise.
void SetRaised(const FindingContext& context, const std::vector<RankIndex>& who,
               const std::string& compiles, const Failure& first, Finding& finding) {
  finding.title =
      fmt::format("{} raised {} in {} while it was traced; {} after that", context.Who(who),
                  Shorten(RaisedException(first.reason), 300), compiles,
                  who.size() == 1 ? "its log has no compile" : "their logs have no compile");
  if (!context.HasRanks())
    finding.title =
        fmt::format("{} raised {} while it was traced; the log has no compile after that", compiles,
                    Shorten(RaisedException(first.reason), 300));
  finding.detail =
      "Nothing in the compiled code handles it. The function then runs eagerly, and raises it "
      "again if it does the same. ";
  if (!context.HasRanks() || !DoOthersGoOn(context, who, *first.compile))
    finding.severity = FindingSeverity::kWarning;
}

// "Ranks 0,2,3 compiled it. ": of a backward those that compiled that as well.
std::string WhoCompiledIt(const FindingContext& context, const std::vector<RankIndex>& who,
                          const JobCompile& compile, bool is_backward) {
  std::vector<RankIndex> fine;
  for (const RankIndex other : context.Others(who)) {
    const std::int32_t index = compile.slot < 0 ? -1 : context.job.CompileOf(other, compile.slot);
    if (index < 0) continue;
    const JobCompile& own = context.job.compiles()[static_cast<std::size_t>(index)];
    // Of a stage or another program it may be another function.
    if (own.function_id != compile.function_id || own.file_id != compile.file_id ||
        own.line != compile.line)
      continue;
    const ProcessStatus& status = context.StatusOf(other);
    const bool ends_there = status.state == RankState::kCompiling && status.compile_id == own.id;
    if (IsFinished(own.status) && (!is_backward || (own.backward_duration_us > 0 && !ends_there)))
      fine.push_back(other);
  }
  return fine.empty() ? std::string() : context.Who(fine) + " compiled it. ";
}

// Whether the rank has compiled the function of this compile before.
bool WasCompiledBefore(const FindingContext& context, const JobCompile& failed) {
  const std::vector<JobCompile>& all = context.job.compiles();
  return std::any_of(all.begin(), all.end(), [&](const JobCompile& one) {
    return one.participant == failed.participant && one.id < failed.id &&
           one.function_id == failed.function_id && one.file_id == failed.file_id &&
           one.line == failed.line && IsFinished(one.status);
  });
}

// "It was compiled again: size 0 of x … ."
Result<void> SayRecompile(const FindingContext& context, const JobCompile& failed,
                          Finding& finding) {
  if (!WasCompiledBefore(context, failed)) return {};
  ASSIGN_OR_RETURN(const std::vector<FailedEntry> entries,
                   LoadFailedEntries(context.database, failed.id));
  if (!entries.empty())
    finding.detail += fmt::format("An earlier compile of it finished; it was compiled again {}. ",
                                  FailedEntriesText({entries.front()}, "after "));
  return {};
}

// A backend that failed is left out, or only its pass that did, where the log shows which it was.
Result<void> SetLeftOut(FindingContext& context, const Failure& failure, Finding& finding) {
  const bool is_of_backend =
      failure.type.ends_with("BackendCompilerFailed") || failure.type.ends_with("InductorError");
  if (!is_of_backend || !finding.changes.empty()) return {};
  ASSIGN_OR_RETURN(
      const FirstRow<PassOfFailure> row,
      First(Query<PassOfFailure>(context.database, {.compile_id = failure.compile->id})));
  if (!row) {
    finding.changes.push_back({ChangeKind::kBackend, {}, "aot_eager", {}, {}});
    if (finding.suggestion.empty())
      finding.suggestion =
          fmt::format("{} shows whether it is the backend that fails", TextOf(finding.changes));
    return {};
  }
  const std::string_view pass = row->name.substr(row->name.rfind('.') + 1);
  finding.detail += fmt::format("It came out of Inductor's pass {}. ", row->name);
  finding.changes.push_back({ChangeKind::kOption,
                             "torch._inductor.config.disabled_passes",
                             fmt::format("'{}'", pass),
                             {},
                             {}});
  if (finding.suggestion.empty())
    finding.suggestion = fmt::format("leave the pass out: {}", TextOf(finding.changes));
  return {};
}

// `group`: failures of one function with one cause.
Result<void> AddFailures(FindingContext& context, const std::vector<const Failure*>& group) {
  const Failure& first = *group.front();
  Finding& finding = context.Add(FindingKind::kCompileFailed, FindingSeverity::kError);
  std::set<RankIndex> ranks;
  std::set<std::int32_t> slots;
  std::vector<std::int64_t> ids;
  for (const Failure* one : group) {
    ranks.insert(one->compile->participant);
    if (one->compile->slot >= 0) slots.insert(one->compile->slot);
    ids.push_back(one->compile->id);
    if (one->time_us && (!finding.since_us || *one->time_us < *finding.since_us))
      finding.since_us = one->time_us;
  }
  const std::vector<RankIndex> who(ranks.begin(), ranks.end());
  context.SetRanks(finding, who);
  finding.function = context.FunctionOf(*first.compile);
  const std::string compiles = context.SetCompiles(finding, {slots.begin(), slots.end()}, who);
  finding.cause = CauseOfException(first.type, first.reason);
  const bool is_backward =
      std::all_of(group.begin(), group.end(), [](const Failure* one) { return one->is_backward; });
  finding.place = PlaceOfFailure(context, first);
  if (!finding.place && first.compile->is_synthetic) {
    ASSIGN_OR_RETURN(finding.place, PlaceOfRecords(context.database, first.compile->id));
  }
  finding.title = TitleOf(context, who, (is_backward ? "the backward of " : "") + compiles,
                          Shorten(finding.cause, 300), finding);
  if (finding.cause.empty()) {
    finding.cause = "no exception in the log";
    finding.detail =
        "PyTorch writes none for KeyboardInterrupt, SystemExit and others that are no "
        "Exception. ";
  }
  if (first.is_raised && !RaisedException(first.reason).empty())
    SetRaised(context, who, compiles, first, finding);
  SetHint(finding, HintOf(first.reason, WasCompiledBefore(context, *first.compile)));
  if (finding.suggestion.empty()) finding.suggestion = AdviceForException(first.reason);
  if (MayRunEagerly(context, group)) {
    finding.title = fmt::format(
        "{} not compiled{}: {}", compiles + (slots.size() == 1 ? " is" : " are"),
        context.HasRanks() ? " on " + context.WhoInside(who) : "", Shorten(finding.cause, 200));
    SetMayRunEagerly(finding);
  }
  RETURN_IF_ERROR(SetUserCaller(context, ids, finding));
  RETURN_IF_ERROR(SaySurvived(context, ids, finding));
  RETURN_IF_ERROR(SayRecompile(context, *first.compile, finding));
  RETURN_IF_ERROR(SetLeftOut(context, first, finding));
  finding.detail += WhoCompiledIt(context, who, *first.compile, is_backward);
  const std::string ids_text = IdList(ids);
  finding.query =
      first.type.empty()
          ? "SELECT * FROM compile_history WHERE compile_id IN " + ids_text
          : "SELECT * FROM failure WHERE compile_id IN " + ids_text + " ORDER BY record_id";
  const bool is_last = std::all_of(group.begin(), group.end(), [&](const Failure* one) {
    return context.LastCompile(one->compile->participant) == one->compile;
  });
  if (is_last && context.HasRanks() && !first.is_raised)
    finding.detail +=
        fmt::format("It is the last compile in the log of {}.", context.WhoInside(who));
  return {};
}

}  // namespace

Result<void> FindFailures(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Failure> failures, LoadFailures(context));
  using Key = std::tuple<std::int32_t, std::string, std::string>;
  std::map<Key, std::vector<const Failure*>> groups;
  std::vector<Key> order;
  for (const Failure& one : failures) {
    Key key{one.compile->function_id, one.type, CauseOfException(one.type, one.reason)};
    std::vector<const Failure*>& group = groups[key];
    if (group.empty()) order.push_back(key);
    group.push_back(&one);
  }
  for (const Key& key : order) RETURN_IF_ERROR(AddFailures(context, groups[key]));
  return {};
}

}  // namespace tlparse

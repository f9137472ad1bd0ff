// Compiles that failed: with which exception, on which ranks.
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
#include "facts/compiles/exceptions.h"
#include "findings/context.h"

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
  ASSIGN_OR_RETURN(
      Statement frames,
      database.Prepare(
          "WITH RECURSIVE frame(id, depth) AS (SELECT (SELECT stack_id FROM record_row "
          "WHERE compile_id = ? AND stack_id IS NOT NULL ORDER BY id DESC LIMIT 1), 0 UNION ALL "
          "SELECT s.parent_id, f.depth + 1 FROM frame f JOIN stack_frame s ON s.id = f.id) "
          "SELECT s.file, s.line, s.code "
          "FROM frame f JOIN stack_frame s ON s.id = f.id ORDER BY f.depth"));
  frames.Bind(1, compile_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, frames.Step());
    if (!has_row) return std::optional<FindingPlace>();
    if (IsUserFile(frames.Text(0)))
      return FindingPlace{std::string(frames.Text(0)), frames.Int(1), std::string(frames.Text(2))};
  }
}

// dynamo_error and the metrics' fail_type report one exception; the former has the user's line,
// the latter has the reason alone.
Result<std::vector<Failure>> LoadFailures(FindingContext& context) {
  ASSIGN_OR_RETURN(
      Statement rows,
      context.database.Prepare(
          "SELECT f.compile_id, k.text, t.text, r.text, u.text, f.user_line, f.record_id, "
          "c.local_us + p.time_shift_us, b.text FROM failure_row f "
          "JOIN text_row k ON k.id = f.kind_id "
          "LEFT JOIN text_row t ON t.id = f.type_id LEFT JOIN text_row r ON r.id = f.reason_id "
          "LEFT JOIN text_row u ON u.id = f.user_file_id "
          "LEFT JOIN record_row c ON c.id = f.record_id LEFT JOIN process p ON p.id = c.process_id "
          "LEFT JOIN text_row b ON b.id = c.kind_id "
          "WHERE k.text NOT IN ('restart', 'make_fx_fail_partial') AND " +
          context.job.InLogs("f.record_id") + " ORDER BY f.record_id"));
  std::vector<Failure> failures;
  std::map<std::int64_t, std::size_t> by_compile;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    const JobCompile* compile = context.job.FindCompile(rows.Int(0));
    if (compile == nullptr) continue;
    const std::string_view kind = rows.Text(1);
    if (compile->status != CompileStatus::kFailed && kind != "eager_compile_backwards_failure")
      continue;
    const auto [found, is_new] = by_compile.try_emplace(compile->id, failures.size());
    if (is_new) failures.push_back({compile, {}, {}, {}, rows.OptionalInt(7), rows.Int(6), false});
    Failure& failure = failures[found->second];
    const std::string_view record_kind = rows.Text(8);
    failure.is_backward = kind == "eager_compile_backwards_failure" ||
                          record_kind.starts_with("bwd_") ||
                          record_kind.starts_with("aot_autograd_backward");
    if (failure.reason.empty() || kind == "failure") {
      failure.type = rows.Text(2);
      failure.reason = rows.Text(3);
    }
    if (failure.place.file.empty() && !rows.IsNull(4))
      failure.place = {std::string(rows.Text(4)), rows.Int(5), {}};
    if (failure.place.code.empty())
      failure.place.code = CodeOfFrame(rows.Text(3), failure.place.file, failure.place.line);
  }
  // PyTorch names no exception that is no Exception (KeyboardInterrupt, SystemExit).
  for (const JobCompile& compile : context.job.compiles()) {
    if (compile.status == CompileStatus::kFailed && !by_compile.contains(compile.id))
      failures.push_back({&compile, {}, {}, {}, {}, 0, false});
  }
  ASSIGN_OR_RETURN(const std::set<std::int64_t> eager, CompilesRunEagerly(context));
  std::erase_if(failures, [&](const Failure& one) {
    return IsRecompileLimit(one.type, one.reason) ||  // a finding of its own
           eager.contains(one.compile->id);           // the break is the finding
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

// torch._dynamo.config.suppress_errors: a function that cannot be compiled runs eagerly.
Result<bool> AreSuppressed(FindingContext& context, const std::vector<std::int64_t>& compile_ids) {
  ASSIGN_OR_RETURN(const std::int64_t count,
                   context.database.QueryInt(fmt::format(
                       "SELECT count(DISTINCT m.compile_id) FROM compilation_metric_row m "
                       "JOIN record_row r ON r.id = m.record_id WHERE m.compile_id IN {} "
                       "AND (instr(r.envelope, '\"config_suppress_errors\": true') "
                       "OR instr(r.envelope, '\"config_suppress_errors\":true'))",
                       IdList(compile_ids))));
  return count == static_cast<std::int64_t>(std::min<std::size_t>(compile_ids.size(), 100));
}

std::string TitleOf(const FindingContext& context, const std::vector<RankIndex>& who,
                    const std::string& compiles, const std::string& cause,
                    const std::optional<FindingPlace>& place) {
  const bool has_id = compiles.find("a compile without") == std::string::npos;
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

// "Ranks 0,2,3 compiled it. "
std::string WhoCompiledIt(const FindingContext& context, const std::vector<RankIndex>& who,
                          const JobCompile& compile) {
  std::vector<RankIndex> fine;
  for (const RankIndex other : context.Others(who)) {
    const std::int32_t index = compile.slot < 0 ? -1 : context.job.CompileOf(other, compile.slot);
    if (index < 0) continue;
    if (IsFinished(context.job.compiles()[static_cast<std::size_t>(index)].status))
      fine.push_back(other);
  }
  return fine.empty() ? std::string() : context.Who(fine) + " compiled it. ";
}

// The compiles of a finding. Those of one slot may have other labels in the logs that failed than in
// the others: those that failed are named.
std::string NameCompiles(const FindingContext& context, const std::vector<const Failure*>& group,
                         const std::set<std::int32_t>& slots, Finding& finding) {
  const std::string text =
      context.SetCompiles(finding, std::vector<std::int32_t>(slots.begin(), slots.end()));
  const JobCompile& first = *group.front()->compile;
  const bool is_one =
      slots.size() == 1 && std::all_of(group.begin(), group.end(), [&](const Failure* one) {
        return one->compile->label_id == first.label_id;
      });
  if (!is_one) return text;
  finding.compiles = {context.job.string(first.label_id)};
  return context.Title(first);
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
  const std::string compiles = NameCompiles(context, group, slots, finding);
  finding.cause = CauseOfException(first.type, first.reason);
  const bool is_backward =
      std::all_of(group.begin(), group.end(), [](const Failure* one) { return one->is_backward; });
  finding.place = PlaceOfFailure(context, first);
  if (!finding.place && first.compile->is_synthetic) {
    ASSIGN_OR_RETURN(finding.place, PlaceOfRecords(context.database, first.compile->id));
  }
  finding.title = TitleOf(context, who, (is_backward ? "the backward of " : "") + compiles,
                          Shorten(finding.cause, 300), finding.place);
  if (finding.cause.empty()) {
    finding.cause = "no exception in the log";
    finding.detail =
        "PyTorch writes none for KeyboardInterrupt, SystemExit and others that are no "
        "Exception. ";
  }
  finding.suggestion = HintOf(first.reason);
  if (finding.suggestion.empty()) finding.suggestion = AdviceForException(first.reason);
  if (MayRunEagerly(context, group)) {
    finding.title = fmt::format(
        "{} not compiled{}: {}", compiles + (slots.size() == 1 ? " is" : " are"),
        context.HasRanks() ? " on " + context.WhoInside(who) : "", Shorten(finding.cause, 200));
    SetMayRunEagerly(finding);
  }
  ASSIGN_OR_RETURN(const bool is_suppressed, AreSuppressed(context, ids));
  if (is_suppressed && finding.kind == FindingKind::kCompileFailed) {
    finding.severity = FindingSeverity::kWarning;
    finding.detail +=
        "torch._dynamo.config.suppress_errors is set: the function runs eagerly instead. ";
  }
  finding.detail += WhoCompiledIt(context, who, *first.compile);
  const std::string ids_text = IdList(ids);
  finding.query =
      first.type.empty()
          ? "SELECT * FROM compile_history WHERE compile_id IN " + ids_text
          : "SELECT * FROM failure WHERE compile_id IN " + ids_text + " ORDER BY record_id";
  const bool is_last = std::all_of(group.begin(), group.end(), [&](const Failure* one) {
    return context.LastCompile(one->compile->participant) == one->compile;
  });
  if (is_last && context.HasRanks())
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

// Functions that were compiled again: how often, on which ranks, what varied, and how many attempts
// the limit refused.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/findings/advice.h"
#include "analysis/findings/context.h"
#include "analysis/findings/recompile_texts.h"
#include "analysis/guard_text.h"
#include "analysis/ranks/cause.h"
#include "analysis/recompile_reasons.h"
#include "artifacts/common/text/python_traceback.h"

namespace tlparse {
namespace {

// The recompiles of one function.
struct Function {
  std::string name, file;
  std::int64_t line = 0;
  std::map<RankIndex, std::size_t> count_of;    // recompiles that were made
  std::map<RankIndex, std::size_t> refused_of;  // attempts that the limit refused
  std::map<std::pair<RankIndex, std::string>, std::size_t> silent_of_frame;  // of those, by frame
  std::set<std::int32_t> slots;
  std::vector<std::int64_t> ids;
  RankIndex shown = -1;               // the first rank that recompiled it
  std::vector<Recompile> recompiles;  // of that rank, in order
  std::vector<std::int64_t> shown_ids;
  FindingPlace place;
  std::optional<std::int64_t> since_us;
  bool is_hard_limit = false;
  bool is_silent_limit = false;  // the log does not tell whether fullgraph=True makes it an error
  std::string limit_compile;     // the first that the limit refused

  bool IsLimit() const { return !limit_compile.empty(); }
};

using Functions = std::map<std::tuple<std::string, std::string, std::int64_t>, Function>;

Function& Of(const FindingContext& context, const JobCompile& compile, Functions& functions) {
  const std::string& name = context.FunctionOf(compile);
  // Without a name the label's frame distinguishes functions.
  const std::string& label = context.job.string(compile.label_id);
  const std::string shown_name = name.empty() ? "frame " + label.substr(0, label.rfind('/')) : name;
  const std::string file =
      compile.file_id < 0 ? std::string() : context.job.string(compile.file_id);
  Function& function = functions[{shown_name, file, compile.line}];
  function.name = shown_name;
  function.file = file;
  function.line = compile.line;
  return function;
}

Result<void> LoadEntries(FindingContext& context, const std::set<std::int64_t>& refused,
                         Function& function) {
  for (const std::int64_t id : function.shown_ids) {
    Recompile& one = function.recompiles.emplace_back();
    one.label = context.job.string(context.job.FindCompile(id)->label_id);
    one.is_refused = refused.contains(id);
    ASSIGN_OR_RETURN(one.entries, LoadFailedEntries(context.database, id));
    if (one.entries.empty() || !function.place.file.empty()) continue;
    const FailedEntry& newest = one.entries.front();
    if (!newest.file.empty()) function.place = {newest.file, newest.line, newest.reason.code};
  }
  return {};
}

Result<void> LoadReasons(FindingContext& context, const std::set<std::int64_t>& refused,
                         Functions& functions) {
  ASSIGN_OR_RETURN(
      Statement rows,
      context.database.Prepare("SELECT compile_id FROM recompile_row WHERE ordinal = 0 AND " +
                               context.job.InLogs("record_id") + " ORDER BY record_id"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    const JobCompile* compile = context.job.FindCompile(rows.Int(0));
    if (compile == nullptr) continue;
    Function& function = Of(context, *compile, functions);
    std::size_t& count = function.count_of[compile->participant];
    if (!refused.contains(compile->id)) ++count;
    if (compile->slot >= 0) function.slots.insert(compile->slot);
    function.ids.push_back(compile->id);
    if (compile->start_us != 0 && (!function.since_us || compile->start_us < *function.since_us))
      function.since_us = compile->start_us;
    if (function.shown < 0) function.shown = compile->participant;
    if (function.shown == compile->participant && function.shown_ids.size() < 1000)
      function.shown_ids.push_back(compile->id);
  }
  for (auto& [key, function] : functions) RETURN_IF_ERROR(LoadEntries(context, refused, function));
  return {};
}

// Returns the compiles that the limit refused.
Result<std::set<std::int64_t>> LoadLimits(FindingContext& context, Functions& functions) {
  ASSIGN_OR_RETURN(
      Statement rows,
      context.database.Prepare(
          "SELECT f.compile_id, t.text, r.text "
          "FROM failure_row f LEFT JOIN text_row t ON t.id = f.type_id "
          "LEFT JOIN text_row r ON r.id = f.reason_id WHERE f.type_id IS NOT NULL AND " +
          context.job.InLogs("f.record_id") + " ORDER BY f.record_id"));
  std::set<std::int64_t> refused;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return refused;
    const JobCompile* compile = context.job.FindCompile(rows.Int(0));
    if (compile == nullptr || !IsRecompileLimit(rows.Text(1), rows.Text(2))) continue;
    if (!refused.insert(compile->id).second) continue;
    Function& function = Of(context, *compile, functions);
    const std::string& label = context.job.string(compile->label_id);
    function.is_hard_limit = function.is_hard_limit || IsHardRecompileLimit(rows.Text(1));
    if (IsSilentRecompileLimit(rows.Text(1))) {
      function.is_silent_limit = true;
      // A function that runs eagerly is not tried again: its caller got an exception.
      if (++function.silent_of_frame[{compile->participant, label.substr(0, label.rfind('/'))}] > 1)
        function.is_hard_limit = true;
    }
    if (function.limit_compile.empty()) function.limit_compile = label;
    function.count_of.try_emplace(compile->participant, 0);
    ++function.refused_of[compile->participant];
    if (function.ids.empty()) function.ids.push_back(compile->id);
    if (compile->slot >= 0) function.slots.insert(compile->slot);
  }
}

// A recompile on some ranks only is a divergence. If that is reported, the last finding becomes
// evidence of it, and its advice moves there.
void FoldIntoDivergence(FindingContext& context) {
  Finding& own = context.findings.back();
  if (own.ranks.empty()) return;
  // Where there is no majority, the divergence names both sides.
  const auto is_same = [&](const Finding& other) {
    const bool is_of_ranks =
        other.ranks == own.ranks ||
        ((other.ranks.empty() || std::includes(other.ranks.begin(), other.ranks.end(),
                                               own.ranks.begin(), own.ranks.end())) &&
         std::find_first_of(other.compiles.begin(), other.compiles.end(), own.compiles.begin(),
                            own.compiles.end()) != other.compiles.end());
    return (other.kind == FindingKind::kExtraCompile ||
            other.kind == FindingKind::kMissingCompile ||
            other.kind == FindingKind::kInputDivergence) &&
           is_of_ranks && other.function == own.function;
  };
  for (Finding& other : context.findings) {
    if (&other == &own) continue;
    if (std::any_of(other.evidence.begin(), other.evidence.end(), is_same)) {
      Finding evidence = std::move(own);
      context.findings.pop_back();
      other.evidence.push_back(std::move(evidence));
      return;
    }
    if (!is_same(other)) continue;
    if (!other.place) other.place = own.place;
    if (other.suggestion.empty()) other.suggestion = own.suggestion;
    Finding evidence = std::move(own);
    context.findings.pop_back();
    other.evidence.push_back(std::move(evidence));
    return;
  }
}

// The least and the most of the ranks.
struct Range {
  std::size_t least = SIZE_MAX, most = 0;
};

Range RangeOf(const std::map<RankIndex, std::size_t>& counts) {
  Range range;
  for (const auto& [rank, count] : counts) {
    range.least = std::min(range.least, count);
    range.most = std::max(range.most, count);
  }
  return range;
}

// "; 4 further attempts were refused: …"
std::string LimitText(const Function& function, bool has_recompiles) {
  const Range range = RangeOf(function.refused_of);
  const std::string count = range.least == range.most
                                ? std::to_string(range.most)
                                : fmt::format("{} to {}", range.least, range.most);
  const bool is_one = range.most == 1;
  return fmt::format(
      "{}{} {}attempt{} {} refused at the recompile limit{}", has_recompiles ? "; " : ": ", count,
      has_recompiles ? "further " : "", is_one ? "" : "s", is_one ? "was" : "were",
      function.is_hard_limit ? ", which is an error with fullgraph=True"
      : function.is_silent_limit
          ? ": it runs eagerly from then on where no compile fits, or fails with fullgraph=True"
          : ": it runs eagerly from then on where no compile fits");
}

// Where the guards came from, else where the function begins.
std::optional<FindingPlace> PlaceOf(const Function& function) {
  // A guard on a library's state is due to the function that was compiled.
  if (function.place.file.empty() ||
      (!IsUserFile(function.place.file) && IsUserFile(function.file))) {
    if (function.file.empty()) return std::nullopt;
    return FindingPlace{function.file, function.line, {}};
  }
  FindingPlace place = function.place;
  // libtrace says what the value was before the place: "x.size(0) is 256, model.py".
  if (const std::size_t comma = place.file.rfind(", "); comma != std::string::npos)
    place.file.erase(0, comma + 2);
  place.file = WholePath(place.file, function.file);
  return place;
}

std::string TitleOf(const FindingContext& context, const Function& function,
                    const std::vector<RankIndex>& who) {
  const Range range = RangeOf(function.count_of);
  std::string title = function.name;
  if (range.most > 0) {
    title += " was recompiled ";
    title += range.least == range.most ? Times(range.most)
                                       : fmt::format("{} to {} times", range.least, range.most);
    if (context.job.HasSeveral() && context.HasRanks())
      title += who.size() == 1 ? " on " + context.WhoInside(who)
               : who.size() == context.job.participants().size()
                   ? fmt::format(" on each of the {} ranks", who.size())
                   : " on each of " + context.WhoInside(who);
    else if (context.job.HasSeveral())
      title += who.size() == 1 ? " in " + context.WhoInside(who)
                               : fmt::format(" in each of {} logs", who.size());
    if (const std::string varied = Varied(function.recompiles); !varied.empty())
      title += fmt::format(" ({})", varied);
  }
  if (function.IsLimit()) title += LimitText(function, range.most > 0);
  return title;
}

Result<void> Tell(FindingContext& context, const Function& function) {
  const bool is_repeated = RangeOf(function.count_of).most > 1;
  Finding& finding =
      context.Add(function.IsLimit() ? FindingKind::kRecompileLimit : FindingKind::kRecompiles,
                  function.is_hard_limit              ? FindingSeverity::kError
                  : function.IsLimit() || is_repeated ? FindingSeverity::kWarning
                                                      : FindingSeverity::kNote);
  std::vector<RankIndex> who;
  for (const auto& [rank, count] : function.count_of) who.push_back(rank);
  context.SetRanks(finding, who);
  context.SetCompiles(finding,
                      std::vector<std::int32_t>(function.slots.begin(), function.slots.end()));
  finding.function = function.name;
  finding.since_us = function.since_us;
  finding.title = TitleOf(context, function, who);
  finding.cause = Varied(function.recompiles);
  finding.place = PlaceOf(function);
  if (finding.place && !IsUserFile(finding.place->file) && !function.shown_ids.empty()) {
    ASSIGN_OR_RETURN(const std::optional<FindingPlace> caller,
                     UserCaller(context.database, function.shown_ids.front()));
    if (caller) {
      finding.detail = fmt::format(
          "The function is of a library, {}:{}; the place named is the "
          "line of the user's code that ran it. ",
          finding.place->file, finding.place->line);
      finding.place = caller;
    }
  }
  if (function.IsLimit())
    finding.detail +=
        fmt::format("The first compile that was refused: {}.", function.limit_compile);
  finding.suggestion = AdviceFor(function.recompiles);
  if (const std::string guards = FailedGuards(function.recompiles); !guards.empty())
    finding.detail +=
        fmt::format("{}Guards that failed: {}.",
                    finding.detail.empty() || finding.detail.ends_with(' ') ? "" : " ", guards);
  finding.query = fmt::format("SELECT * FROM recompile WHERE compile_id IN {} ORDER BY record_id",
                              IdList(function.ids));
  FoldIntoDivergence(context);
  return {};
}

}  // namespace

Result<void> FindRecompiles(FindingContext& context) {
  Functions functions;
  ASSIGN_OR_RETURN(const std::set<std::int64_t> refused, LoadLimits(context, functions));
  RETURN_IF_ERROR(LoadReasons(context, refused, functions));
  for (const auto& [key, function] : functions) RETURN_IF_ERROR(Tell(context, function));
  return {};
}

}  // namespace tlparse

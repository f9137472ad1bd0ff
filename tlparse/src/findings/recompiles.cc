// Functions that were compiled again: how often, on which ranks, what varied, and how many attempts
// the limit refused.
#include "queries/findings/recompiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "artifacts/common/text/python_traceback.h"
#include "artifacts/common/text/recompile_limit.h"
#include "facts/cache/cause.h"
#include "facts/compiles/advice.h"
#include "facts/compiles/recompile_reasons.h"
#include "facts/compiles/recompile_texts.h"
#include "facts/text/guard_text.h"
#include "findings/context.h"
#include "findings/recompile_fold.h"
#include "findings/recompile_places.h"
#include "findings/recompile_sizes.h"

namespace tlparse {
namespace {

// The recompiles of one function.
struct Function {
  std::string name, file;
  std::int64_t line = 0;
  std::map<RankIndex, std::size_t> count_of;    // recompiles that were made
  std::map<RankIndex, std::size_t> refused_of;  // attempts that the limit refused
  std::map<std::pair<RankIndex, std::string>, std::size_t> silent_of_frame;  // of those, by frame
  std::map<RankIndex, std::vector<std::int64_t>> ids_of;
  std::vector<std::int64_t> refused_ids;
  std::map<RankIndex, std::set<std::int32_t>> slots_of;
  std::set<RankIndex> having;  // ranks that compiled it
  // The ranks that are reported: all that recompiled it, or those that did so more than the others.
  std::vector<RankIndex> who;
  std::vector<RankIndex> usual;       // the others; empty: there are none
  std::vector<Recompile> recompiles;  // of the first of them, in order
  std::vector<std::int64_t> shown_ids;
  // " on rank 0" and on the ranks on which the same varied, if another thing did on other ranks.
  std::string of_first, of_alike;
  FindingPlace place;
  std::optional<std::int64_t> since_us;
  bool is_hard_limit = false;
  bool is_silent_limit = false;  // the log does not tell whether fullgraph=True makes it an error
  std::string limit_compile;     // the first that the limit refused

  bool IsLimit() const { return !limit_compile.empty(); }
};

using FunctionKey = std::tuple<std::string, std::string, std::int64_t>;
using Functions = std::map<FunctionKey, Function>;

FunctionKey KeyOf(const FindingContext& context, const JobCompile& compile) {
  const std::string& name = context.FunctionOf(compile);
  // Without a name the label's frame distinguishes functions.
  const std::string& label = context.job.string(compile.label_id);
  return {name.empty() ? "frame " + label.substr(0, label.rfind('/')) : name,
          compile.file_id < 0 ? std::string() : context.job.string(compile.file_id), compile.line};
}

Function& Of(const FindingContext& context, const JobCompile& compile, Functions& functions) {
  const FunctionKey key = KeyOf(context, compile);
  Function& function = functions[key];
  std::tie(function.name, function.file, function.line) = key;
  return function;
}

constexpr std::size_t kMostShown = 1000;

std::vector<std::int64_t> ShownIds(const Function& function, RankIndex rank) {
  const auto ids = function.ids_of.find(rank);
  if (ids == function.ids_of.end()) return {};
  return {ids->second.begin(), ids->second.begin() + static_cast<std::ptrdiff_t>(
                                                         std::min(ids->second.size(), kMostShown))};
}

Result<std::vector<Recompile>> LoadRecompiles(FindingContext& context,
                                              const std::set<std::int64_t>& refused,
                                              const std::vector<std::int64_t>& ids) {
  std::vector<Recompile> recompiles;
  for (const std::int64_t id : ids) {
    Recompile& one = recompiles.emplace_back();
    const JobCompile& compile = *context.job.FindCompile(id);
    one.label = context.job.string(compile.label_id);
    one.is_refused = refused.contains(id);
    ASSIGN_OR_RETURN(one.entries, LoadFailedEntries(context.database, id));
  }
  PutTellingFirst(recompiles);
  return recompiles;
}

Result<void> LoadEntries(FindingContext& context, const std::set<std::int64_t>& refused,
                         Function& function) {
  function.shown_ids = ShownIds(function, function.who.front());
  ASSIGN_OR_RETURN(function.recompiles, LoadRecompiles(context, refused, function.shown_ids));
  RETURN_IF_ERROR(SetSizes(context, function.shown_ids, function.recompiles));
  for (Recompile& one : function.recompiles)
    one.is_of_call = !function.file.empty() && !IsUserFile(function.file) && !one.entries.empty() &&
                     IsOfCall(one.entries.front().reason);
  if (const FailedEntry* const entry = EntryOfMost(function.recompiles))
    function.place = {entry->file, entry->line, entry->reason.code};
  // What varied on the first rank is not told of others that saw other values.
  constexpr std::size_t kMostCompared = 8;
  const std::string varied = Varied(function.recompiles);
  std::vector<RankIndex> alike = {function.who.front()};
  const std::size_t compared = std::min(function.who.size(), kMostCompared);
  for (std::size_t i = 1; i < compared; ++i) {
    ASSIGN_OR_RETURN(const std::vector<Recompile> others,
                     LoadRecompiles(context, refused, ShownIds(function, function.who[i])));
    if (Varied(others) == varied) alike.push_back(function.who[i]);
  }
  if (alike.size() == compared) return {};
  function.of_alike = " on " + context.WhoInside(alike);
  function.of_first = " on " + context.WhoInside({function.who.front()});
  return {};
}

// How much a rank recompiled a function: whether the limit refused it, and how often.
using Extent = std::pair<bool, std::size_t>;

Extent ExtentOf(const Function& function, RankIndex rank) {
  const auto count = function.count_of.find(rank);
  return {function.refused_of.contains(rank), count == function.count_of.end() ? 0 : count->second};
}

// Ranks that recompiled it more than most, or than the other half, or that alone reached the limit,
// are the odd ones.
void ChooseWho(const FindingContext& context, Function& function) {
  for (const auto& [rank, count] : function.count_of) function.who.push_back(rank);
  // While the job runs, the others may come to it later.
  if (!context.HasRanks() || context.live != nullptr) return;
  std::map<Extent, std::vector<RankIndex>> groups;
  std::size_t count = 0;
  for (const RankIndex rank : function.having) {
    const LogDamage& damage = context.ranks.damage;
    if (!context.job.participants()[static_cast<std::size_t>(rank)].rank ||
        damage.EndsEarly(context.job, rank) || damage.AreDamaged({rank}))
      continue;
    groups[ExtentOf(function, rank)].push_back(rank);
    ++count;
  }
  // Of two halves the one that did so less.
  const auto usual = std::find_if(groups.begin(), groups.end(),
                                  [&](const auto& one) { return 2 * one.second.size() >= count; });
  if (usual == groups.end()) return;
  std::vector<RankIndex> more;
  for (const RankIndex rank : function.who) {
    if (ExtentOf(function, rank) > usual->first) more.push_back(rank);
  }
  if (more.empty()) return;
  function.who = std::move(more);
  function.usual = usual->second;
}

Result<void> LoadReasons(FindingContext& context, const std::set<std::int64_t>& refused,
                         Functions& functions) {
  FOR_EACH_ROW(
      const RecompileOfJob& row,
      Query<RecompileOfJob>(context.database, {.in_logs = context.job.InLogs("record_id")})) {
    const JobCompile* compile = row.compile_id ? context.job.FindCompile(*row.compile_id) : nullptr;
    // One that failed is reported by FindFailures.
    if (compile == nullptr ||
        (compile->status == CompileStatus::kFailed && !refused.contains(compile->id)))
      continue;
    Function& function = Of(context, *compile, functions);
    std::size_t& count = function.count_of[compile->participant];
    if (!refused.contains(compile->id)) ++count;
    if (compile->slot >= 0) function.slots_of[compile->participant].insert(compile->slot);
    function.ids_of[compile->participant].push_back(compile->id);
    if (compile->start_us != 0 && (!function.since_us || compile->start_us < *function.since_us))
      function.since_us = compile->start_us;
  }
  for (const JobCompile& compile : context.job.compiles()) {
    const auto found = functions.find(KeyOf(context, compile));
    if (found != functions.end()) found->second.having.insert(compile.participant);
  }
  for (auto& [key, function] : functions) {
    ChooseWho(context, function);
    RETURN_IF_ERROR(LoadEntries(context, refused, function));
  }
  return {};
}

// Returns the compiles that the limit refused.
Result<std::set<std::int64_t>> LoadLimits(FindingContext& context, Functions& functions) {
  std::set<std::int64_t> refused;
  FOR_EACH_ROW(
      const TypedFailure& row,
      Query<TypedFailure>(context.database, {.in_logs = context.job.InLogs("f.record_id")})) {
    const JobCompile* compile = row.compile_id ? context.job.FindCompile(*row.compile_id) : nullptr;
    if (compile == nullptr || !IsRecompileLimit(row.type, row.reason)) continue;
    if (!refused.insert(compile->id).second) continue;
    Function& function = Of(context, *compile, functions);
    const std::string& label = context.job.string(compile->label_id);
    function.is_hard_limit = function.is_hard_limit || IsHardRecompileLimit(row.type);
    if (IsSilentRecompileLimit(row.type)) {
      function.is_silent_limit = true;
      // A function that runs eagerly is not tried again: its caller got an exception.
      if (++function.silent_of_frame[{compile->participant, label.substr(0, label.rfind('/'))}] > 1)
        function.is_hard_limit = true;
    }
    if (function.limit_compile.empty()) function.limit_compile = label;
    function.count_of.try_emplace(compile->participant, 0);
    ++function.refused_of[compile->participant];
    function.refused_ids.push_back(compile->id);
    if (compile->slot >= 0) function.slots_of[compile->participant].insert(compile->slot);
  }
  return refused;
}

// The least and the most of the ranks.
struct Range {
  std::size_t least = SIZE_MAX, most = 0;
};

Range RangeOf(const std::map<RankIndex, std::size_t>& counts, const std::vector<RankIndex>& who) {
  Range range;
  for (const RankIndex rank : who) {
    const auto count = counts.find(rank);
    range.least = std::min(range.least, count == counts.end() ? 0 : count->second);
    range.most = std::max(range.most, count == counts.end() ? 0 : count->second);
  }
  return range;
}

// "once", "3 times", "3 to 4 times"
std::string TimesText(const Range& range) {
  return range.least == range.most ? Times(range.most)
                                   : fmt::format("{} to {} times", range.least, range.most);
}

// "; 4 further attempts were refused: …"
std::string LimitText(const Function& function, bool has_recompiles) {
  const Range range = RangeOf(function.refused_of, function.who);
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

// "Only rank 2 recompiled f: 7 times", "Rank 2 recompiled f 7 times, ranks 0,1 once"
std::string TitleOfOdd(const FindingContext& context, const Function& function,
                       const std::string& name, const std::string& varied) {
  const Range range = RangeOf(function.count_of, function.who);
  const Range usual = RangeOf(function.count_of, function.usual);
  const std::string brackets = varied.empty() ? "" : fmt::format(" ({})", varied);
  if (range.most == 0)
    return fmt::format("Only {} had a compile of {} refused", context.WhoInside(function.who),
                       name);
  if (usual.most > 0)
    return fmt::format("{} recompiled {} {}{}, {} {}", context.Who(function.who), name,
                       TimesText(range), brackets, context.WhoInside(function.usual),
                       TimesText(usual));
  return fmt::format("Only {} recompiled {}: {}{}{}", context.WhoInside(function.who), name,
                     TimesText(range), function.who.size() == 1 ? "" : " each", brackets);
}

std::string TitleOf(const FindingContext& context, const Function& function) {
  std::string varied = Varied(function.recompiles);
  if (!varied.empty()) varied += function.of_alike;
  const std::vector<RankIndex>& who = function.who;
  const Range range = RangeOf(function.count_of, who);
  std::string title = context.NameOf({function.file, function.line, {}}, function.name);
  if (!function.usual.empty()) {
    title = TitleOfOdd(context, function, title, varied);
  } else if (range.most > 0) {
    title += " was recompiled " + TimesText(range);
    if (context.job.HasSeveral() && context.HasRanks())
      title += who.size() == 1       ? " on " + context.WhoInside(who)
               : context.AreAll(who) ? fmt::format(" on each of the {} ranks", who.size())
                                     : " on each of " + context.WhoInside(who);
    else if (context.job.HasSeveral())
      title += who.size() == 1 ? " in " + context.WhoInside(who)
                               : fmt::format(" in each of {} logs", who.size());
    if (!varied.empty()) title += fmt::format(" ({})", varied);
  }
  if (function.IsLimit()) title += LimitText(function, range.most > 0);
  return title;
}

bool IsRepeated(const Function& function) {
  return AreRepeated(function.recompiles, RangeOf(function.count_of, function.who).most);
}

// Whether it sets these ranks apart from several that never recompiled the function.
bool AreAlone(const Function& function) {
  return function.usual.size() > 1 && RangeOf(function.count_of, function.usual).most == 0 &&
         Varied(function.recompiles).find("(user_override)") == std::string::npos;
}

Result<Finding> Make(FindingContext& context, const Function& function) {
  const bool is_odd = !function.usual.empty();
  Finding finding;
  finding.kind = function.IsLimit() ? FindingKind::kRecompileLimit
                 : is_odd           ? FindingKind::kExtraCompile
                                    : FindingKind::kRecompiles;
  finding.severity = function.is_hard_limit ? FindingSeverity::kError
                     : function.IsLimit() || (!IsTorchFile(function.file) &&
                                              (IsRepeated(function) || AreAlone(function)))
                         ? FindingSeverity::kWarning
                         : FindingSeverity::kNote;
  finding.is_asked_for =
      std::all_of(function.recompiles.begin(), function.recompiles.end(), &IsWanted);
  finding.launch = context.job.launch();
  context.SetRanks(finding, function.who);
  std::set<std::int32_t> slots;
  std::vector<std::int64_t> ids;
  for (const RankIndex rank : function.who) {
    if (const auto own = function.slots_of.find(rank); own != function.slots_of.end())
      slots.insert(own->second.begin(), own->second.end());
    if (const auto own = function.ids_of.find(rank); own != function.ids_of.end())
      ids.insert(ids.end(), own->second.begin(), own->second.end());
  }
  if (ids.empty()) ids = function.refused_ids;
  context.SetCompiles(finding, {slots.begin(), slots.end()}, function.who);
  finding.function = function.name;
  finding.since_us = function.since_us;
  finding.title = TitleOf(context, function);
  finding.cause = Varied(function.recompiles);
  finding.place = PlaceOf(function);
  if (finding.place) RETURN_IF_ERROR(CompletePath(context, *finding.place));
  RETURN_IF_ERROR(SetUserCaller(context, function.shown_ids, finding));
  if (function.IsLimit())
    finding.detail +=
        fmt::format("The first compile that was refused: {}. ", function.limit_compile);
  if (const std::string guards = FailedGuards(function.recompiles); !guards.empty())
    finding.detail += fmt::format("Guards that failed{}: {}.", function.of_first, guards);
  SetAdvice(function.recompiles, function.file, finding);
  finding.query =
      fmt::format("SELECT * FROM recompile WHERE compile_id IN {} ORDER BY record_id", IdList(ids));
  return finding;
}

}  // namespace

Result<void> FindRecompiles(FindingContext& context) {
  Functions functions;
  ASSIGN_OR_RETURN(const std::set<std::int64_t> refused, LoadLimits(context, functions));
  RETURN_IF_ERROR(LoadReasons(context, refused, functions));
  for (const auto& [key, function] : functions) {
    ASSIGN_OR_RETURN(Finding finding, Make(context, function));
    const bool is_one = RangeOf(function.count_of, function.who).most < 2 && !function.IsLimit();
    AddRecompiles(context, std::move(finding),
                  is_one                 ? RecompileExtent::kOne
                  : IsRepeated(function) ? RecompileExtent::kRepeated
                                         : RecompileExtent::kSeveral);
  }
  FoldRecompiles(context);
  return {};
}

}  // namespace tlparse

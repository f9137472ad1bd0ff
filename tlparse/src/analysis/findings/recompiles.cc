// Functions that were compiled again: how often, on which ranks, what varied, and how many attempts
// the limit refused.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/findings/advice.h"
#include "analysis/findings/context.h"
#include "analysis/guard_text.h"
#include "analysis/ranks/cause.h"
#include "analysis/recompile_reasons.h"
#include "artifacts/common/text/python_traceback.h"

namespace tlparse {
namespace {

// One recompile: what each cache entry that was tried failed on, the newest entry first.
struct Recompile {
  std::string label;
  bool is_refused = false;  // by the limit
  std::vector<FailedEntry> entries;
};

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
          "SELECT f.compile_id, t.text, r.text FROM failure_row f LEFT JOIN text_row t "
          "ON t.id = f.type_id LEFT JOIN text_row r ON r.id = f.reason_id "
          "WHERE f.type_id IS NOT NULL AND " +
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

// What the guards compared, with its values, and how many recompiles it had a part in.
struct Subject {
  std::string name;
  std::string at;  // its line, where the name is one of generated code
  std::vector<std::string> values;
  std::size_t count = 0;
  std::size_t last = SIZE_MAX;  // the recompile that was counted last

  void Add(const std::string& value) {
    if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end())
      values.push_back(value);
  }
};

// "n: 1, 2, 3" of the guards that failed, the subject of most recompiles first.
std::string Varied(const std::vector<Recompile>& recompiles) {
  std::vector<Subject> subjects;
  for (std::size_t i = 0; i < recompiles.size(); ++i) {
    for (const FailedEntry& entry : recompiles[i].entries) {
      const std::string& name = entry.reason.subject;
      auto found = std::find_if(subjects.begin(), subjects.end(), [&](const Subject& one) {
        return one.name == name && one.at == entry.reason.at;
      });
      if (found == subjects.end())
        found = subjects.insert(subjects.end(), {name, entry.reason.at, {}, 0, SIZE_MAX});
      if (found->last != i) ++found->count, found->last = i;
      found->Add(entry.reason.value);
      found->Add(entry.reason.actual);
    }
  }
  std::stable_sort(subjects.begin(), subjects.end(),
                   [](const Subject& a, const Subject& b) { return a.count > b.count; });
  std::string text;
  constexpr std::size_t kMostSubjects = 3, kMostValues = 6;
  for (std::size_t i = 0; i < subjects.size() && i < kMostSubjects; ++i) {
    text += (i == 0 ? "" : "; ") + Shorten(subjects[i].name, 120);
    const std::vector<std::string>& values = subjects[i].values;
    for (std::size_t j = 0; j < values.size() && j < kMostValues; ++j)
      text += (j == 0 ? ": " : ", ") + Shorten(values[j], 60);
    if (values.size() > kMostValues) text += ", …";
    if (!subjects[i].at.empty() && HasGeneratedNames(subjects[i].name))
      text += " at: " + subjects[i].at;
  }
  if (subjects.size() > kMostSubjects)
    text += fmt::format("; and {} more", subjects.size() - kMostSubjects);
  return text;
}

// What to try against the subject on which the newest entry failed in most recompiles, among those
// that advice is known for; with how many they are, if not all. What the limit refused is none. An
// older entry may have failed on what the newest one has made dynamic since.
std::string AdviceFor(const std::vector<Recompile>& recompiles) {
  struct Advice {
    std::string text;
    std::size_t all = 0, made = 0;
  };
  std::map<std::string, Advice> known;
  std::vector<std::string> order;
  std::size_t made = 0;
  std::string hint;  // against a specialization: no later compile lifts it
  for (const Recompile& one : recompiles) {
    for (const FailedEntry& entry : one.entries) {
      if (hint.empty()) hint = entry.reason.unbacked_hint;
    }
    if (one.entries.empty()) continue;
    const RecompileReason& reason = one.entries.front().reason;
    const auto [found, is_new] = known.try_emplace(reason.subject);
    if (is_new) order.push_back(found->first);
    if (found->second.text.empty()) found->second.text = AdviceForRecompiles(reason);
    ++found->second.all;
    if (one.is_refused) continue;
    ++found->second.made;
    ++made;
  }
  const Advice* best = nullptr;
  for (const std::string& subject : order) {
    const Advice& advice = known[subject];
    if (!advice.text.empty() && (best == nullptr || advice.all > best->all)) best = &advice;
  }
  if (best == nullptr) return hint;
  std::string text = best->text;
  if (best->all != recompiles.size() && made != 0 && best->made != 0)
    text += fmt::format(" ({} of the {} recompiles)", best->made, made);
  if (!hint.empty() && hint != best->text) text += "; " + hint;
  return text;
}

// "0/2 after 0/1: n == 2; after 0/0: dtype of x …; 0/3 …": the guards that failed. Where older
// entries failed on the same as a newer one, with values of their own, the newer one is shown.
std::string FailedGuards(const std::vector<Recompile>& recompiles) {
  constexpr std::size_t kMost = 12;
  std::string text;
  std::size_t shown = 0, left_out = 0;
  for (const Recompile& one : recompiles) {
    std::vector<std::pair<std::string, std::string>> guards;  // guard, labels
    std::set<std::string> subjects;
    for (const FailedEntry& entry : one.entries) {
      const std::string guard = Shorten(entry.reason.text, 160);
      auto found = std::find_if(guards.begin(), guards.end(),
                                [&](const auto& known) { return known.first == guard; });
      if (found == guards.end()) {
        if (!subjects.insert(entry.reason.subject + "\n" + entry.reason.at).second) continue;
        found = guards.insert(guards.end(), {guard, {}});
      }
      if (!entry.label.empty()) found->second += (found->second.empty() ? "" : ",") + entry.label;
    }
    for (std::size_t i = 0; i < guards.size(); ++i) {
      if (++shown > kMost) {
        ++left_out;
        continue;
      }
      const auto& [guard, labels] = guards[i];
      text += fmt::format("{}{}{}{}{}", text.empty() ? "" : "; ", i == 0 ? one.label : "",
                          i == 0 && !labels.empty() ? " " : "",
                          labels.empty() ? "" : "after " + labels, ": " + guard);
    }
  }
  if (left_out > 0) text += fmt::format("; and {} more", left_out);
  return text;
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
    if (const std::string varied = Varied(function.recompiles); !varied.empty())
      title += fmt::format(" ({})", varied);
  }
  if (function.IsLimit()) title += LimitText(function, range.most > 0);
  return title;
}

void Tell(FindingContext& context, const Function& function) {
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
  if (function.IsLimit())
    finding.detail = fmt::format("The first compile that was refused: {}.", function.limit_compile);
  finding.suggestion = AdviceFor(function.recompiles);
  if (const std::string guards = FailedGuards(function.recompiles); !guards.empty())
    finding.detail +=
        fmt::format("{}Guards that failed: {}.", finding.detail.empty() ? "" : " ", guards);
  finding.query = fmt::format("SELECT * FROM recompile WHERE compile_id IN {} ORDER BY record_id",
                              IdList(function.ids));
  FoldIntoDivergence(context);
}

}  // namespace

Result<void> FindRecompiles(FindingContext& context) {
  Functions functions;
  ASSIGN_OR_RETURN(const std::set<std::int64_t> refused, LoadLimits(context, functions));
  RETURN_IF_ERROR(LoadReasons(context, refused, functions));
  for (const auto& [key, function] : functions) Tell(context, function);
  return {};
}

}  // namespace tlparse

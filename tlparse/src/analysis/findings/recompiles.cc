// Functions that were compiled again: how often, on which ranks, what varied, and whether the limit
// was reached. Graph breaks by place.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/findings/advice.h"
#include "analysis/findings/context.h"
#include "analysis/ranks/cause.h"

namespace tlparse {
namespace {

// The recompiles of one function.
struct Function {
  std::string name, file;
  std::int64_t line = 0;
  std::map<RankIndex, std::size_t> count_of;
  std::set<std::int32_t> slots;
  std::vector<std::int64_t> ids;
  std::vector<RecompileReason> reasons;  // of the rank that recompiled most, in order
  RankIndex shown = -1;
  FindingPlace place;
  std::optional<std::int64_t> since_us;
  bool is_limit = false, is_hard_limit = false;
  std::string limit_compile;  // the first that the limit refused

  std::size_t MostOfARank() const {
    std::size_t most = 0;
    for (const auto& [rank, count] : count_of) most = std::max(most, count);
    return most;
  }
};

using Functions = std::map<std::tuple<std::string, std::string, std::int64_t>, Function>;

Function& Of(const FindingContext& context, const JobCompile& compile, Functions& functions) {
  const std::string& name = context.FunctionOf(compile);
  // Without a name the label's frame tells functions apart.
  const std::string& label = context.job.string(compile.label_id);
  const std::string file =
      compile.file_id < 0 ? std::string() : context.job.string(compile.file_id);
  Function& function =
      functions[{name.empty() ? label.substr(0, label.rfind('/')) : name, file, compile.line}];
  function.name = name.empty() ? label.substr(0, label.rfind('/')) : name;
  function.file = file;
  function.line = compile.line;
  return function;
}

Result<void> LoadReasons(FindingContext& context, Functions& functions) {
  ASSIGN_OR_RETURN(
      Statement rows,
      context.database.Prepare(
          "SELECT m.compile_id, g.text, r.text, f.text, m.user_line FROM recompile_row m "
          "LEFT JOIN text_row g ON g.id = m.guard_id LEFT JOIN text_row r ON r.id = m.reason_id "
          "LEFT JOIN text_row f ON f.id = m.user_file_id WHERE m.ordinal = 0 ORDER BY "
          "m.record_id"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    const JobCompile* compile = context.job.FindCompile(rows.Int(0));
    if (compile == nullptr) continue;
    Function& function = Of(context, *compile, functions);
    ++function.count_of[compile->participant];
    if (compile->slot >= 0) function.slots.insert(compile->slot);
    function.ids.push_back(compile->id);
    if (compile->start_us != 0 && (!function.since_us || compile->start_us < *function.since_us))
      function.since_us = compile->start_us;
    if (function.shown < 0) function.shown = compile->participant;
    if (function.shown != compile->participant || function.reasons.size() >= 1000) continue;
    function.reasons.push_back(ParseRecompileReason(rows.Text(1), rows.Text(2)));
    if (function.place.file.empty() && !rows.IsNull(3))
      function.place = {std::string(rows.Text(3)), rows.Int(4), function.reasons.back().code};
  }
}

Result<void> LoadLimits(FindingContext& context, Functions& functions) {
  ASSIGN_OR_RETURN(
      Statement rows,
      context.database.Prepare(
          "SELECT f.compile_id, t.text, r.text FROM failure_row f LEFT JOIN text_row t "
          "ON t.id = f.type_id LEFT JOIN text_row r ON r.id = f.reason_id "
          "WHERE f.type_id IS NOT NULL ORDER BY f.record_id"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    const JobCompile* compile = context.job.FindCompile(rows.Int(0));
    if (compile == nullptr || !IsRecompileLimit(rows.Text(1), rows.Text(2))) continue;
    Function& function = Of(context, *compile, functions);
    function.is_limit = true;
    function.is_hard_limit = function.is_hard_limit || IsHardRecompileLimit(rows.Text(1));
    if (function.limit_compile.empty())
      function.limit_compile = context.job.string(compile->label_id);
    function.count_of.try_emplace(compile->participant, 0);
    if (function.ids.empty()) function.ids.push_back(compile->id);
    if (compile->slot >= 0) function.slots.insert(compile->slot);
  }
}

// "n: 1, 2, 3" of the reasons, most frequent subject first.
std::string Varied(const std::vector<RecompileReason>& reasons) {
  struct Subject {
    std::string name;
    std::vector<std::string> values;
    std::size_t count = 0;
  };
  std::vector<Subject> subjects;
  const auto add = [](Subject& subject, const std::string& value) {
    if (!value.empty() &&
        std::find(subject.values.begin(), subject.values.end(), value) == subject.values.end())
      subject.values.push_back(value);
  };
  for (const RecompileReason& reason : reasons) {
    const std::string& name = reason.subject.empty() ? reason.guard : reason.subject;
    auto found = std::find_if(subjects.begin(), subjects.end(),
                              [&](const Subject& one) { return one.name == name; });
    if (found == subjects.end()) found = subjects.insert(subjects.end(), {name, {}, 0});
    ++found->count;
    add(*found, reason.value);
    add(*found, reason.actual);
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
  }
  if (subjects.size() > kMostSubjects)
    text += fmt::format("; and {} more", subjects.size() - kMostSubjects);
  return text;
}

// What to try against the subject that varied most often among those that advice is known for; with
// how many of the recompiles it is about, if not all.
std::string AdviceFor(const std::vector<RecompileReason>& reasons) {
  std::map<std::string, std::size_t> counts;
  for (const RecompileReason& reason : reasons) ++counts[reason.subject];
  std::string best;
  std::size_t most = 0;
  for (const RecompileReason& reason : reasons) {
    const std::size_t count = counts[reason.subject];
    if (count <= most) continue;
    std::string advice = AdviceForRecompiles(reason);
    if (advice.empty()) continue;
    best = std::move(advice);
    most = count;
  }
  if (best.empty() || most == reasons.size()) return best;
  return fmt::format("{} ({} of the {} recompiles)", best, most, reasons.size());
}

std::string Times(std::size_t count) {
  return count == 1 ? "once" : count == 2 ? "twice" : fmt::format("{} times", count);
}

// A recompile on some ranks only is what sets them apart, and told so: the last finding becomes
// evidence of that one, which takes over what to try.
void FoldIntoDivergence(FindingContext& context) {
  Finding& own = context.findings.back();
  if (own.ranks.empty()) return;
  for (Finding& other : context.findings) {
    if ((other.kind != FindingKind::kExtraCompile && other.kind != FindingKind::kInputDivergence) ||
        other.ranks != own.ranks || other.function != own.function)
      continue;
    if (!other.place) other.place = own.place;
    if (other.suggestion.empty()) other.suggestion = own.suggestion;
    Finding evidence = std::move(own);
    context.findings.pop_back();
    other.evidence.push_back(std::move(evidence));
    return;
  }
}

void Tell(FindingContext& context, const Function& function) {
  Finding& finding =
      context.Add(function.is_limit ? FindingKind::kRecompileLimit : FindingKind::kRecompiles,
                  function.is_hard_limit                            ? FindingSeverity::kError
                  : function.is_limit || function.MostOfARank() > 1 ? FindingSeverity::kWarning
                                                                    : FindingSeverity::kNote);
  std::vector<RankIndex> who;
  std::size_t least = SIZE_MAX, most = 0, total = 0;
  for (const auto& [rank, count] : function.count_of) {
    who.push_back(rank);
    least = std::min(least, count);
    most = std::max(most, count);
    total += count;
  }
  context.SetRanks(finding, who);
  context.SetCompiles(finding,
                      std::vector<std::int32_t>(function.slots.begin(), function.slots.end()));
  finding.function = function.name;
  finding.since_us = function.since_us;
  finding.title = function.name;
  if (total > 0) {
    finding.title += " was recompiled ";
    finding.title += least == most ? Times(most) : fmt::format("{} to {} times", least, most);
    if (context.job.HasSeveral() && context.HasRanks())
      finding.title += who.size() == 1 ? " on " + context.WhoInside(who)
                       : who.size() == context.job.participants().size()
                           ? fmt::format(" on each of the {} ranks", who.size())
                           : " on each of " + context.WhoInside(who);
    const std::string varied = Varied(function.reasons);
    if (!varied.empty()) finding.title += fmt::format(" ({})", varied);
    finding.cause = varied;
  }
  if (function.is_limit) {
    finding.title += fmt::format(
        "{} the recompile limit{}", total > 0 ? " and reached" : " reached",
        function.is_hard_limit ? ", which is an error with fullgraph=True"
                               : ": it runs eagerly from then on where no compile fits");
    finding.detail = fmt::format("The first compile that was refused: {}.", function.limit_compile);
  }
  if (!function.place.file.empty()) {
    finding.place = function.place;
    // libtrace says what the value was before the place: "x.size(0) is 256, model.py".
    if (const std::size_t comma = finding.place->file.rfind(", "); comma != std::string::npos)
      finding.place->file.erase(0, comma + 2);
    // PyTorch cuts long paths at the left; the function's file is often the same one.
    if (function.file.ends_with(function.place.file)) finding.place->file = function.file;
  } else if (!function.file.empty()) {
    finding.place = FindingPlace{function.file, function.line, {}};
  }
  std::vector<std::string> guards;
  finding.suggestion = AdviceFor(function.reasons);
  for (const RecompileReason& reason : function.reasons) {
    if (guards.size() < 8) guards.push_back(Shorten(reason.guard, 160));
  }
  if (!guards.empty()) {
    finding.detail += finding.detail.empty() ? "Guards that failed: " : " Guards that failed: ";
    for (std::size_t i = 0; i < guards.size(); ++i)
      finding.detail += (i == 0 ? "" : "; ") + guards[i];
    finding.detail += '.';
  }
  finding.query = fmt::format("SELECT * FROM recompile WHERE compile_id IN {} ORDER BY record_id",
                              IdList(function.ids));
  FoldIntoDivergence(context);
}

// The graph breaks of one place and cause.
struct Break {
  std::set<RankIndex> ranks;
  std::set<std::int32_t> slots;
  std::vector<std::int64_t> ids;
  std::string reason, function;
  std::size_t count = 0;
  std::optional<std::int64_t> since_us;
};

// "Twice in 1 compile.", "6 times over 3 ranks, in 2 compile ids."
std::string CountText(const FindingContext& context, const Break& one) {
  std::string text = Times(one.count);
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  const bool has_several = one.ranks.size() > 1;
  if (has_several)
    text += fmt::format(" over {} {},", one.ranks.size(), context.HasRanks() ? "ranks" : "logs");
  return text + fmt::format(" in {} compile{}{}.", one.slots.size(), has_several ? " id" : "",
                            one.slots.size() == 1 ? "" : "s");
}

}  // namespace

Result<void> FindRecompiles(FindingContext& context) {
  Functions functions;
  RETURN_IF_ERROR(LoadReasons(context, functions));
  RETURN_IF_ERROR(LoadLimits(context, functions));
  for (const auto& [key, function] : functions) Tell(context, function);
  return {};
}

Result<void> FindGraphBreaks(FindingContext& context) {
  ASSIGN_OR_RETURN(
      Statement rows,
      context.database.Prepare(
          "SELECT g.compile_id, r.text, f.text, g.user_line, g.record_id FROM graph_break_row g "
          "LEFT JOIN text_row r ON r.id = g.reason_id LEFT JOIN text_row f ON f.id = "
          "g.user_file_id ORDER BY g.record_id"));
  std::map<std::tuple<std::string, std::int64_t, std::string>, Break> breaks;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    const JobCompile* compile = context.job.FindCompile(rows.Int(0));
    if (compile == nullptr) continue;
    Break& one = breaks[{std::string(rows.Text(2)), rows.Int(3), CauseOfBreak(rows.Text(1))}];
    one.ranks.insert(compile->participant);
    if (compile->slot >= 0) one.slots.insert(compile->slot);
    one.ids.push_back(rows.Int(4));
    if (one.reason.empty()) one.reason = rows.Text(1), one.function = context.FunctionOf(*compile);
    ++one.count;
    if (compile->start_us != 0 && (!one.since_us || compile->start_us < *one.since_us))
      one.since_us = compile->start_us;
  }
  for (const auto& [key, one] : breaks) {
    const std::string& file = std::get<0>(key);
    const std::int64_t line = std::get<1>(key);
    const std::string& cause = std::get<2>(key);
    const std::vector<RankIndex> who(one.ranks.begin(), one.ranks.end());
    const bool is_told =
        std::any_of(context.findings.begin(), context.findings.end(), [&](const Finding& other) {
          return other.kind == FindingKind::kGraphBreakDivergence && other.place &&
                 other.place->file == file && other.place->line == line;
        });
    if (is_told) continue;
    Finding& finding = context.Add(FindingKind::kGraphBreak, FindingSeverity::kWarning);
    context.SetRanks(finding, who);
    context.SetCompiles(finding, std::vector<std::int32_t>(one.slots.begin(), one.slots.end()));
    finding.function = one.function;
    finding.cause = cause;
    finding.since_us = one.since_us;
    finding.title =
        fmt::format("{} breaks the graph", one.function.empty() ? "A frame" : one.function);
    if (!file.empty()) {
      finding.place = FindingPlace{file, line, {}};
      finding.title += " at " + PlaceText(*finding.place);
    }
    finding.title += ": " + Shorten(cause, 200);
    if (one.count > 1) finding.detail = CountText(context, one);
    finding.suggestion = HintOf(one.reason);
    if (const std::string link = LinkOf(one.reason); !link.empty())
      finding.suggestion += (finding.suggestion.empty() ? "see " : "; see ") + link;
    finding.query = fmt::format("SELECT * FROM graph_break WHERE record_id IN {}", IdList(one.ids));
  }
  return {};
}

}  // namespace tlparse

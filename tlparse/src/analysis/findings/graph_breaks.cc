// Graph breaks by place and cause, and frames that run eagerly because of one.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/findings/advice.h"
#include "analysis/findings/context.h"
#include "analysis/ranks/cause.h"
#include "artifacts/common/text/python_traceback.h"

namespace tlparse {
namespace {

// The graph breaks of one place and cause.
struct Break {
  std::set<RankIndex> ranks;
  std::set<std::int32_t> slots;
  std::vector<std::int64_t> ids;
  std::string reason, function;
  FindingPlace site;  // the innermost frame; that of the key is the user's innermost
  std::size_t count = 0;
  std::optional<std::int64_t> since_us;
};

struct BreakKey {
  std::string file;
  std::int64_t line = 0;
  std::string cause;
  bool is_skipped = false;  // the frame runs eagerly as a whole
  auto operator<=>(const BreakKey&) const = default;
};

using Breaks = std::map<BreakKey, Break>;

FindingPlace SiteOf(std::string_view stack) {
  const std::optional<PythonFrame> frame = LastFrame(stack);
  if (!frame) return {};
  FindingPlace site{std::string(frame->file), frame->line, {}};
  // The line below the last frame is its code.
  const std::size_t at = stack.rfind("File \"");
  std::string_view rest = stack.substr(std::min(at, stack.size()));
  NextLine(rest);
  site.code = FirstLine(NextLine(rest));
  return site;
}

Result<Breaks> LoadBreaks(FindingContext& context, const std::set<std::int64_t>& eager) {
  ASSIGN_OR_RETURN(
      Statement rows,
      context.database.Prepare(
          "SELECT g.compile_id, r.text, f.text, g.user_line, g.record_id, s.text FROM "
          "graph_break_row g LEFT JOIN text_row r ON r.id = g.reason_id LEFT JOIN text_row f ON "
          "f.id = g.user_file_id LEFT JOIN text_row s ON s.id = g.user_stack_id ORDER BY "
          "g.record_id"));
  Breaks breaks;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return breaks;
    const JobCompile* compile = context.job.FindCompile(rows.Int(0));
    if (compile == nullptr) continue;
    Break& one = breaks[{std::string(rows.Text(2)), rows.Int(3), CauseOfBreak(rows.Text(1)),
                         eager.contains(compile->id)}];
    one.ranks.insert(compile->participant);
    if (compile->slot >= 0) one.slots.insert(compile->slot);
    one.ids.push_back(rows.Int(4));
    if (one.reason.empty()) {
      one.reason = rows.Text(1);
      one.function = context.FunctionOf(*compile);
      one.site = SiteOf(rows.Text(5));
    }
    ++one.count;
    if (compile->start_us != 0 && (!one.since_us || compile->start_us < *one.since_us))
      one.since_us = compile->start_us;
  }
}

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

void Tell(FindingContext& context, const BreakKey& key, const Break& one) {
  const std::vector<RankIndex> who(one.ranks.begin(), one.ranks.end());
  Finding& finding = context.Add(FindingKind::kGraphBreak, FindingSeverity::kWarning);
  context.SetRanks(finding, who);
  context.SetCompiles(finding, std::vector<std::int32_t>(one.slots.begin(), one.slots.end()));
  finding.function = one.function;
  finding.cause = key.cause;
  finding.since_us = one.since_us;
  const std::string function = one.function.empty() ? "A frame" : one.function;
  finding.title = function + (key.is_skipped ? " is not compiled, it runs eagerly: graph break"
                                             : " breaks the graph");
  if (!key.file.empty()) {
    finding.place = FindingPlace{key.file, key.line, {}};
    finding.title += " at " + PlaceText(*finding.place);
  }
  finding.title += ": " + Shorten(key.cause, 200);
  if (one.count > 1) finding.detail = CountText(context, one);
  const bool is_elsewhere =
      finding.place && one.site.line > 0 &&
      (one.site.file != finding.place->file || one.site.line != finding.place->line);
  if (is_elsewhere) {
    finding.detail += fmt::format("{}The break itself is in code called from there, {}:{}{}.",
                                  finding.detail.empty() ? "" : " ", one.site.file, one.site.line,
                                  one.site.code.empty() ? "" : " (" + one.site.code + ")");
  } else if (finding.place) {
    finding.place->code = one.site.code;
  }
  // The library's own call is not the user's to remove.
  if (!(is_elsewhere && IsAboutExplicitBreak(one.reason))) finding.suggestion = HintOf(one.reason);
  if (const std::string link = LinkOf(one.reason); !link.empty())
    finding.suggestion += (finding.suggestion.empty() ? "see " : "; see ") + link;
  finding.query = fmt::format("SELECT * FROM graph_break WHERE record_id IN {}", IdList(one.ids));
}

}  // namespace

// Without fullgraph=True, which logs no break, an unsupported construct makes the frame run eagerly.
Result<std::set<std::int64_t>> CompilesRunEagerly(FindingContext& context) {
  ASSIGN_OR_RETURN(
      Statement rows,
      context.database.Prepare(
          "SELECT g.compile_id, r.text, EXISTS (SELECT 1 FROM failure_row f JOIN text_row t ON "
          "t.id = f.type_id WHERE f.compile_id = g.compile_id AND (t.text = 'Unsupported' OR "
          "t.text LIKE '%.Unsupported')) FROM graph_break_row g JOIN text_row r ON r.id = "
          "g.reason_id"));
  std::set<std::int64_t> eager;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return eager;
    const JobCompile* compile = context.job.FindCompile(rows.Int(0));
    if (compile == nullptr) continue;
    const std::string& status = context.job.string(compile->status_id);
    if (IsSkippedFunction(rows.Text(1)) || status == "skipped" ||
        (status == "failed" && rows.Int(2) != 0))
      eager.insert(compile->id);
  }
}

Result<void> FindGraphBreaks(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::set<std::int64_t> eager, CompilesRunEagerly(context));
  ASSIGN_OR_RETURN(const Breaks breaks, LoadBreaks(context, eager));
  for (const auto& entry : breaks) {  // clang 14: no structured binding in a lambda
    const auto& key = entry.first;
    const auto& one = entry.second;
    const bool is_reported =
        std::any_of(context.findings.begin(), context.findings.end(), [&](const Finding& other) {
          return other.kind == FindingKind::kGraphBreakDivergence && other.place &&
                 other.place->file == key.file && other.place->line == key.line;
        });
    if (!is_reported) Tell(context, key, one);
  }
  return {};
}

}  // namespace tlparse

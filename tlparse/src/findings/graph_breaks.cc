// Graph breaks by place and cause, and frames that run eagerly because of one.
#include "findings/graph_breaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "base/plural.h"
#include "facts/cache/cause.h"
#include "facts/compiles/advice.h"
#include "facts/compiles/eager_compiles.h"
#include "facts/compiles/exceptions.h"
#include "facts/job/job_status.h"
#include "facts/text/shorten.h"
#include "findings/context.h"
#include "queries/findings/graph_breaks.h"

namespace tlparse {
namespace {

// The graph breaks of one place and cause.
struct Break {
  std::set<RankIndex> ranks;
  std::set<std::int32_t> slots;
  std::vector<std::int64_t> ids, compile_ids;
  std::string reason;
  // That were compiled, in order; "A frame" of one without name.
  std::vector<std::string> functions;
  std::string file;    // of the first of them
  std::string callee;  // CompileOfCallee
  FindingPlace site;
  std::size_t count = 0;
  bool is_of_torch = true;      // each is in PyTorch's own code
  bool is_of_libraries = true;  // the functions are
  std::optional<std::int64_t> since_us;
};

struct BreakKey {
  std::string file;
  std::int64_t line = 0;
  std::string cause;
  bool is_skipped = false;  // the frame runs eagerly as a whole
  std::string site_file;    // the innermost frame; that above is the user's innermost
  std::int64_t site_line = 0;
  auto operator<=>(const BreakKey&) const = default;
};

using Breaks = std::map<BreakKey, Break>;

// "torch_dynamo_resume_in_forward_at_20" → "forward": tracebacks have the function's own name.
std::string_view NameInStack(std::string_view function) {
  constexpr std::string_view kResume = "torch_dynamo_resume_in_", kAt = "_at_";
  if (!function.starts_with(kResume)) return function;
  function.remove_prefix(kResume.size());
  return function.substr(0, function.rfind(kAt));
}

// Whether the break is in PyTorch's own code, with no code of the user between the compiled function
// and the break, as in the forward of DistributedDataParallel.
bool IsOfTorch(std::string_view stack, std::string_view function) {
  const std::string_view name = NameInStack(function);
  bool is_compiled = false, calls_user = false, is_of_torch = false;
  while (!stack.empty()) {
    const std::optional<PythonFrame> frame = ParseFrameLine(NextLine(stack));
    if (!frame) continue;
    is_compiled = is_compiled || (!name.empty() && frame->function == name);
    const bool is_user = IsUserFile(frame->file);
    calls_user = calls_user || (is_compiled && is_user);
    // Python's own code breaks the graph for the code that calls it.
    if (IsTorchFile(frame->file)) {
      is_of_torch = true;
    } else if (is_user || frame->file.find("-packages") != std::string_view::npos) {
      is_of_torch = false;
    }
  }
  return is_compiled && is_of_torch && !calls_user;
}

// torch._dynamo.graph_break() in PyTorch's own code, as around the step of an optimizer. 2.6 has "skip
// function graph_break in file …/torch/_dynamo/decorators.py".
bool IsMeantByTorch(std::string_view reason, const FindingPlace& site) {
  const std::string cause = CauseOfBreak(reason);
  return IsTorchFile(site.file) &&
         (cause.find("torch._dynamo.graph_break()") != std::string::npos ||
          cause.find("skip function graph_break in file") != std::string::npos);
}

// The user said so: torch.compiler.disable.
bool IsDisabled(std::string_view cause) {
  return cause.starts_with("Skip calling `torch.compiler.disable()`d function") ||
         cause.starts_with("Skip inlining `torch.compiler.disable()`d function");
}

// What `tlparse run` puts in front of the program, or calls in it by not_traced: nothing of the user's.
bool IsOfHook(std::string_view cause, const FindingPlace& site) {
  return site.file.ends_with("/hook/sitecustomize.py") ||
         cause.find(": not_traced.<locals>.") != std::string_view::npos;
}

// A library writes a line to its own log there, as transformers' warning_once does.
bool IsLogOfLibrary(std::string_view cause, const FindingPlace& site) {
  return cause.starts_with("logging.Logger method not supported") && site.line > 0 &&
         !IsUserFile(site.file);
}

// Dynamo does not trace into some functions of PyTorch, such as the step of an optimizer, which are
// compiled by themselves: "… marked that the function `Adam.step` in file … should not be traced".
// What the log shows of that; empty: nothing.
std::string CompileOfCallee(const Job& job, std::string_view reason, const JobCompile& caller) {
  constexpr std::string_view kMarked = "intentionally marked that the function `";
  const std::size_t at = reason.find(kMarked);
  if (at == std::string_view::npos) return {};
  std::string_view name = reason.substr(at + kMarked.size());
  name = name.substr(0, name.find('`'));
  name.remove_prefix(name.rfind('.') + 1);
  const bool is_compiled = std::any_of(
      job.slots().begin(), job.slots().end(),
      [&](const JobSlot& slot) { return slot.function == name && IsTorchFile(slot.file); });
  if (is_compiled) return "The function that is called there is compiled by itself.";
  const auto next =
      std::find_if(job.compiles().begin(), job.compiles().end(), [&](const JobCompile& one) {
        return one.participant == caller.participant && one.id > caller.id && one.slot >= 0;
      });
  if (next == job.compiles().end() || next->status != CompileStatus::kUnfinished ||
      next->file_id < 0 || !IsTorchFile(job.string(next->file_id)))
    return {};
  return fmt::format("The log ends inside the next compile, {}, of a function of PyTorch.",
                     TitleOfCompile(job, *next));
}

Result<Breaks> LoadBreaks(FindingContext& context, const BrokenCompiles& broken) {
  Breaks breaks;
  FOR_EACH_ROW(
      const BreakOfJob& row,
      Query<BreakOfJob>(context.database, {.in_logs = context.job.InLogs("g.record_id")})) {
    const JobCompile* compile = row.compile_id ? context.job.FindCompile(*row.compile_id) : nullptr;
    if (compile == nullptr || broken.raised.contains(compile->id)) continue;
    const bool is_eager = broken.eager.contains(compile->id);
    const FindingPlace site = SiteOfBreak(row.user_stack);
    if (IsOfHook(CauseOfBreak(row.reason), site)) continue;
    Break& one = breaks[{std::string(row.user_file), row.user_line.value_or(0),
                         CauseOfBreak(row.reason), is_eager, site.file, site.line}];
    one.ranks.insert(compile->participant);
    if (compile->slot >= 0) one.slots.insert(compile->slot);
    one.ids.push_back(row.record_id);
    one.compile_ids.push_back(compile->id);
    if (one.reason.empty()) {
      one.reason = row.reason;
      one.site = site;
      if (compile->file_id >= 0) one.file = context.job.string(compile->file_id);
    }
    one.is_of_libraries &=
        compile->file_id >= 0 && !IsUserFile(context.job.string(compile->file_id));
    std::string function = context.FunctionOf(*compile);
    if (function.empty()) function = "A frame";
    if (std::find(one.functions.begin(), one.functions.end(), function) == one.functions.end())
      one.functions.push_back(std::move(function));
    ++one.count;
    if (one.callee.empty()) one.callee = CompileOfCallee(context.job, row.reason, *compile);
    one.is_of_torch = one.is_of_torch && !is_eager &&
                      (!one.callee.empty() || IsMeantByTorch(row.reason, site) ||
                       IsOfTorch(row.user_stack, context.FunctionOf(*compile)));
    if (compile->start_us != 0 && (!one.since_us || compile->start_us < *one.since_us))
      one.since_us = compile->start_us;
  }
  return breaks;
}

// "Twice in 1 compile.", "6 times over 3 ranks, in 2 compile ids."
std::string CountText(const FindingContext& context, const Break& one) {
  std::string text = Times(one.count);
  text[0] = UpperAscii(text[0]);
  const bool has_several = one.ranks.size() > 1;
  if (has_several)
    text += fmt::format(" over {} {},", one.ranks.size(), context.HasRanks() ? "ranks" : "logs");
  return text + fmt::format(" in {} compile{}{}.", one.slots.size(), has_several ? " id" : "",
                            PluralS(one.slots.size()));
}

// "f", "f and g", "f, g and 3 more"
std::string FunctionNames(const std::vector<std::string>& names) {
  if (names.size() < 2) return names.front();
  if (names.size() == 2) return names[0] + " and " + names[1];
  return fmt::format("{}, {} and {} more", names[0], names[1], names.size() - 2);
}

// The line of the user's code that ran the library's code, if it is the same in all of them.
Result<std::optional<FindingPlace>> CallerOf(FindingContext& context, const Break& one) {
  constexpr std::size_t kMostAsked = 16;
  std::optional<FindingPlace> caller;
  for (std::size_t i = 0; i < one.compile_ids.size() && i < kMostAsked; ++i) {
    ASSIGN_OR_RETURN(const std::optional<FindingPlace> own,
                     UserCaller(context.database, one.compile_ids[i]));
    if (!own || (caller && (caller->file != own->file || caller->line != own->line)))
      return std::optional<FindingPlace>();
    caller = own;
  }
  return caller;
}

// "task, wrapper and 2 more, which torch.func calls then, are not compiled either."
std::string TransformedText(const FindingContext& context, const BrokenCompiles& broken,
                            const Break& one) {
  std::vector<std::string> names;
  for (const std::int64_t id : one.compile_ids) {
    const auto found = broken.transformed.find(id);
    if (found == broken.transformed.end()) continue;
    for (const std::int64_t other : found->second) {
      const JobCompile* const compile = context.job.FindCompile(other);
      const std::string name = compile == nullptr ? std::string() : context.FunctionOf(*compile);
      if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  }
  if (names.empty()) return {};
  return fmt::format("{}, which torch.func calls then, {} not compiled either.",
                     FunctionNames(names), names.size() == 1 ? "is" : "are");
}

// A function of a library, in whose code the break is: what it calls is compiled by itself.
bool IsOfLibrary(const Break& one) {
  return one.site.line > 0 && !IsUserFile(one.site.file) && !one.file.empty() &&
         !IsUserFile(one.file);
}

Result<void> Report(FindingContext& context, const BrokenCompiles& broken, const BreakKey& key,
                    const Break& one) {
  const std::vector<RankIndex> who(one.ranks.begin(), one.ranks.end());
  Finding& finding = context.Add(FindingKind::kGraphBreak,
                                 one.is_of_torch    ? FindingSeverity::kNote
                                 : !key.is_skipped  ? SeverityOfBreak(one.reason, one.site)
                                 : IsOfLibrary(one) ? FindingSeverity::kNote
                                                    : FindingSeverity::kWarning);
  finding.is_of_caller = one.is_of_torch && one.is_of_libraries;
  context.SetRanks(finding, who);
  context.SetCompiles(finding, {one.slots.begin(), one.slots.end()}, who);
  if (one.functions.front() != "A frame") finding.function = one.functions.front();
  finding.cause = key.cause;
  finding.since_us = one.since_us;
  const bool is_one = one.functions.size() == 1;
  finding.title = FunctionNames(one.functions);
  finding.title += !key.is_skipped ? (is_one ? " breaks the graph" : " break the graph")
                   : is_one        ? " is not compiled, it runs eagerly: graph break"
                                   : " are not compiled, they run eagerly: graph break";
  if (!key.file.empty()) finding.place = FindingPlace{key.file, key.line, {}};
  if (!key.file.empty() && !IsUserFile(key.file)) {
    ASSIGN_OR_RETURN(const std::optional<FindingPlace> caller, CallerOf(context, one));
    if (caller) finding.place = FindingPlace{caller->file, caller->line, {}};
  }
  finding.title += WhereOfBreak(finding.place, one.site) + ": " + Shorten(key.cause, 200);
  if (one.count > 1) finding.detail = CountText(context, one);
  if (!one.callee.empty()) {
    finding.detail += (finding.detail.empty() ? "" : " ") + one.callee;
  } else {
    AddBreakAdvice(finding, one.reason, one.site);
  }
  if (const std::string more = TransformedText(context, broken, one); !more.empty())
    finding.detail += (finding.detail.empty() ? "" : " ") + more;
  // Whether it is this line that ends the graph can be shown.
  if (finding.changes.empty() && finding.place && !finding.function.empty() && !one.is_of_torch &&
      !one.file.empty()) {
    finding.changes.push_back({ChangeKind::kFullgraph, {}, {}, finding.function, one.file});
    if (finding.suggestion.empty())
      finding.suggestion =
          "fullgraph=True in torch.compile makes the break an error with its stack";
  }
  finding.query = fmt::format("SELECT * FROM graph_break WHERE record_id IN {}", IdList(one.ids));
  return {};
}

bool IsInLibrary(const std::optional<FindingPlace>& place, const FindingPlace& site) {
  return site.line > 0 && (!IsUserFile(site.file) ||
                           (place && (site.file != place->file || site.line != place->line)));
}

}  // namespace

FindingSeverity SeverityOfBreak(std::string_view reason, const FindingPlace& site) {
  const std::string cause = CauseOfBreak(reason);
  return IsDisabled(cause) || IsLogOfLibrary(cause, site) || IsMeantByTorch(reason, site)
             ? FindingSeverity::kNote
             : FindingSeverity::kWarning;
}

FindingPlace SiteOfBreak(std::string_view stack) {
  const std::optional<PythonFrame> frame = LastFrame(stack);
  if (!frame) return {};
  FindingPlace site{std::string(frame->file), frame->line, {}};
  // The line below the last frame is its code.
  const std::size_t at = stack.rfind("File \"");
  std::string_view rest = stack.substr(std::min(at, stack.size()));
  NextLine(rest);
  site.code = FirstLineWithText(NextLine(rest));
  return site;
}

std::string WhereOfBreak(const std::optional<FindingPlace>& place, const FindingPlace& site) {
  if (!place) return {};
  const bool is_elsewhere = site.line > 0 && (site.file != place->file || site.line != place->line);
  return is_elsewhere ? fmt::format(" in {}, called from {}", PlaceText(site), PlaceText(*place))
                      : " at " + PlaceText(*place);
}

void AddBreakAdvice(Finding& finding, std::string_view reason, const FindingPlace& site) {
  const bool is_in_library = IsInLibrary(finding.place, site);
  const bool is_meant = IsMeantByTorch(reason, site);
  // A call in a library is not the user's to leave out; an option is.
  SetHint(finding, is_in_library ? OptionHintOf(reason) : HintOf(reason));
  if (const std::string link = LinkOf(reason); !link.empty() && !is_meant)
    finding.suggestion += (finding.suggestion.empty()          ? "see "
                           : finding.suggestion.ends_with('.') ? " See "
                                                               : "; see ") +
                          link;
  if (!is_in_library) {
    if (finding.place) finding.place->code = site.code;
    return;
  }
  const std::string explanation = is_meant ? std::string() : ExplanationOf(reason);
  finding.detail += fmt::format("{}{} {}, {}:{}{}{}.{}", finding.detail.empty() ? "" : " ",
                                is_meant ? "The break is meant by" : "The break is in code of",
                                IsTorchFile(site.file) ? "PyTorch" : "a library", site.file,
                                site.line, site.code.empty() ? "" : " (" + site.code + ")",
                                finding.place && finding.place->file != site.file
                                    ? "; the place named is the nearest line of the user's code"
                                    : "",
                                explanation.empty() ? "" : " PyTorch: " + explanation);
}

Result<void> FoldOwnBreaks(FindingContext& context) {
  Finding* kept = nullptr;
  std::vector<Finding> findings;
  findings.reserve(context.findings.size());
  for (Finding& one : context.findings) {
    const bool is_own = one.kind == FindingKind::kGraphBreak && one.is_of_caller;
    if (is_own && kept != nullptr) {
      kept->evidence.push_back(std::move(one));
      continue;
    }
    findings.push_back(std::move(one));
    if (is_own) kept = &findings.back();
  }
  context.findings = std::move(findings);
  return {};
}

Result<void> FindGraphBreaks(FindingContext& context) {
  // Without fullgraph=True, which logs no break, an unsupported construct makes the frame run eagerly.
  ASSIGN_OR_RETURN(const BrokenCompiles broken, FindBrokenCompiles(context.database, context.job));
  ASSIGN_OR_RETURN(const Breaks breaks, LoadBreaks(context, broken));
  for (const auto& entry : breaks) {  // clang 14: no structured binding in a lambda
    const auto& key = entry.first;
    const auto& one = entry.second;
    const bool is_reported =
        std::any_of(context.findings.begin(), context.findings.end(), [&](const Finding& other) {
          return other.kind == FindingKind::kGraphBreakDivergence && other.place &&
                 other.place->file == key.file && other.place->line == key.line;
        });
    if (!is_reported) RETURN_IF_ERROR(Report(context, broken, key, one));
  }
  return {};
}

}  // namespace tlparse

#include "facts/compiles/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "facts/compiles/exceptions.h"
#include "facts/text/guard_text.h"
#include "facts/text/message_lines.h"

namespace tlparse {
namespace {

std::string Join(std::string_view subject, std::string_view prefix) {
  return fmt::format("{} of {}", prefix, subject);
}

// "tensor 'x' size mismatch at index 0. expected 2, actual 3".
void ParseTensorMismatch(std::string_view guard, RecompileReason& reason) {
  std::string_view name = Between(guard, "tensor '", "' ");
  std::string_view what = guard;
  what.remove_prefix(std::min(what.size(), guard.find("' ") == std::string_view::npos
                                               ? what.size()
                                               : guard.find("' ") + 2));
  // 2.6 quotes a source that holds quotes itself: tensor 'L['x']' size mismatch …
  if (const std::size_t end = guard.find("' ", 8); guard.starts_with("tensor 'L['")) {
    name = guard.substr(8, end == std::string_view::npos ? end : end - 8);
  }
  const std::size_t mismatch = what.find(" mismatch");
  if (name.empty() || mismatch == std::string_view::npos) return;
  std::string property(what.substr(0, mismatch));
  if (property == "rank") property = "number of dimensions";
  const std::string_view index = Between(what, "at index ", ".");
  reason.subject =
      Join(ReadableSource(name), index.empty() ? property : fmt::format("{} {}", property, index));
  reason.value = Between(what, "expected ", ",");
  if (const std::size_t at = what.find("actual "); at != std::string_view::npos)
    reason.actual = Trimmed(what.substr(at + 7));
}

}  // namespace

std::string CauseOfBreak(std::string_view reason) {
  std::string cause;
  ForEachLine(reason, [&](std::string_view line) {
    if (line.empty() || line.starts_with("Encountered graph break") ||
        line.starts_with("Failed to handle graph break gracefully"))
      return true;
    if (line.starts_with("Graph break in user code") || line.starts_with("Graph Break Reason:")) {
      const std::size_t at = line.find("Reason:");
      cause =
          at == std::string_view::npos ? std::string() : std::string(Trimmed(line.substr(at + 7)));
      return cause.empty();
    }
    cause = line;
    return false;
  });
  if (cause.empty()) cause = FirstLineWithText(reason);
  if (const std::string raised = RaisedException(reason); !raised.empty()) cause += ": " + raised;
  // Which function or operator: where a line calls several, the line does not tell.
  if (cause == "Attempted to call function marked as skipped") {
    const std::string_view module = Between(reason, "context: module: ", ", ");
    std::string_view name = Between(reason, ", qualname: ", ", ");
    // What pybind11 puts before its functions is no class.
    if (name.starts_with("pybind11_")) name.remove_prefix(name.rfind('.') + 1);
    const bool has_class = name.find('.') != std::string_view::npos;
    if (!module.empty() && !name.empty())
      cause += has_class ? fmt::format(": {}", name) : fmt::format(": {}.{}", module, name);
  } else if (cause == "Operator does not support running with fake tensors") {
    const std::string_view name = Between(reason, "context: unsupported operator: ", "\n");
    if (!name.empty()) cause += fmt::format(": {}", name);
  }
  // torch._dynamo.disable(reason=…) and the like say why.
  const std::string_view given = Between(reason, "'reason': ConstantVariable(str: ", ")}");
  if (given.size() > 2) cause += fmt::format(" (reason: {})", given.substr(1, given.size() - 2));
  return cause;
}

std::string HintOf(std::string_view reason, bool has_run) {
  std::string hint, general;
  ForEachLine(reason, [&](std::string_view line) {
    if (!line.starts_with("Hint: ")) return true;
    line.remove_prefix(6);
    // Hints that give nothing to do.
    if (line.starts_with("Please report an issue") ||
        line.starts_with("This graph break is fundamental") ||
        line.starts_with("If it is a Python builtin, please file an issue") ||
        line.starts_with("If the op is a PyTorch op, please file an issue") ||
        line.starts_with("It may be possible to write Dynamo tracing rules") ||
        line.starts_with("Dynamo has detected that tracing the code will result in an error"))
      return true;
    const bool is_general = line.starts_with("Your code may result in an error");
    (is_general ? general : hint) = line;
    return is_general;
  });
  return hint.empty() && !has_run ? general : hint;
}

std::string OptionHintOf(std::string_view reason) {
  std::string hint;
  ForEachLine(reason, [&](std::string_view line) {
    if (!line.starts_with("Hint: ")) return true;
    line.remove_prefix(6);
    const bool is_option = line.find("torch._dynamo.config.") != std::string_view::npos ||
                           line.find("export TORCH") != std::string_view::npos;
    if (is_option) hint = line;
    return !is_option;
  });
  return hint;
}

std::string ExplanationOf(std::string_view reason) {
  constexpr std::string_view kExplanation = "Explanation: ";
  std::string explanation;
  ForEachLine(reason, [&](std::string_view line) {
    if (!line.starts_with(kExplanation)) return true;
    explanation = line.substr(kExplanation.size());
    return false;
  });
  return explanation;
}

std::string AdviceForBypass(std::string_view reason) {
  if (reason.find("custom") == std::string_view::npos || !reason.ends_with("pass")) return {};
  return "derive the pass from torch._inductor.custom_graph_pass.CustomGraphPass, with a uuid() "
         "that "
         "changes when the pass does";
}

std::string LinkOf(std::string_view reason) {
  const std::size_t at = reason.find("please visit: http");
  if (at == std::string_view::npos) return {};
  reason.remove_prefix(at + 14);
  return std::string(reason.substr(0, reason.find_first_of(" \n\t\r")));
}

bool IsSkippedFunction(std::string_view reason) {
  return reason.starts_with("Failed to handle graph break gracefully. Skipping the function") ||
         reason.starts_with("Graph break: torch.compile cannot properly resume from this");
}

namespace {

// Behind "job.py:114 in f (a note) and ": the code of the next origin.
std::string_view CodeAfterOrigin(std::string_view text) {
  const std::size_t in = text.find(" in ");
  std::size_t at = text.find_first_of(" (", in == std::string_view::npos ? 0 : in + 4);
  if (at == std::string_view::npos) return {};
  if (text[at] == ' ') ++at;
  if (at < text.size() && text[at] == '(') {
    int depth = 0;
    for (; at < text.size(); ++at) {
      depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
      if (depth == 0) break;
    }
    at = std::min(text.size(), at + 2);
  }
  constexpr std::string_view kAnd = "and ";
  return text.substr(at).starts_with(kAnd) ? Trimmed(text.substr(at + kAnd.size()))
                                           : std::string_view();
}

// "job.py:114"
bool IsOrigin(std::string_view position) {
  const std::size_t colon = position.rfind(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < position.size() &&
         std::all_of(position.begin() + static_cast<std::ptrdiff_t>(colon) + 1, position.end(),
                     &IsDigit) &&
         position.find(' ') == std::string_view::npos;
}

// "<guard>  # <code>  # <file>:<line> in <function> (<note>) and <code>  # <file>:<line> …", and the
// user's stack, whose frames are followed by their code. The origin is in `line` of a file of the
// same name as `file` (empty: of any).
std::string CodeInLine(std::string_view reason, std::string_view file, std::int64_t line) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  constexpr std::string_view kComment = "  # ";
  const std::size_t stack = reason.find("\nUser stack trace");
  const std::string wanted = fmt::format("{}:{}", name, line);
  std::string_view rest = reason.substr(0, stack);
  std::string code;
  for (std::size_t at = rest.find(kComment); at != std::string_view::npos;
       at = rest.find(kComment)) {
    rest.remove_prefix(at + kComment.size());
    const std::string_view part = rest.substr(0, rest.find(kComment));
    const std::string_view position = part.substr(0, part.find(" in "));
    if (line > 0 && position.ends_with(wanted)) return std::string(Trimmed(code));
    // The code itself may hold "  # ", a comment of the user's.
    if (IsOrigin(position))
      code = CodeAfterOrigin(part);
    else
      code += (code.empty() ? "" : std::string(kComment)) + std::string(part);
  }
  if (stack == std::string_view::npos || line <= 0) return {};
  std::string found;
  bool is_next = false;
  ForEachLine(reason.substr(stack), [&](std::string_view text) {
    if (is_next && !text.starts_with("File ")) found = text;
    is_next = text.starts_with("File ") &&
              text.find(fmt::format("{}\", line {},", name, line)) != std::string_view::npos;
    return true;
  });
  return found;
}

// "(user code shown is first use of this value--the guard itself is not due user code but due to 0/1
// specialization in the framework; to avoid specialization try f(tensor, dim))".
std::string UnbackedHint(std::string_view reason, std::string_view guard) {
  constexpr std::string_view kTry = "to avoid specialization try ";
  const std::size_t at = reason.find(kTry);
  if (at == std::string_view::npos) return {};
  reason.remove_prefix(at + kTry.size());
  std::size_t end = 0;
  for (int depth = 0; end < reason.size(); ++end) {
    depth += reason[end] == '(' ? 1 : reason[end] == ')' ? -1 : 0;
    if (depth < 0) break;
  }
  return fmt::format("{} to avoid specialization (PyTorch's hint for {})",
                     Trimmed(reason.substr(0, end)), guard);
}

}  // namespace

std::string WholePath(std::string_view path, std::string_view whole) {
  const auto name = [](std::string_view text) { return text.substr(text.rfind('/') + 1); };
  const std::size_t slash = path.find('/');
  if (slash == 0 || !whole.starts_with('/')) return std::string(path);
  if (whole.ends_with(path) || (slash != std::string_view::npos && name(path) == name(whole)))
    return std::string(whole);
  return slash == std::string_view::npos ? std::string(path)
                                         : fmt::format("…{}", path.substr(slash));
}

namespace {

// Takes PyTorch's hint off the guard of a parameter: "tensor 'w' size mismatch at index 1. expected
// 24, actual 8. Guard failed on a parameter, consider using X = False to allow dynamism on
// parameters."
std::string TakeParameterHint(std::string_view& guard) {
  constexpr std::string_view kBegin = ". Guard failed on a parameter, consider using ";
  const std::size_t at = guard.find(kBegin);
  if (at == std::string_view::npos) return {};
  std::string_view hint = Trimmed(guard.substr(at + kBegin.size()));
  if (hint.ends_with('.')) hint.remove_suffix(1);
  guard = guard.substr(0, at);
  // PyTorch gives it whatever differs: for a dtype it changes nothing.
  if (guard.find("' size mismatch") == std::string_view::npos) return {};
  return fmt::format("{} (PyTorch's hint for a parameter)", hint);
}

}  // namespace

RecompileReason ParseRecompileReason(std::string_view guard, std::string_view reason,
                                     std::string_view file, std::int64_t line) {
  RecompileReason result;
  const std::string parameter_hint = TakeParameterHint(guard);
  result.is_of_parameter = !parameter_hint.empty();
  result.guard = Trimmed(guard);
  const std::string_view text = reason.substr(0, reason.find("\nUser stack trace"));
  std::string_view closure_name;
  if (const std::size_t at = text.find("(HINT: "); at != std::string_view::npos) {
    std::string_view hint = text.substr(at + 7);
    if (const std::size_t end = hint.rfind(')'); end != std::string_view::npos)
      hint = hint.substr(0, end);
    closure_name = Between(hint, "guard on \"", "\"");
    // "type int" is the guard's own type again.
    if (closure_name.empty() && hint.find(' ') != hint.rfind(' ')) result.hint = Trimmed(hint);
  }
  if (result.hint.empty()) result.hint = parameter_hint;
  result.unbacked_hint = UnbackedHint(text, result.guard);
  result.code = CodeInLine(reason, file, line);
  // torch/_dynamo/guards.py, get_and_maybe_log_recompilation_reasons.
  if (result.guard.starts_with("Unexpected recompilation: runtime guards failed"))
    result.guard = "a guard that held again when PyTorch looked for it";
  const GuardText shown = ReadableGuard(result.guard, result.code, file, line);
  result.text = shown.Whole();
  result.at = shown.at;
  const std::string_view check = result.guard;
  if (check.starts_with("tensor '")) {
    ParseTensorMismatch(check, result);
  } else if (const std::size_t equals = check.find(" == "); equals != std::string_view::npos) {
    result.subject = ReadableSource(check.substr(0, equals));
    result.value = check.substr(equals + 4);
  } else if (check.starts_with("___check_type_id(")) {
    result.subject = "type of " + ReadableSource(GuardSubject(check));
    const std::string_view type = Between(check, "type=<class '", "'>");
    result.value = type;
  }
  if (result.subject.empty()) {
    result.subject = shown.guard;
    result.value.clear();
  }
  if (!closure_name.empty()) result.subject = fmt::format("{} ({})", closure_name, result.subject);
  return result;
}

bool IsOfSizeZeroOrOne(const RecompileReason& reason) {
  const auto is_special = [](std::string_view size) { return size == "0" || size == "1"; };
  return reason.subject.starts_with("size ") &&
         (is_special(reason.value) || is_special(reason.actual));
}

Advice AdviceOfHint(const std::string& hint) {
  Advice advice{.text = hint};
  if (std::optional<Change> change = ChangeInHint(hint))
    advice.changes.push_back(*std::move(change));
  return advice;
}

namespace {

// "torch._dynamo.mark_dynamic(x, 0) and torch._dynamo.mark_dynamic(y, 0) before the call, if these
// sizes are meant to vary"
Advice AdviceForSizes(const ChangedSize& own, const std::vector<ChangedSize>& sizes) {
  constexpr std::size_t kMostNamed = 4;
  std::vector<ChangedSize> all = {own};
  for (const ChangedSize& one : sizes) {
    // What a module holds is of another module, or changes with what it is given.
    if (std::find(all.begin(), all.end(), one) == all.end() && IsLocalPath(one.tensor) &&
        !one.tensor.starts_with("self."))
      all.push_back(one);
  }
  Advice advice{.is_of_local = true};
  for (std::size_t i = 0; i < all.size(); ++i) {
    Change change{ChangeKind::kMarkDynamic, all[i].tensor, std::to_string(all[i].index), {}, {}};
    if (i < kMostNamed)
      advice.text += (i == 0 ? "" : i + 1 == all.size() ? " and " : ", ") + TextOf(change);
    if (IsLocalPath(change.name)) advice.changes.push_back(std::move(change));
  }
  if (all.size() > kMostNamed)
    advice.text += fmt::format(" and {} more that changed with it", all.size() - kMostNamed);
  advice.text += fmt::format(" before the call, if {} meant to vary",
                             all.size() == 1 ? "this size is" : "these sizes are");
  return advice;
}

}  // namespace

Advice AdviceForRecompiles(const RecompileReason& reason, std::size_t times,
                           const std::vector<ChangedSize>& sizes) {
  if (!reason.hint.empty()) return AdviceOfHint(reason.hint);
  if (!reason.unbacked_hint.empty()) return AdviceOfHint(reason.unbacked_hint);
  if (IsOfSizeZeroOrOne(reason)) return {};
  // The user's code has no name for a value that a graph break left on the stack.
  if (reason.subject.find("___stack") != std::string::npos) return {};
  if (const std::optional<ChangedSize> own = SizeIn(reason.subject))
    return AdviceForSizes(*own, sizes);
  const bool is_integer =
      !reason.value.empty() && std::all_of(reason.value.begin(), reason.value.end(), IsDigit);
  const bool is_module_attribute = reason.subject.starts_with("self.");
  if (is_integer && is_module_attribute) {
    Change change{
        ChangeKind::kOption, "torch._dynamo.config.allow_unspec_int_on_nn_module", "True", {}, {}};
    Advice advice{fmt::format("{}, if {} is an integer of an nn.Module that is meant to vary",
                              TextOf(change), reason.subject),
                  {}};
    advice.changes.push_back(std::move(change));
    return advice;
  }
  if (reason.subject.starts_with("len("))
    return {.text = fmt::format("keep {} the same, or pass a tensor in its place: each length is "
                                "compiled for itself",
                                reason.subject),
            .is_of_local = true};
  const bool is_float = !reason.value.empty() && !is_integer &&
                        reason.subject.find("__closure__") == std::string::npos &&
                        reason.value.find_first_not_of("0123456789.e+-") == std::string::npos;
  // The second value of a number makes it dynamic, unless PyTorch cannot.
  if (is_float && times > 1)
    return {fmt::format("make {} a tensor, if it is meant to vary: each value of a number is "
                        "compiled for itself",
                        reason.subject),
            {}};
  if (reason.value.starts_with('\'') || reason.value.starts_with('"'))
    return {
        .text = fmt::format("branch on {} outside of the compiled function, if it is meant to vary",
                            reason.subject),
        .is_of_local = true};
  return {};
}

Advice AdviceForFixedSize(std::string_view subject) {
  return {.text = fmt::format("leave out what sets torch._dynamo.config.automatic_dynamic_shapes "
                              "to False, as torch.compile(dynamic=False) does, if {} is meant to "
                              "vary",
                              subject)};
}

}  // namespace tlparse

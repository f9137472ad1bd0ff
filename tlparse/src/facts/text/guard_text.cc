#include "facts/text/guard_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"

namespace tlparse {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "L['x']" → "x"; others stay.
std::string_view WithoutLocal(std::string_view source) {
  if (source.starts_with("L['") && source.find("']") == source.size() - 2)
    source = source.substr(3, source.size() - 5);
  return source;
}

// "___check_type_id(L['x'], 94…), type=<class 'int'>" → "type of x: int"; empty: another guard.
std::string InWords(std::string_view guard) {
  for (const auto& [check, what] :
       {std::pair<std::string_view, std::string_view>("___check_type_id(", "type of "),
        {"___check_obj_id(", "identity of "}}) {
    if (!guard.starts_with(check)) continue;
    const std::size_t end = guard.rfind("), type=");
    const std::string_view call = guard.substr(0, end);
    const std::size_t comma = call.rfind(", ");
    if (comma == std::string_view::npos || comma < check.size()) return {};
    std::string text =
        fmt::format("{}{}", what, WithoutLocal(call.substr(check.size(), comma - check.size())));
    constexpr std::string_view kType = "type=<class '";
    if (const std::size_t type = guard.rfind(kType); type != std::string_view::npos) {
      const std::string_view name = guard.substr(type + kType.size());
      text += fmt::format(": {}", name.substr(0, name.find('\'')));
    }
    return text;
  }
  if (guard.starts_with("___check_global_state()"))
    return "PyTorch's global state (grad mode, autocast, number of threads, …)";
  if (guard.starts_with("___check_torch_function_mode_stack()"))
    return "the stack of torch function modes";
  for (const bool is_negated : {false, true}) {
    const std::string_view check = is_negated ? "not ___dict_contains(" : "___dict_contains(";
    const std::size_t comma = guard.rfind(", ");
    if (!guard.starts_with(check) || !guard.ends_with(')') || comma == std::string_view::npos ||
        comma < check.size())
      continue;
    return fmt::format("{} {}in {}", guard.substr(check.size(), comma - check.size()),
                       is_negated ? "not " : "", guard.substr(comma + 2, guard.size() - comma - 3));
  }
  return {};
}

}  // namespace

bool HasGeneratedNames(std::string_view guard) {
  return Contains(guard, "___") || Contains(guard, "'__import_") ||
         Contains(guard, "'__builtins_dict__");
}

namespace {

// net._modules['up'] → net.up; hooks[list(dict.keys(hooks))[0]] → hooks[key 0].
void ShortenMembers(std::string& text) {
  for (const std::string_view member : {"._modules['", "._parameters['", "._buffers['"}) {
    for (std::size_t at = 0; (at = text.find(member, at)) != std::string::npos;) {
      const std::size_t end = text.find("']", at);
      if (end == std::string::npos) break;
      text.erase(end, 2);
      text.replace(at, member.size(), ".");
    }
  }
  constexpr std::string_view kKeys = "[list(dict.keys(", kMiddle = "))[";
  for (std::size_t at = 0; (at = text.find(kKeys, at)) != std::string::npos; ++at) {
    const std::size_t middle = text.find(kMiddle, at), number = middle + kMiddle.size();
    const std::size_t end = text.find("]]", at);
    if (middle == std::string::npos || end == std::string::npos || end < number) break;
    text = fmt::format("{}[key {}{}", text.substr(0, at), text.substr(number, end - number),
                       text.substr(end + 1));
  }
}

}  // namespace

std::string ReadableName(std::string_view name) {
  std::string text(name);
  ShortenMembers(text);
  // G['__import_a_dot_b'] is the module a.b.
  constexpr std::string_view kImport = "G['__import_", kEnd = "']", kDot = "_dot_";
  for (std::size_t at = 0; (at = text.find(kImport, at)) != std::string::npos;) {
    const std::size_t end = text.find(kEnd, at);
    if (end == std::string::npos) break;
    std::string module = text.substr(at + kImport.size(), end - at - kImport.size());
    for (std::size_t dot = 0; (dot = module.find(kDot, dot)) != std::string::npos; ++dot)
      module.replace(dot, kDot.size(), ".");
    // PyTorch's own modules import torch under its name.
    const std::string_view rest = std::string_view(text).substr(end + kEnd.size());
    if (module.starts_with("torch.") && rest.starts_with(".torch") &&
        (rest.size() == 6 || !IsWordCharacter(rest[6])))
      text.erase(at, end + kEnd.size() + 1 - at);
    else
      text.replace(at, end + kEnd.size() - at, module);
  }
  // G['__builtins_dict___2']['len'] is the built-in len.
  constexpr std::string_view kBuiltins = "G['__builtins_dict__", kMiddle = "']['";
  for (std::size_t at = 0; (at = text.find(kBuiltins, at)) != std::string::npos; ++at) {
    const std::size_t middle = text.find(kEnd, at);
    if (text.compare(std::min(middle, text.size()), kMiddle.size(), kMiddle) != 0) continue;
    const std::size_t end = text.find(kEnd, middle + kMiddle.size());
    if (end == std::string::npos) break;
    text = text.substr(0, at) + "builtins." +
           text.substr(middle + kMiddle.size(), end - middle - kMiddle.size()) +
           text.substr(end + kEnd.size());
  }
  // torch/utils/_config_module.py: what the user has set an option to.
  constexpr std::string_view kConfig = "._config['", kOverride = "'].user_override.get()";
  if (const std::size_t end = text.find(kOverride); end != std::string::npos) {
    const std::size_t at = text.rfind(kConfig, end);
    if (at != std::string::npos) {
      text.replace(end, kOverride.size(), " (user_override)");
      text.replace(at, kConfig.size(), ".");
    }
  }
  constexpr std::string_view kStack = "___stack";
  if (const std::size_t at = text.find(kStack); at != std::string::npos) {
    std::size_t end = at + kStack.size();
    while (end < text.size() && IsDigit(text[end])) ++end;
    if (end > at + kStack.size())
      text += at == 0 ? " (a value on the stack)"
                      : fmt::format(" ({}: a value on the stack)", text.substr(at, end - at));
  }
  return text;
}

std::string ReadableSource(std::string_view source) {
  std::string text(source);
  // At the begin, or what a call is given: list(dict.keys(L['d']))[0].
  constexpr std::string_view kLocal = "L['", kEnd = "']";
  for (std::size_t at = 0; (at = text.find(kLocal, at)) != std::string::npos; ++at) {
    const std::size_t end = text.find(kEnd, at);
    if (end == std::string::npos) break;
    if (at > 0 && text[at - 1] != '(') continue;
    text.erase(end, kEnd.size());
    text.erase(at, kLocal.size());
  }
  return ReadableName(text);
}

std::string GuardText::Whole() const {
  return at.empty() ? guard : fmt::format("{} at: {}", guard, at);
}

GuardText ReadableGuard(std::string_view guard, std::string_view code, std::string_view file,
                        std::int64_t line) {
  guard = Trimmed(guard);
  const std::string words = InWords(guard);
  const std::string_view shown = words.empty() ? guard : std::string_view(words);
  GuardText text{ReadableName(shown), {}};
  code = Trimmed(code);
  if (code.empty() || !HasGeneratedNames(shown)) return text;
  text.at = code;
  if (file.empty()) return text;
  // As much of the path as PyTorch shows beside a guard.
  if (const std::size_t slash = file.rfind('/'); slash != std::string_view::npos && slash > 0) {
    const std::size_t folder = file.rfind('/', slash - 1);
    if (folder != std::string_view::npos) file.remove_prefix(folder + 1);
  }
  text.at += line > 0 ? fmt::format(" ({}:{})", file, line) : fmt::format(" ({})", file);
  return text;
}

std::string_view GuardSubject(std::string_view guard) {
  guard = Trimmed(guard);
  for (const std::string_view check : {"___check_type_id(", "___check_obj_id("}) {
    if (!guard.starts_with(check)) continue;
    const std::string_view call = guard.substr(0, guard.rfind("), type="));
    const std::size_t comma = call.rfind(", ");
    return comma == std::string_view::npos || comma < check.size()
               ? std::string_view()
               : call.substr(check.size(), comma - check.size());
  }
  std::size_t end = guard.find(" == ");
  if (end == std::string_view::npos && guard.ends_with(" is None")) end = guard.size() - 8;
  return end == std::string_view::npos ? std::string_view() : guard.substr(0, end);
}

std::string GuardKey(std::string_view guard) {
  std::string key(Trimmed(guard));
  // 2.6: tensor 'L['x']' dtype mismatch, L['n'] == 1; 2.14: tensor 'x' …, n == 1.
  for (const std::string_view prefix : {"tensor 'L['", "L['"}) {
    if (!key.starts_with(prefix)) continue;
    const std::size_t begin = prefix.size() - 3, end = key.find("']", prefix.size());
    if (end == std::string::npos) break;
    key.erase(end, 2);
    key.erase(begin, 3);
    break;
  }
  // Numbered in the order in which the process made them.
  constexpr std::string_view kBuiltins = "__builtins_dict___";
  for (std::size_t at = 0; (at = key.find(kBuiltins, at)) != std::string::npos;) {
    at += kBuiltins.size();
    std::size_t end = at;
    while (end < key.size() && IsDigit(key[end])) ++end;
    key.erase(at, end - at);
  }
  return key;
}

}  // namespace tlparse

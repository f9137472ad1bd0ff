#include "analysis/guard_text.h"

#include <fmt/format.h>

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

std::string ReadableGuard(std::string_view guard, std::string_view code, std::string_view file,
                          std::int64_t line) {
  guard = Trimmed(guard);
  const std::string words = InWords(guard);
  const std::string_view shown = words.empty() ? guard : std::string_view(words);
  code = Trimmed(code);
  if (code.empty() || !HasGeneratedNames(shown)) return std::string(shown);
  if (file.empty()) return std::string(code);
  // As much of the path as PyTorch shows beside a guard.
  if (const std::size_t slash = file.rfind('/'); slash != std::string_view::npos && slash > 0) {
    const std::size_t folder = file.rfind('/', slash - 1);
    if (folder != std::string_view::npos) file.remove_prefix(folder + 1);
  }
  return line > 0 ? fmt::format("{} ({}:{})", code, file, line)
                  : fmt::format("{} ({})", code, file);
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

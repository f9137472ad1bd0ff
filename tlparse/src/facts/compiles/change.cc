#include "facts/compiles/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "facts/compiles/change_fields.h"

namespace tlparse {
namespace {

bool IsDotted(char c) { return IsWordCharacter(c) || c == '.'; }

// The configurations that cache keys and metrics name, and the modules that hold them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kModules = {{
    {"inductor_config", "torch._inductor.config"},
    {"dynamo_config", "torch._dynamo.config"},
    {"functorch_config", "torch._functorch.config"},
    {"autograd_config", "torch._functorch.config"},
    {"aot_config", "torch._functorch.config"},
    {"compiler_config", "torch.compiler.config"},
}};

// "True", "8", "'x'": up to the end of the literal; empty: it is none.
std::string_view LiteralAt(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::size_t end = 0;
  if (text.starts_with('\'') || text.starts_with('"')) {
    end = text.find(text.front(), 1);
    return end == std::string_view::npos ? std::string_view() : text.substr(0, end + 1);
  }
  while (end < text.size() && (IsWordCharacter(text[end]) || text[end] == '-')) ++end;
  const std::string_view word = text.substr(0, end);
  const bool is_number = !word.empty() && std::all_of(word.begin(), word.end(), IsDigit);
  return is_number || word == "True" || word == "False" || word == "None" ? word
                                                                          : std::string_view();
}

// The option of a module that is set in the text.
std::optional<Change> OptionIn(std::string_view text) {
  constexpr std::string_view kTorch = "torch.", kConfig = ".config.";
  for (std::size_t at = text.find(kTorch); at != std::string_view::npos;
       at = text.find(kTorch, at + 1)) {
    std::size_t end = at;
    while (end < text.size() && IsDotted(text[end])) ++end;
    const std::string_view name = text.substr(at, end - at);
    if (name.find(kConfig) == std::string_view::npos || name.ends_with('.')) continue;
    std::string_view rest = text.substr(end);
    while (rest.starts_with(' ') || rest.starts_with('`')) rest.remove_prefix(1);
    if (!rest.starts_with('=') || rest.starts_with("==")) continue;
    const std::string_view value = LiteralAt(rest.substr(1));
    if (value.empty()) continue;
    return Change{ChangeKind::kOption, std::string(name), std::string(value), {}, {}};
  }
  return std::nullopt;
}

std::optional<Change> VariableIn(std::string_view text) {
  constexpr std::string_view kTorch = "TORCH";
  for (std::size_t at = text.find(kTorch); at != std::string_view::npos;
       at = text.find(kTorch, at + 1)) {
    if (at > 0 && IsWordCharacter(text[at - 1])) continue;
    std::size_t end = at;
    while (end < text.size() && IsWordCharacter(text[end])) ++end;
    if (end == text.size() || text[end] != '=') continue;
    std::size_t last = end + 1;
    while (last < text.size() && IsWordCharacter(text[last])) ++last;
    if (last == end + 1) continue;
    return Change{ChangeKind::kVariable,
                  std::string(text.substr(at, end - at)),
                  std::string(text.substr(end + 1, last - end - 1)),
                  {},
                  {}};
  }
  return std::nullopt;
}

}  // namespace

std::string_view Name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kVariable:
      return "variable";
    case ChangeKind::kNoVariable:
      return "no_variable";
    case ChangeKind::kOption:
      return "option";
    case ChangeKind::kMarkDynamic:
      return "mark_dynamic";
    case ChangeKind::kSharedCache:
      return "shared_cache";
    case ChangeKind::kFullgraph:
      return "fullgraph";
    case ChangeKind::kBackend:
      return "backend";
    case ChangeKind::kSteps:
      return "steps";
  }
  return {};
}

std::string TextOf(const Change& change) {
  switch (change.kind) {
    case ChangeKind::kVariable:
      return fmt::format("{}={}", change.name, change.value);
    case ChangeKind::kNoVariable:
      return fmt::format("{} not set", change.name);
    case ChangeKind::kOption:
      return fmt::format("{} = {}", change.name, change.value);
    case ChangeKind::kMarkDynamic:
      return fmt::format("torch._dynamo.mark_dynamic({}, {})", change.name, change.value);
    case ChangeKind::kSharedCache:
      return "one cache directory for all processes (TORCHINDUCTOR_CACHE_DIR)";
    case ChangeKind::kFullgraph:
      return fmt::format("fullgraph=True for {}", change.function);
    case ChangeKind::kBackend:
      return fmt::format("backend=\"{}\" in torch.compile", change.value);
    case ChangeKind::kSteps:
      return fmt::format("ended after step {} of the optimizer", change.value);
  }
  return {};
}

std::string TextOf(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes) text += (text.empty() ? "" : "; ") + TextOf(change);
  return text;
}

const Change* FindChange(const std::vector<Change>& changes, ChangeKind kind) {
  const auto found = std::find_if(changes.begin(), changes.end(),
                                  [&](const Change& one) { return one.kind == kind; });
  return found == changes.end() ? nullptr : &*found;
}

bool IsLocalPath(std::string_view name) {
  bool is_begin = true;  // of a name
  for (std::size_t at = 0; at < name.size(); ++at) {
    const char c = name[at];
    if (is_begin) {
      if (!IsWordCharacter(c) || IsDigit(c)) return false;
      is_begin = false;
    } else if (c == '.') {
      is_begin = true;
    } else if (c == '[') {
      const std::size_t end = name.find(']', at);
      if (end == std::string_view::npos || end == at + 1) return false;
      const std::string_view number = name.substr(at + 1, end - at - 1);
      if (!std::all_of(number.begin(), number.end(), IsDigit)) return false;
      at = end;
    } else if (!IsWordCharacter(c)) {
      return false;
    }
  }
  return !is_begin;
}

std::optional<Change> ChangeInHint(std::string_view hint) {
  std::optional<Change> change = OptionIn(hint);
  return change ? change : VariableIn(hint);
}

std::string OptionOfConfig(std::string_view name) {
  for (const auto& [config, module] : kModules) {
    if (!name.starts_with(config) || name.size() < config.size() + 3 ||
        name[config.size()] != '[' || !name.ends_with(']'))
      continue;
    const std::string_view option = name.substr(config.size() + 1, name.size() - config.size() - 2);
    const bool is_name = std::all_of(option.begin(), option.end(), IsDotted);
    return is_name ? fmt::format("{}.{}", module, option) : std::string();
  }
  return {};
}

void WriteChanges(JsonWriter& json, const std::vector<Change>& changes) {
  fields::Write(json, changes, NoContext());
}

}  // namespace tlparse

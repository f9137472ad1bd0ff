#include "inputs/common/generated_code.h"

#include <algorithm>

#include "base/ascii.h"
#include "log/inductor_texts.h"

namespace tlparse {
namespace {

// Without "graph_<digits>_"; the same text if it does not begin so.
std::string_view WithoutGraphNumber(std::string_view name) {
  constexpr std::string_view kPrefix = "graph_";
  if (!name.starts_with(kPrefix)) return name;
  std::size_t digits = kPrefix.size();
  while (digits < name.size() && IsDigit(name[digits])) ++digits;
  if (digits == kPrefix.size() || digits == name.size() || name[digits] != '_') return name;
  return name.substr(digits + 1);
}

}  // namespace

bool IsCachePath(std::string_view path) {
  constexpr std::size_t kHashCharacters = 52;
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos || slash < 2) return false;
  const std::string_view name = path.substr(slash + 1);
  if (name.size() < kHashCharacters + 2 || name[0] != 'c' || name[kHashCharacters] != '.')
    return false;
  const bool is_hash = std::all_of(name.begin(), name.begin() + kHashCharacters, IsBase32);
  return is_hash && path.substr(slash - 2, 2) == name.substr(1, 2);
}

std::optional<std::string_view> CpuKernelName(std::string_view slice) {
  const std::string_view name = WithoutGraphNumber(slice);
  if (name.empty() || !std::all_of(name.begin(), name.end(), IsWordCharacter)) return std::nullopt;
  if (name.size() != slice.size()) {
    return name == inductor::kWrapperCall ? std::nullopt : std::optional(name);
  }
  return name.starts_with(inductor::kCppKernel) ? std::optional(name) : std::nullopt;
}

std::unordered_map<std::string_view, std::string_view> KernelPaths(std::string_view code) {
  using inductor::kDefinition, inductor::kKernelPath;
  std::unordered_map<std::string_view, std::string_view> names;
  std::string_view path;
  while (!code.empty()) {
    std::string_view line = code.substr(0, code.find('\n'));
    code.remove_prefix(std::min(line.size() + 1, code.size()));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == line.npos) continue;
    line.remove_prefix(first);
    if (line.starts_with(kKernelPath)) path = line.substr(kKernelPath.size());
    if (line[0] == '#' || path.empty()) continue;
    const std::size_t end = line.find(kDefinition);
    if (end != line.npos && std::all_of(line.begin(), line.begin() + end, IsWordCharacter))
      names.try_emplace(path.substr(0, path.find_last_not_of(" \r") + 1), line.substr(0, end));
    path = {};
  }
  return names;
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsWrapperCall(std::string_view slice) {
  return WithoutGraphNumber(slice) == inductor::kWrapperCall && slice.starts_with("graph_");
}

}  // namespace tlparse

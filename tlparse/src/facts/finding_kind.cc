#include "facts/finding_kind.h"

#include <algorithm>
#include <iterator>

namespace tlparse {
namespace {

// In the order of FindingSeverity.
constexpr std::string_view kFindingSeverities[] = {"error", "warning", "note"};

template <typename Enum, std::size_t N>
std::optional<Enum> Find(const std::string_view (&names)[N], std::string_view name) {
  const auto* const found = std::find(std::begin(names), std::end(names), name);
  return found == std::end(names) ? std::nullopt : std::optional(static_cast<Enum>(found - names));
}

}  // namespace

std::string_view Name(FindingKind kind) { return kFindingKinds[static_cast<std::size_t>(kind)]; }
std::string_view Name(FindingSeverity severity) {
  return kFindingSeverities[static_cast<std::size_t>(severity)];
}

std::optional<FindingKind> FindingKindOf(std::string_view name) {
  return Find<FindingKind>(kFindingKinds, name);
}
std::optional<FindingSeverity> FindingSeverityOf(std::string_view name) {
  return Find<FindingSeverity>(kFindingSeverities, name);
}

}  // namespace tlparse

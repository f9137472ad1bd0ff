// Kinds and severities of findings, and their names in JSON, on the command line and on the page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "enums/finding_kind.h"

namespace tlparse {

// FindingKind (enums/finding_kind.h) has a value for each page of docs/playbooks, kColdCache for cold_cache.md.
inline constexpr std::size_t kFindingKindCount = std::size(kFindingKinds);
std::string_view Name(FindingKind kind);  // "compile_failed"
std::optional<FindingKind> FindingKindOf(std::string_view name);

enum class FindingSeverity : std::uint8_t {
  kError,    // wrong or lost work
  kWarning,  // costs time, or ranks differ
  kNote,     // worth knowing
};
std::string_view Name(FindingSeverity severity);  // "error"
std::optional<FindingSeverity> FindingSeverityOf(std::string_view name);

}  // namespace tlparse

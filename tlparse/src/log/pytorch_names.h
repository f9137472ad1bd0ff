// Names that PyTorch may change with any version, and the versions in which each was seen in a log.
// `tlparse import-log --unknown` lists the names of a log that are not here. (Record keys and names
// of artifacts are declared by the families that type them, in TLPARSE_ARTIFACT.)
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tlparse {

enum class PytorchNameKind : std::uint8_t {
  kPhase,      // name of a chromium_event
  kComponent,  // of a cache key
  kMetric,     // member of compilation_metrics
};

struct PytorchName {
  std::string_view name;     // '*' matches any text
  std::string_view seen_in;  // versions of PyTorch, or "libtrace"
};

std::span<const PytorchName> KnownNames(PytorchNameKind kind);
// nullptr: unknown.
const PytorchName* FindKnownName(PytorchNameKind kind, std::string_view name);

}  // namespace tlparse

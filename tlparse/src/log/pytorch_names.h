// Names that PyTorch may change with any version, and the versions whose sources have each: 2.6 to
// 2.15 were read, at their newest patches. Of names that the source computes: seen in logs of it.
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

// What a component of a cache key describes.
enum class ComponentSubject : std::uint8_t {
  kOther,
  kBuild,    // the build of PyTorch, the device
  kConfig,   // configuration of the compiler, custom passes
  kGraph,    // the graph and the source of kernels in it
  kInputs,   // shapes, strides and kinds of the inputs
  kSetting,  // a setting of the process
};

struct PytorchName {
  std::string_view name;     // '*' matches any text
  std::string_view seen_in;  // versions of PyTorch ("2.6-2.10, 2.12"), "vLLM" or "libtrace"
  ComponentSubject subject = ComponentSubject::kOther;  // of a component
};

std::span<const PytorchName> KnownNames(PytorchNameKind kind);
// nullptr: unknown.
const PytorchName* FindKnownName(PytorchNameKind kind, std::string_view name);
// `name` with or without a member in brackets, known or not: names of a newer PyTorch are judged by
// their ends.
ComponentSubject SubjectOfComponent(std::string_view name);

}  // namespace tlparse

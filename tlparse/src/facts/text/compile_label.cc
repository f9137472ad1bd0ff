#include "facts/text/compile_label.h"

#include <fmt/format.h>

namespace tlparse {

std::string CompileLabel(std::string_view label, std::int64_t generation) {
  return generation > 0 ? fmt::format("{}#{}", label, generation + 1) : std::string(label);
}

bool IsOfRecompile(std::string_view label) {
  return !label.substr(0, label.find('#')).ends_with("/0");
}

bool IsWithoutId(std::string_view label) { return label.starts_with("unknown_"); }

}  // namespace tlparse

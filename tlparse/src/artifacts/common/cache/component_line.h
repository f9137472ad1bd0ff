// A component of a cache key as it is logged: `[<51 base32 characters>] <name>: <text>`
// (FxGraphHashDetails.debug_lines in torch/_inductor/codecache.py); the text may span lines.
#pragma once

#include <optional>
#include <string_view>

namespace tlparse {

struct Component {
  std::string_view name;  // inductor_config[freezing]
  std::string_view hash;  // "" if the line gives none
  std::string_view value;
};

// Reads the first line of a component; nothing if it is none (then it continues the one before).
// With `is_hashed` false, a line without `[hash]` is accepted.
std::optional<Component> ParseComponent(std::string_view line, bool is_hashed = true);

}  // namespace tlparse

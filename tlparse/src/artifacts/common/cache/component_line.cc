#include "artifacts/common/cache/component_line.h"

#include <array>
#include <cstdint>

#include "base/ascii.h"

namespace tlparse {

namespace {

constexpr std::size_t kHashLength = 51;

// Bit 0: a base32 character of a hash; bit 1: a character of a name. A log holds millions of each,
// so they are looked up.
constexpr std::uint8_t kBase32 = 1;
constexpr std::uint8_t kNameCharacter = 2;
constexpr std::array<std::uint8_t, 256> kCharacters = [] {
  std::array<std::uint8_t, 256> table{};
  for (unsigned c = 0; c < 256; ++c) {
    if (IsBase32(static_cast<char>(c))) table[c] |= kBase32;
    if (c < 0x80 && IsWordCharacter(static_cast<char>(c))) table[c] |= kNameCharacter;
  }
  return table;
}();
bool IsKeyCharacter(char c) {
  return (kCharacters[static_cast<unsigned char>(c)] & kNameCharacter) != 0;
}
bool IsHash(std::string_view text) {
  std::uint8_t all = kBase32;
  for (const char c : text) all &= kCharacters[static_cast<unsigned char>(c)];
  return all != 0;
}

}  // namespace

std::optional<Component> ParseComponent(std::string_view line, bool is_hashed) {
  Component component;
  if (is_hashed) {
    if (line.size() < kHashLength + 3 || line[0] != '[' || line[kHashLength + 1] != ']' ||
        line[kHashLength + 2] != ' ') {
      return std::nullopt;
    }
    component.hash = line.substr(1, kHashLength);
    if (!IsHash(component.hash)) return std::nullopt;
    line.remove_prefix(kHashLength + 3);
  }
  std::size_t end = 0;
  while (end < line.size() && IsKeyCharacter(line[end])) ++end;
  if (end == 0 || end == line.size()) return std::nullopt;
  if (line[end] == '[') {
    // The index or key may hold anything; it ends at the first "]: ".
    end = line.find("]: ", end);
    if (end == std::string_view::npos) return std::nullopt;
    ++end;
  }
  if (line.substr(end, 2) != ": ") {
    // An empty text, whose trailing blank was lost on the way.
    if (end + 1 != line.size() || line[end] != ':') return std::nullopt;
  }
  component.name = line.substr(0, end);
  component.value = line.size() >= end + 2 ? line.substr(end + 2) : std::string_view();
  return component;
}

}  // namespace tlparse

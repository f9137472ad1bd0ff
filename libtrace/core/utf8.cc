#include "core/utf8.h"

#include <cstring>

namespace libtrace::detail {

DecodedCharacter DecodeUtf8(std::string_view text, size_t offset) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  uint32_t size = 0;
  unsigned char low = 0x80, high = 0xBF;  // of the second byte
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {0xFFFD, 1, false};
  }
  uint32_t code_point = lead & (0xFFu >> (size + 1));
  for (uint32_t i = 1; i < size; ++i) {
    if (offset + i >= text.size()) return {0xFFFD, i, false};
    const unsigned char next = byte(i);
    if (next < low || next > high) return {0xFFFD, i, false};
    low = 0x80;
    high = 0xBF;
    code_point = (code_point << 6) | (next & 0x3F);
  }
  return {code_point, size, true};
}

size_t FindBrokenUtf8(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t offset = 0;
  while (offset < text.size()) {
    // Almost all of a trace is ASCII: 32 bytes at a time.
    while (text.size() - offset >= 32) {
      uint64_t words[4];
      std::memcpy(words, text.data() + offset, sizeof words);
      if (((words[0] | words[1] | words[2] | words[3]) & kHighBits) != 0) break;
      offset += 32;
    }
    while (offset < text.size() && static_cast<unsigned char>(text[offset]) < 0x80) ++offset;
    if (offset == text.size()) break;
    const DecodedCharacter character = DecodeUtf8(text, offset);
    if (!character.is_valid) return offset;
    offset += character.size;
  }
  return std::string_view::npos;
}

std::string RepairUtf8(std::string_view text, size_t broken) {
  std::string repaired;
  repaired.reserve(text.size() + 16);
  while (broken != std::string_view::npos) {
    repaired.append(text.substr(0, broken)).append(kReplacement);
    text.remove_prefix(broken + DecodeUtf8(text, broken).size);
    broken = FindBrokenUtf8(text);
  }
  return repaired.append(text);
}

}  // namespace libtrace::detail

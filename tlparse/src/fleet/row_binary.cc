#include "fleet/row_binary.h"

#include <fmt/format.h>

#include "base/ascii.h"

namespace tlparse {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

std::uint64_t Swapped(std::uint64_t value) { return __builtin_bswap64(value); }

}  // namespace

std::string ToText(const Uuid& uuid) {
  const std::string digits = fmt::format("{:016x}{:016x}", uuid.high, uuid.low);
  return digits.substr(0, 8) + '-' + digits.substr(8, 4) + '-' + digits.substr(12, 4) + '-' +
         digits.substr(16, 4) + '-' + digits.substr(20);
}

std::optional<Uuid> ParseUuid(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  Uuid uuid;
  int count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (text[i] != '-') return std::nullopt;
      continue;
    }
    const int digit = HexDigit(text[i]);
    if (digit < 0) return std::nullopt;
    std::uint64_t& half = count++ < 16 ? uuid.high : uuid.low;
    half = half << 4 | static_cast<std::uint64_t>(digit);
  }
  return uuid;
}

void RowBinaryWriter::Hash(const Hash128& hash) {
  Raw(Swapped(hash.high));
  Raw(Swapped(hash.low));
}

Hash128 RowBinaryReader::Hash() {
  Hash128 hash;
  hash.high = Swapped(UInt64());
  hash.low = Swapped(UInt64());
  return hash;
}

std::uint64_t RowBinaryReader::Length() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 63; shift += 7) {
    const std::uint8_t byte = UInt8();
    value |= static_cast<std::uint64_t>(byte & 127) << shift;
    if (byte < 128) {
      is_damaged_ = is_damaged_ || value > kMostBytes;
      return is_damaged_ ? 0 : value;
    }
  }
  is_damaged_ = true;
  return 0;
}

std::string_view RowBinaryReader::Text() {
  const std::uint64_t size = Length();
  if (size > bytes_.size()) {
    is_short_ = true;
    bytes_ = {};
    return {};
  }
  const std::string_view text = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return text;
}

}  // namespace tlparse

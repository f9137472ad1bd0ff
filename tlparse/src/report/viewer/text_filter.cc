#include "report/viewer/text_filter.h"

#include <algorithm>
#include <array>

namespace tlparse {
namespace {

constexpr std::array<unsigned char, 256> kLower = [] {
  std::array<unsigned char, 256> lower{};
  for (std::size_t i = 0; i < lower.size(); ++i)
    lower[i] = static_cast<unsigned char>(i >= 'A' && i <= 'Z' ? i + 32 : i);
  return lower;
}();

}  // namespace

void TextFilter::Add(std::string_view piece) {
  std::uint32_t letters = last_;
  for (const char c : piece) {
    letters = (letters << 8 | kLower[static_cast<unsigned char>(c)]) & 0xFFFFFFU;
    const std::uint32_t bit = letters * 0x9E3779B1U >> 15;
    bits_[bit] = true;
  }
  last_ = letters;
}

std::string TextFilter::Bytes() const {
  std::vector<bool> bits = bits_;
  constexpr std::size_t kLeastBits = 64;
  while (bits.size() > kLeastBits &&
         static_cast<std::size_t>(std::count(bits.begin(), bits.end(), true)) * 8 < bits.size()) {
    for (std::size_t i = 0; i < bits.size() / 2; ++i) bits[i] = bits[2 * i] || bits[2 * i + 1];
    bits.resize(bits.size() / 2);
  }
  std::string bytes(bits.size() / 8, '\0');
  for (std::size_t i = 0; i < bits.size(); ++i)
    if (bits[i]) bytes[i / 8] = static_cast<char>(bytes[i / 8] | (1 << (i % 8)));
  return bytes;
}

}  // namespace tlparse

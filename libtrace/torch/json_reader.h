// Just enough of a JSON parser for the small files inside a model package.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace libtrace {

// Reads from the front. Every function returns whether the text was as expected; after false
// nothing more can be read.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : rest_(text) {}

  // `on_member(name)` reads the member's value and says whether it could.
  template <class OnMember>
  bool Object(OnMember on_member) {
    return List('{', '}', [&] {
      std::string name;
      return String(name) && Take(':') && on_member(name);
    });
  }
  template <class OnElement>
  bool Array(OnElement on_element) {
    return List('[', ']', on_element);
  }
  bool Strings(std::vector<std::string>& values) {
    return Array([&] { return String(values.emplace_back()); });
  }
  bool String(std::string& value) {
    if (!Take('"')) return false;
    for (value.clear(); !rest_.empty();) {
      const char c = Next();
      if (c == '"') return true;
      if (c != '\\') {
        value += c;
      } else if (!Escape(value)) {
        return false;
      }
    }
    return false;
  }
  bool Int(int64_t& value) {
    SkipSpace();
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  // Any value.
  bool Skip() {
    if (++depth_ > 64) return false;
    const bool is_read = SkipValue();
    --depth_;
    return is_read;
  }

 private:
  bool SkipValue() {
    SkipSpace();
    if (rest_.empty()) return false;
    std::string ignored;
    if (rest_[0] == '"') return String(ignored);
    if (rest_[0] == '{') return Object([&](const std::string&) { return Skip(); });
    if (rest_[0] == '[') return Array([&] { return Skip(); });
    const size_t end = rest_.find_first_of(",]} \t\r\n");
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end);
    return end != 0;
  }
  void SkipSpace() {
    const size_t start = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(start == std::string_view::npos ? rest_.size() : start);
  }
  char Next() {
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  bool Take(char expected) {
    SkipSpace();
    return !rest_.empty() && rest_[0] == expected && Next();
  }
  template <class OnElement>
  bool List(char open, char close, OnElement on_element) {
    if (!Take(open)) return false;
    if (Take(close)) return true;
    do {
      if (!on_element()) return false;
    } while (Take(','));
    return Take(close);
  }

  bool Escape(std::string& value) {
    if (rest_.empty()) return false;
    const char c = Next();
    if (c == 'u') return Unicode(value);
    constexpr std::string_view kNames = "bfnrt\"\\/", kValues = "\b\f\n\r\t\"\\/";
    const size_t index = kNames.find(c);
    if (index == std::string_view::npos) return false;
    value += kValues[index];
    return true;
  }
  bool Hex4(uint32_t& code) {
    if (rest_.size() < 4) return false;
    code = 0;
    for (int i = 0; i < 4; ++i) {
      const size_t digit =
          std::string_view("0123456789abcdef").find(static_cast<char>(Next() | 0x20));
      if (digit == std::string_view::npos) return false;
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    return true;
  }
  bool Unicode(std::string& value) {
    uint32_t code = 0, low = 0;
    if (!Hex4(code)) return false;
    if (code >= 0xd800 && code < 0xdc00 && rest_.starts_with("\\u")) {
      rest_.remove_prefix(2);
      if (!Hex4(low)) return false;
      code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
                                           : 0xfffd;
    }
    if (code >= 0xd800 && code < 0xe000) code = 0xfffd;  // half a pair
    const auto byte = [&](uint32_t bits) { value += static_cast<char>(bits); };
    if (code < 0x80) return byte(code), true;
    if (code < 0x800) return byte(0xc0 | code >> 6), byte(0x80 | (code & 63)), true;
    if (code < 0x10000) {
      return byte(0xe0 | code >> 12), byte(0x80 | (code >> 6 & 63)), byte(0x80 | (code & 63)), true;
    }
    return byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 63)), byte(0x80 | (code >> 6 & 63)),
           byte(0x80 | (code & 63)), true;
  }

  std::string_view rest_;
  int depth_ = 0;
};

}  // namespace libtrace

// Reads JSON from the front: checks it, skips values, decodes strings. The only place that knows the
// grammar. Header-only, so that each component compiles it for itself.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace libtrace {

// Every function returns whether the text was as expected; after false nothing more can be read.
// Containers nest at most 64 deep.
class JsonReader {
 public:
  struct Rules {
    bool accepts_nan = true;  // NaN, Infinity, -Infinity, which Python writes
    bool has_gaps = false;    // a member may lack its value: {"filename": , "line": 3}
  };
  explicit JsonReader(std::string_view text) : text_(text) {}
  JsonReader(std::string_view text, Rules rules) : text_(text), rules_(rules) {}

  // Skips white space. The character that follows; '\0' at the end.
  char Peek() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
    return at_ == text_.size() ? '\0' : text_[at_];
  }
  bool IsAtEnd() { return Peek(), at_ == text_.size(); }
  size_t position() const { return at_; }
  std::string_view TextSince(size_t begin) const { return text_.substr(begin, at_ - begin); }

  // `on_member(name)` reads the member's value and says whether it could. The name is as in the
  // text, with its escapes.
  template <class OnMember>
  bool Object(OnMember on_member) {
    return List('{', '}', [&] {
      std::string_view name;
      return StringText(name) && Take(':') && on_member(name);
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
    std::string_view inside;
    return StringText(inside) && (value = Decoded(inside), true);
  }
  bool Int(int64_t& value) {
    Peek();
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return false;
    at_ = static_cast<size_t>(end - text_.data());
    return true;
  }
  bool Number(std::string_view& number) {
    Peek();
    const size_t begin = at_;
    TakeHere('-');
    const bool has_zero = at_ < text_.size() && text_[at_] == '0';
    const size_t count = Digits();
    if (count == 0 || (has_zero && count > 1)) return false;
    if (TakeHere('.') && Digits() == 0) return false;
    if (TakeHere('e') || TakeHere('E')) {
      if (!TakeHere('+')) TakeHere('-');
      if (Digits() == 0) return false;
    }
    number = TextSince(begin);
    return true;
  }
  // true, false, null.
  bool Word(std::string_view word) {
    Peek();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  bool NotANumber() {
    return rules_.accepts_nan && (Word("NaN") || Word("Infinity") || Word("-Infinity"));
  }
  // Any value. Allocates nothing.
  bool Skip() {
    switch (Peek()) {
      case '{':
        return Object([this](std::string_view) { return Skip(); });
      case '[':
        return Array([this] { return Skip(); });
      case '"':
        return SkipString();
      case 't':
        return Word("true");
      case 'f':
        return Word("false");
      case 'n':
        return Word("null");
      case ',':
      case '}':
        return rules_.has_gaps;
      default:
        std::string_view number;
        return NotANumber() || Number(number);
    }
  }

  // The text that `inside` stands for, the part of a string between its quotes that was read
  // before. A surrogate without its partner becomes U+FFFD.
  static std::string Decoded(std::string_view inside) {
    std::string value;
    while (true) {
      const size_t escape = inside.find('\\');
      value += inside.substr(0, escape);
      if (escape == std::string_view::npos) return value;
      const char kind = inside[escape + 1];
      inside.remove_prefix(escape + 2);
      if (kind == 'u') {
        AppendUtf8(CodePoint(inside), value);
      } else {
        value += std::string_view("\b\f\n\r\t\"\\/")[kKinds.find(kind)];
      }
    }
  }

 private:
  static constexpr int kMaxDepth = 64;
  static constexpr std::string_view kKinds = "bfnrt\"\\/";  // of escapes, but \u

  bool TakeHere(char expected) {
    if (at_ == text_.size() || text_[at_] != expected) return false;
    ++at_;
    return true;
  }
  bool Take(char expected) { return Peek(), TakeHere(expected); }
  template <class OnElement>
  bool List(char open, char close, OnElement on_element) {
    if (!Take(open) || ++depth_ > kMaxDepth) return false;
    if (!Take(close)) {
      do {
        if (!on_element()) return false;
      } while (Take(','));
      if (!Take(close)) return false;
    }
    --depth_;
    return true;
  }
  // What is between the quotes of a string.
  bool StringText(std::string_view& inside) {
    Peek();
    const size_t begin = at_ + 1;
    if (!SkipString()) return false;
    inside = text_.substr(begin, at_ - begin - 1);
    return true;
  }
  bool SkipString() {
    if (!Take('"')) return false;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\' && !SkipEscape()) return false;
    }
    return false;
  }
  bool SkipEscape() {
    if (at_ == text_.size()) return false;
    const char kind = text_[at_++];
    if (kind != 'u') return kKinds.find(kind) != std::string_view::npos;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ == text_.size() || HexDigit(text_[at_]) > 15) return false;
    }
    return true;
  }
  size_t Digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ - begin;
  }

  static uint32_t HexDigit(char c) {
    if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0');
    const char lower = static_cast<char>(c | 32);
    return lower >= 'a' && lower <= 'f' ? static_cast<uint32_t>(lower - 'a' + 10) : 16;
  }
  // Of the four digits in front of `rest`, which are removed.
  static uint32_t Hex4(std::string_view& rest) {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 4 | HexDigit(rest[static_cast<size_t>(i)]);
    rest.remove_prefix(4);
    return value;
  }
  // Of the digits of a \u and, if they are a high surrogate, of the \u that follows.
  static uint32_t CodePoint(std::string_view& rest) {
    const uint32_t unit = Hex4(rest);
    if (unit < 0xD800 || unit >= 0xE000) return unit;
    if (unit < 0xDC00 && rest.substr(0, 2) == "\\u") {
      std::string_view next = rest.substr(2);
      const uint32_t low = Hex4(next);
      if (low >= 0xDC00 && low < 0xE000) {
        rest = next;
        return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
      }
    }
    return 0xFFFD;
  }
  static void AppendUtf8(uint32_t c, std::string& out) {
    const auto byte = [&](uint32_t bits) { out += static_cast<char>(bits); };
    const auto rest = [&](int shift) { byte(0x80 | (c >> shift & 63)); };
    if (c < 0x80) {
      byte(c);
    } else if (c < 0x800) {
      byte(0xC0 | c >> 6), rest(0);
    } else if (c < 0x10000) {
      byte(0xE0 | c >> 12), rest(6), rest(0);
    } else {
      byte(0xF0 | c >> 18), rest(12), rest(6), rest(0);
    }
  }

  std::string_view text_;
  Rules rules_{};
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace libtrace

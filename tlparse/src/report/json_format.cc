#include "report/json_format.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/json_writer.h"
#include "report/output_directory.h"

namespace tlparse {
namespace {

constexpr std::size_t kMaxDepth = 128;  // of serde_json, which other readers of such files use
constexpr std::size_t kMaxIndentedDepth = 32;

struct StringSink {
  std::string& text;
  void Append(std::string_view bytes) { text += bytes; }
  void Append(char byte) { text += byte; }
};

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Whether one of the 8 bytes is a quote, a backslash or a control character.
bool HasSpecial(const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kTops = 0x8080808080808080;
  const std::uint64_t quote = word ^ (kOnes * '"');
  const std::uint64_t backslash = word ^ (kOnes * '\\');
  return (((quote - kOnes) & ~quote) | ((backslash - kOnes) & ~backslash) |
          ((word - kOnes * 0x20) & ~word)) &
         kTops;
}

const char* SkipSpace(const char* at, const char* end) {
  while (at != end && IsSpace(*at)) ++at;
  return at;
}

// `at` stands behind the opening quote; returns the place behind the closing one, or nullptr.
const char* SkipString(const char* at, const char* end) {
  while (true) {
    while (end - at >= 8 && !HasSpecial(at)) at += 8;
    if (at == end) return nullptr;
    const char c = *at++;
    if (c == '"') return at;
    if (static_cast<unsigned char>(c) < 0x20) return nullptr;
    if (c != '\\') continue;
    if (at == end) return nullptr;
    const char escape = *at++;
    if (escape == 'u') {
      if (end - at < 4) return nullptr;
      for (int i = 0; i < 4; ++i) {
        if (!IsHex(*at++)) return nullptr;
      }
    } else if (std::string_view("\"\\/bfnrt").find(escape) == std::string_view::npos) {
      return nullptr;
    }
  }
}

const char* SkipDigits(const char* at, const char* end) {
  if (at == end || !IsDigit(*at)) return nullptr;
  while (at != end && IsDigit(*at)) ++at;
  return at;
}

const char* SkipNumber(const char* at, const char* end) {
  if (at != end && *at == '-') ++at;
  if (at == end) return nullptr;
  const char* const first = at;
  at = SkipDigits(at, end);
  if (at == nullptr || (*first == '0' && at - first > 1)) return nullptr;
  if (at != end && *at == '.') {
    at = SkipDigits(at + 1, end);
    if (at == nullptr) return nullptr;
  }
  if (at != end && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at != end && (*at == '+' || *at == '-')) ++at;
    at = SkipDigits(at, end);
  }
  return at;
}

// A string, number, true, false or null: the place behind it, or nullptr.
const char* SkipScalar(const char* at, const char* end) {
  const auto word = [&](std::string_view text) {
    return std::string_view(at, static_cast<std::size_t>(end - at)).starts_with(text)
               ? at + text.size()
               : nullptr;
  };
  switch (*at) {
    case '"':
      return SkipString(at + 1, end);
    case 't':
      return word("true");
    case 'f':
      return word("false");
    case 'n':
      return word("null");
    default:
      return SkipNumber(at, end);
  }
}

template <typename Sink>
class Formatter {
 public:
  Formatter(std::string_view json, JsonLayout layout, Sink& out)
      : at_(json.data()), end_(json.data() + json.size()), layout_(layout), out_(out) {}

  bool Run() {
    while (true) {
      bool opened = false;
      if (!Value(opened)) return false;
      if (opened) continue;
      // A value has ended; so may have the containers around it.
      while (true) {
        at_ = SkipSpace(at_, end_);
        if (depth_ == 0) return at_ == end_;
        if (at_ == end_) return false;
        if (*at_ == ',') {
          ++at_;
          out_.Append(',');
          NewLine();
          if (in_object_[depth_] && !Name()) return false;
          break;
        }
        if (*at_ != (in_object_[depth_] ? '}' : ']')) return false;
        --depth_;
        NewLine();
        out_.Append(*at_++);
      }
    }
  }

 private:
  // One scalar, empty container or opening bracket (with the first member's name): `opened` tells
  // the latter.
  bool Value(bool& opened) {
    at_ = SkipSpace(at_, end_);
    if (at_ == end_) return false;
    if (*at_ != '{' && *at_ != '[') {
      const char* const end = SkipScalar(at_, end_);
      if (end == nullptr) return false;
      out_.Append(std::string_view(at_, static_cast<std::size_t>(end - at_)));
      at_ = end;
      return true;
    }
    const bool is_object = *at_ == '{';
    out_.Append(*at_++);
    at_ = SkipSpace(at_, end_);
    if (at_ == end_) return false;
    if (*at_ == (is_object ? '}' : ']')) {
      out_.Append(*at_++);
      return true;
    }
    if (++depth_ >= kMaxDepth) return false;
    in_object_[depth_] = is_object;
    opened = true;
    NewLine();
    return !is_object || Name();
  }

  bool Name() {
    at_ = SkipSpace(at_, end_);
    if (at_ == end_ || *at_ != '"') return false;
    const char* const end = SkipString(at_ + 1, end_);
    if (end == nullptr) return false;
    out_.Append(std::string_view(at_, static_cast<std::size_t>(end - at_)));
    at_ = SkipSpace(end, end_);
    if (at_ == end_ || *at_ != ':') return false;
    ++at_;
    out_.Append(layout_ == JsonLayout::kPretty ? std::string_view(": ") : std::string_view(":"));
    return true;
  }

  void NewLine() {
    static constexpr std::string_view kIndent =
        "\n                                                                ";
    static_assert(kIndent.size() == 1 + 2 * kMaxIndentedDepth);
    // Whether a bracket's inside stands on lines of its own depends on its level alone, so that the
    // closing bracket agrees with the opening one.
    if (layout_ == JsonLayout::kCompact || depth_ > kMaxIndentedDepth) return;
    out_.Append(kIndent.substr(0, 1 + 2 * depth_));
  }

  const char* at_;
  const char* end_;
  JsonLayout layout_;
  Sink& out_;
  std::size_t depth_ = 0;
  std::array<bool, kMaxDepth> in_object_{};
};

}  // namespace

bool AppendJson(std::string_view json, JsonLayout layout, FileWriter& out) {
  return Formatter<FileWriter>(json, layout, out).Run();
}

bool AppendJson(std::string_view json, JsonLayout layout, std::string& out) {
  StringSink sink{out};
  return Formatter<StringSink>(json, layout, sink).Run();
}

std::string JsonString(std::string_view text) {
  std::string json;
  AppendJsonString(text, json);
  return json;
}

}  // namespace tlparse

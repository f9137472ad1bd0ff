#include "report/tree/json_format.h"

#include <array>
#include <bit>
#include <cstddef>

#include "base/ascii.h"
#include "base/json_writer.h"
#include "base/plain_bytes.h"
#include "report/output_directory.h"

namespace tlparse {
namespace {

constexpr std::size_t kMaxDepth = 128;  // of serde_json, which other readers of such files use
constexpr std::size_t kMaxIndentedDepth = 32;

struct StringSink {
  std::string& text;
  void Append(std::string_view bytes) { text += bytes; }
};

struct NullSink {
  void Append(std::string_view) {}
};

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

const char* SkipSpace(const char* at, const char* end) {
  while (at != end && IsSpace(*at)) ++at;
  return at;
}

// `at` is after the opening quote; returns the place after the closing one, or nullptr.
const char* SkipString(const char* at, const char* end) {
  while (true) {
    while (end - at >= static_cast<std::ptrdiff_t>(kBlockBytes)) {
      const unsigned special = JsonSpecialBytes(at);
      at += special == 0 ? static_cast<int>(kBlockBytes) : std::countr_zero(special);
      if (special != 0) break;
    }
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
        if (depth_ == 0) {
          Flush();
          return at_ == end_;
        }
        if (at_ == end_) return false;
        if (*at_ == ',') {
          KeepTo(at_ + 1);
          NewLine();
          if (in_object_[depth_] && !Name()) return false;
          break;
        }
        if (*at_ != (in_object_[depth_] ? '}' : ']')) return false;
        --depth_;
        NewLine();
        KeepTo(at_ + 1);
      }
    }
  }

 private:
  // One scalar, empty container or opening bracket (with the first member's name); `opened` is set
  // for an opening bracket.
  bool Value(bool& opened) {
    at_ = SkipSpace(at_, end_);
    if (at_ == end_) return false;
    if (*at_ != '{' && *at_ != '[') {
      const char* const end = SkipScalar(at_, end_);
      if (end == nullptr) return false;
      KeepTo(end);
      return true;
    }
    const bool is_object = *at_ == '{';
    KeepTo(at_ + 1);
    at_ = SkipSpace(at_, end_);
    if (at_ == end_) return false;
    if (*at_ == (is_object ? '}' : ']')) {
      KeepTo(at_ + 1);
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
    KeepTo(end);
    at_ = SkipSpace(at_, end_);
    if (at_ == end_ || *at_ != ':') return false;
    KeepTo(at_ + 1);
    if (layout_ == JsonLayout::kCompact) return true;
    if (at_ != end_ && *at_ == ' ') {
      KeepTo(at_ + 1);
    } else {
      Insert(" ");
    }
    return true;
  }

  void NewLine() {
    static constexpr std::string_view kIndent =
        "\n                                                                ";
    static_assert(kIndent.size() == 1 + 2 * kMaxIndentedDepth);
    // Whether the inside of a bracket is written on separate lines depends on its level alone, so
    // that the closing bracket agrees with the opening one.
    if (layout_ == JsonLayout::kCompact || depth_ > kMaxIndentedDepth) return;
    Insert(kIndent.substr(0, 1 + 2 * depth_));
  }

  // What is kept follows on what was kept before, as a rule: then both are copied at once.
  void KeepTo(const char* end) {
    if (at_ != kept_end_) {
      Flush();
      kept_ = at_;
    }
    kept_end_ = at_ = end;
  }
  void Insert(std::string_view bytes) {
    Flush();
    out_.Append(bytes);
  }
  void Flush() {
    if (kept_ != nullptr)
      out_.Append(std::string_view(kept_, static_cast<std::size_t>(kept_end_ - kept_)));
    kept_ = kept_end_ = nullptr;
  }

  const char* at_;
  const char* end_;
  const char* kept_ = nullptr;
  const char* kept_end_ = nullptr;
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

bool IsJson(std::string_view json) {
  NullSink sink;
  return Formatter<NullSink>(json, JsonLayout::kCompact, sink).Run();
}

std::string JsonString(std::string_view text) {
  std::string json;
  AppendJsonString(text, json);
  return json;
}

}  // namespace tlparse

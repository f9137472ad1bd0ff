#include <cstdint>

#include "core/utf8.h"
#include "libtrace/json.h"

namespace libtrace {
namespace {

// Reads one JSON value and writes it again through a JsonWriter.
class Normalizer {
 public:
  Normalizer(std::string_view text, JsonWriter& json) : text_(text), json_(json) {}

  bool Run() {
    if (!Value(0)) return false;
    SkipSpace();
    return offset_ == text_.size();
  }

  // Of text that Run() takes: the members of an object without its braces.
  void RunMembers() {
    SkipSpace();
    Object(1, false);
  }

  static bool IsObject(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && text[first] == '{';
  }

 private:
  static constexpr int kMaxDepth = 64;

  void SkipSpace() {
    while (offset_ < text_.size() && (text_[offset_] == ' ' || text_[offset_] == '\t' ||
                                      text_[offset_] == '\n' || text_[offset_] == '\r')) {
      ++offset_;
    }
  }

  bool Consume(std::string_view token) {
    if (!text_.substr(offset_).starts_with(token)) return false;
    offset_ += token.size();
    return true;
  }

  bool Value(int depth) {
    SkipSpace();
    if (offset_ == text_.size()) return false;
    switch (text_[offset_]) {
      case '{':
        return depth < kMaxDepth && Object(depth + 1);
      case '[':
        return depth < kMaxDepth && Array(depth + 1);
      case '"': {
        std::string value;
        return String(value) && (json_.String(value), true);
      }
      case 't':
        return Consume("true") && (json_.Bool(true), true);
      case 'f':
        return Consume("false") && (json_.Bool(false), true);
      case 'n':
        return Consume("null") && (json_.Null(), true);
      default:
        if (Consume("NaN") || Consume("Infinity") || Consume("-Infinity"))
          return json_.Null(), true;
        return Number();
    }
  }

  bool Object(int depth, bool with_braces = true) {
    const auto end = [&] {
      if (with_braces) json_.EndObject();
      return true;
    };
    ++offset_;
    if (with_braces) json_.BeginObject();
    SkipSpace();
    if (Consume("}")) return end();
    for (;;) {
      SkipSpace();
      std::string name;
      if (offset_ == text_.size() || text_[offset_] != '"' || !String(name)) return false;
      SkipSpace();
      if (!Consume(":")) return false;
      json_.Key(name);
      if (!Value(depth)) return false;
      SkipSpace();
      if (Consume("}")) return end();
      if (!Consume(",")) return false;
    }
  }

  bool Array(int depth) {
    ++offset_;
    json_.BeginArray();
    SkipSpace();
    if (Consume("]")) return json_.EndArray(), true;
    for (;;) {
      if (!Value(depth)) return false;
      SkipSpace();
      if (Consume("]")) return json_.EndArray(), true;
      if (!Consume(",")) return false;
    }
  }

  bool Number() {
    const size_t start = offset_;
    const auto digits = [this] {
      const size_t first = offset_;
      while (offset_ < text_.size() && text_[offset_] >= '0' && text_[offset_] <= '9') ++offset_;
      return offset_ - first;
    };
    Consume("-");
    const bool leading_zero = offset_ < text_.size() && text_[offset_] == '0';
    const size_t count = digits();
    if (count == 0 || (leading_zero && count > 1)) return false;
    if (Consume(".") && digits() == 0) return false;
    if (Consume("e") || Consume("E")) {
      if (!Consume("+")) Consume("-");
      if (digits() == 0) return false;
    }
    json_.Number(text_.substr(start, offset_ - start));
    return true;
  }

  bool Hex4(uint32_t& value) {
    if (text_.size() - offset_ < 4) return false;
    value = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[offset_++];
      value <<= 4;
      if (c >= '0' && c <= '9') {
        value |= static_cast<uint32_t>(c - '0');
      } else if ((c | 32) >= 'a' && (c | 32) <= 'f') {
        value |= static_cast<uint32_t>((c | 32) - 'a' + 10);
      } else {
        return false;
      }
    }
    return true;
  }

  static void AppendUtf8(uint32_t c, std::string& out) {
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xC0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 63));
    } else if (c < 0x10000) {
      out += static_cast<char>(0xE0 | c >> 12);
      out += static_cast<char>(0x80 | (c >> 6 & 63));
      out += static_cast<char>(0x80 | (c & 63));
    } else {
      out += static_cast<char>(0xF0 | c >> 18);
      out += static_cast<char>(0x80 | (c >> 12 & 63));
      out += static_cast<char>(0x80 | (c >> 6 & 63));
      out += static_cast<char>(0x80 | (c & 63));
    }
  }

  bool UnicodeEscape(std::string& out) {
    uint32_t unit = 0;
    if (!Hex4(unit)) return false;
    if (unit >= 0xD800 && unit < 0xDC00 && text_.substr(offset_).starts_with("\\u")) {
      const size_t rewind = offset_;
      offset_ += 2;
      uint32_t low = 0;
      if (!Hex4(low)) return false;
      if (low >= 0xDC00 && low < 0xE000) {
        AppendUtf8(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00), out);
        return true;
      }
      offset_ = rewind;
    }
    if (unit >= 0xD800 && unit < 0xE000) {
      out += detail::kReplacement;  // a lone surrogate
    } else {
      AppendUtf8(unit, out);
    }
    return true;
  }

  bool String(std::string& out) {
    ++offset_;
    while (offset_ < text_.size()) {
      const char c = text_[offset_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (offset_ == text_.size()) return false;
      switch (text_[offset_++]) {
        case '"':
          out += '"';
          break;
        case '\\':
          out += '\\';
          break;
        case '/':
          out += '/';
          break;
        case 'b':
          out += '\b';
          break;
        case 'f':
          out += '\f';
          break;
        case 'n':
          out += '\n';
          break;
        case 'r':
          out += '\r';
          break;
        case 't':
          out += '\t';
          break;
        case 'u':
          if (!UnicodeEscape(out)) return false;
          break;
        default:
          return false;
      }
    }
    return false;
  }

  std::string_view text_;
  JsonWriter& json_;
  size_t offset_ = 0;
};

}  // namespace

JsonWriter& JsonWriter::MembersOf(std::string_view object) {
  std::string checked;
  if (Normalizer::IsObject(object) && AppendNormalizedJson(object, JsonStyle::kOneLine, checked)) {
    Normalizer(object, *this).RunMembers();
    return *this;
  }
  return Field("args", object);
}

bool AppendNormalizedJson(std::string_view json, JsonStyle style, std::string& out) {
  const size_t size = out.size();
  JsonWriter writer(out, style);
  if (Normalizer(json, writer).Run()) return true;
  out.resize(size);
  return false;
}

}  // namespace libtrace

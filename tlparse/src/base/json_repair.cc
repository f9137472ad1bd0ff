#include "base/json_repair.h"

#include <fmt/core.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/json_string.h"
#include "base/utf8.h"

namespace tlparse {
namespace {

constexpr std::size_t kMaxDepth = 1023;
// Names of so few members are compared with each other; more are sorted.
constexpr std::size_t kFewMembers = 8;

// By length first: names of equal length are rare enough to make most comparisons cheap.
bool ShorterOrLess(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Bytes that a string may hold as they are: no quote, backslash, control character, or non-ASCII.
constexpr std::array<bool, 256> kIsPlain = [] {
  std::array<bool, 256> is_plain{};
  for (std::size_t byte = 0x20; byte < 0x80; ++byte) is_plain[byte] = true;
  is_plain['"'] = is_plain['\\'] = false;
  return is_plain;
}();

// Copies the text token by token. What has to go, the earlier ones of equal members, is noted and
// cut out at the end, all at once.
class Repairer {
 public:
  explicit Repairer(std::string_view text) : text_(text) { out_.text.reserve(text.size()); }

  Result<RepairedJson> Run() {
    if (!Document()) {
      return Fail(ErrorCode::kBadJson, fmt::format("not JSON at byte {}: {}", position_, problem_));
    }
    CutDeadSpans();
    return std::move(out_);
  }

 private:
  struct Member {
    std::size_t begin;                 // of the member in the output
    std::size_t name_begin, name_end;  // inside the quotes, in the output or in decoded_names_
    bool is_decoded;
  };
  struct Level {
    bool is_object;
    std::size_t first_member;   // in members_
    std::size_t decoded_begin;  // in decoded_names_
  };

  bool Problem(const char* problem) {
    problem_ = problem;
    return false;
  }

  void SkipSpace() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t' ||
                                        text_[position_] == '\n' || text_[position_] == '\r')) {
      ++position_;
    }
  }

  // The next byte; NUL (which no token begins with) at the end.
  char Peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }

  bool Copy(char c) {
    out_.text.push_back(c);
    ++position_;
    return true;
  }

  bool Document() {
    do {
      SkipSpace();
      if (!Value()) return false;
      // Close what ends here; stop before the next value or at the end of the document.
      while (!levels_.empty()) {
        SkipSpace();
        const bool is_object = levels_.back().is_object;
        const bool is_empty = std::exchange(is_just_opened_, false);
        if (Peek() == (is_object ? '}' : ']')) {
          if (is_object) CloseObject();
          levels_.pop_back();
          Copy(Peek());
          continue;
        }
        if (!is_empty) {
          if (Peek() != ',')
            return Problem(is_object ? "',' or '}' expected" : "',' or ']' expected");
          Copy(',');
          SkipSpace();
        }
        if (is_object && !Name()) return false;
        break;
      }
    } while (!levels_.empty());
    SkipSpace();
    return position_ == text_.size() || Problem("something follows the value");
  }

  // A whole scalar, or the opening bracket of a container.
  bool Value() {
    const char first = Peek();
    switch (first) {
      case '{':
      case '[':
        if (levels_.size() == kMaxDepth) return Problem("nested too deeply");
        levels_.push_back({first == '{', members_.size(), decoded_names_.size()});
        is_just_opened_ = true;
        return Copy(first);
      case '"':
        return String();
      case 't':
        return Literal("true", "true");
      case 'f':
        return Literal("false", "false");
      case 'n':
        return Literal("null", "null");
      case 'N':
        out_.had_nan = true;
        return Literal("NaN", "null");
      case 'I':
        out_.had_nan = true;
        return Literal("Infinity", "null");
      case '-':
        if (text_.substr(position_ + 1, 1) == "I") {
          out_.had_nan = true;
          return Literal("-Infinity", "null");
        }
        return Number();
      default:
        if (IsDigit(first)) return Number();
        return Problem(position_ == text_.size() ? "the text ends where a value is expected"
                                                 : "a value expected");
    }
  }

  bool Literal(std::string_view literal, std::string_view replacement) {
    if (text_.substr(position_, literal.size()) != literal) return Problem("a value expected");
    position_ += literal.size();
    out_.text.append(replacement);
    return true;
  }

  bool Digits() {
    if (!IsDigit(Peek())) return Problem("a digit expected");
    while (IsDigit(Peek())) ++position_;
    return true;
  }

  bool Number() {
    const std::size_t begin = position_;
    if (Peek() == '-') ++position_;
    if (Peek() == '0') {
      ++position_;
    } else if (!Digits()) {
      return false;
    }
    if (Peek() == '.') {
      ++position_;
      if (!Digits()) return false;
    }
    if (Peek() == 'e' || Peek() == 'E') {
      ++position_;
      if (Peek() == '+' || Peek() == '-') ++position_;
      if (!Digits()) return false;
    }
    out_.text.append(text_.substr(begin, position_ - begin));
    return true;
  }

  bool Name() {
    if (Peek() != '"') return Problem("a member's name expected");
    Member member{out_.text.size(), out_.text.size() + 1, 0, false};
    if (!String()) return false;
    member.name_end = out_.text.size() - 1;
    const std::string_view name = NameOf(member);
    if (name.find('\\') != name.npos) {
      const std::string meaning = UnescapeJson(name);
      member.name_begin = decoded_names_.size();
      decoded_names_.append(meaning);
      member.name_end = decoded_names_.size();
      member.is_decoded = true;
    }
    members_.push_back(member);
    SkipSpace();
    if (Peek() != ':') return Problem("':' expected");
    return Copy(':');
  }

  bool String() {
    Copy('"');
    for (;;) {
      const std::size_t begin = position_;
      while (position_ < text_.size() && kIsPlain[static_cast<unsigned char>(text_[position_])]) {
        ++position_;
      }
      out_.text.append(text_.data() + begin, position_ - begin);
      if (position_ == text_.size()) return Problem("the text ends inside a string");
      const char c = text_[position_];
      if (c == '"') return Copy('"');
      if (c == '\\') {
        if (!Escape()) return false;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        out_.had_control = true;
        out_.text.append(fmt::format("\\u{:04x}", static_cast<unsigned>(c)));
        ++position_;
      } else {
        const auto [length, is_valid] = FirstUtf8Sequence(text_.substr(position_));
        if (is_valid) {
          out_.text.append(text_.substr(position_, length));
        } else {
          out_.had_invalid_utf8 = true;
          out_.text.append("\xef\xbf\xbd");
        }
        position_ += length;
      }
    }
  }

  bool Escape() {
    const char kind = position_ + 1 < text_.size() ? text_[position_ + 1] : '\0';
    if (kind != 'u') {
      if (kind == '\0' || std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos) {
        return Problem("an escape sequence expected");
      }
      Copy('\\');
      return Copy(kind);
    }
    constexpr std::size_t kEscapeBytes = 6;
    const std::optional<std::uint32_t> unit = UnitAt(position_);
    if (!unit) return Problem("an escape sequence expected");
    if (IsHighSurrogate(*unit)) {
      const std::optional<std::uint32_t> next = UnitAt(position_ + kEscapeBytes);
      if (next && IsLowSurrogate(*next)) {
        out_.text.append(text_.substr(position_, 2 * kEscapeBytes));
        position_ += 2 * kEscapeBytes;
        return true;
      }
    }
    if (IsHighSurrogate(*unit) || IsLowSurrogate(*unit)) {
      out_.had_lone_surrogate = true;
      out_.text.append("\\ufffd");
    } else {
      out_.text.append(text_.substr(position_, kEscapeBytes));
    }
    position_ += kEscapeBytes;
    return true;
  }

  // The UTF-16 unit that a \uXXXX at `position` encodes.
  std::optional<std::uint32_t> UnitAt(std::size_t position) const {
    if (position > text_.size() || text_.substr(position, 2) != "\\u") return std::nullopt;
    return HexUnit(text_.substr(position + 2, 4));
  }

  std::string_view NameOf(const Member& member) const {
    const std::string& text = member.is_decoded ? decoded_names_ : out_.text;
    return std::string_view(text).substr(member.name_begin, member.name_end - member.name_begin);
  }

  // A member that is not the last of its name goes, up to the next member: with its comma.
  void Kill(std::size_t index) {
    out_.had_duplicate = true;
    dead_spans_.emplace_back(members_[index].begin, members_[index + 1].begin);
  }

  void CloseObject() {
    const Level level = levels_.back();
    const std::size_t first = level.first_member, count = members_.size() - first;
    if (count <= kFewMembers) {
      for (std::size_t i = first; i < members_.size(); ++i) {
        for (std::size_t later = i + 1; later < members_.size(); ++later) {
          if (NameOf(members_[i]) == NameOf(members_[later])) {
            Kill(i);
            break;
          }
        }
      }
    } else {
      std::vector<std::pair<std::string_view, std::size_t>> names;
      names.reserve(count);
      for (std::size_t i = first; i < members_.size(); ++i) {
        names.emplace_back(NameOf(members_[i]), i);
      }
      std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
        return a.first != b.first ? ShorterOrLess(a.first, b.first) : a.second < b.second;
      });
      for (std::size_t i = 0; i + 1 < count; ++i) {
        if (names[i].first == names[i + 1].first) Kill(names[i].second);
      }
    }
    members_.resize(first);
    decoded_names_.resize(level.decoded_begin);
  }

  void CutDeadSpans() {
    if (dead_spans_.empty()) return;
    std::sort(dead_spans_.begin(), dead_spans_.end());
    std::string& text = out_.text;
    std::size_t kept = 0, position = 0;
    const auto keep_until = [&](std::size_t end) {
      if (end > position) {
        std::memmove(text.data() + kept, text.data() + position, end - position);
        kept += end - position;
      }
    };
    for (const auto& [begin, end] : dead_spans_) {  // one may lie inside another
      keep_until(begin);
      position = std::max(position, end);
    }
    keep_until(text.size());
    text.resize(kept);
  }

  std::string_view text_;
  std::size_t position_ = 0;
  const char* problem_ = "";
  RepairedJson out_;
  std::vector<Level> levels_;
  std::vector<Member> members_;  // of all open objects
  std::string decoded_names_;    // of names with escape sequences
  std::vector<std::pair<std::size_t, std::size_t>> dead_spans_;
  bool is_just_opened_ = false;
};

// Objects with many members: through a table of hashes. Not inlined, so that the recursion below
// has small frames.
__attribute__((noinline)) bool HasDuplicateAmongMany(const simdjson::dom::object& object) {
  constexpr std::size_t kMaxProbes = 32;  // more are malice: the sort below does not mind
  std::vector<std::uint64_t> table(std::bit_ceil(object.size() * 2));
  const std::size_t mask = table.size() - 1;
  const bool is_suspicious = [&] {
    for (const auto field : object) {
      const std::uint64_t hash = XXH3_64bits(field.key.data(), field.key.size()) | 1;  // not 0
      std::size_t position = hash >> 1 & mask;
      for (std::size_t probes = 0; table[position] != 0; position = (position + 1) & mask) {
        if (table[position] == hash || ++probes == kMaxProbes) return true;
      }
      table[position] = hash;
    }
    return false;
  }();
  if (!is_suspicious) return false;
  // Equal names, or an accident of the hash.
  std::vector<std::string_view> names;
  for (const auto field : object) names.push_back(field.key);
  std::sort(names.begin(), names.end(), ShorterOrLess);
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

}  // namespace

Result<RepairedJson> RepairJson(std::string_view text) { return Repairer(text).Run(); }

bool HasDuplicateMembers(const simdjson::dom::element& element) {
  const simdjson::dom::element_type type = element.type();
  if (type == simdjson::dom::element_type::OBJECT) {
    const simdjson::dom::object object = element.get_object().value_unsafe();
    const bool is_small = object.size() <= kFewMembers;
    if (!is_small && HasDuplicateAmongMany(object)) return true;
    std::string_view names[kFewMembers];
    std::size_t count = 0;
    for (const auto field : object) {
      if (is_small) {
        for (std::size_t i = 0; i < count; ++i) {
          if (names[i] == field.key) return true;
        }
        names[count++] = field.key;
      }
      if (HasDuplicateMembers(field.value)) return true;
    }
  } else if (type == simdjson::dom::element_type::ARRAY) {
    const simdjson::dom::array array = element.get_array().value_unsafe();
    for (const simdjson::dom::element child : array) {
      if (HasDuplicateMembers(child)) return true;
    }
  }
  return false;
}

}  // namespace tlparse

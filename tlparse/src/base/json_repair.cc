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

#include "base/json_string.h"
#include "base/json_walk.h"
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

// Copies the text token by token. Of members of one name all but the last are noted and cut out at
// the end, all at once.
class Repairer : JsonWalker<Repairer> {
 public:
  explicit Repairer(std::string_view text) : JsonWalker(text) { out_.text.reserve(text.size()); }

  Result<RepairedJson> Run() {
    if (!Walk()) {
      return Fail(ErrorCode::kBadJson,
                  fmt::format("not JSON at byte {}: {}", position(), problem_));
    }
    CutDeadSpans();
    return std::move(out_);
  }

 private:
  friend class JsonWalker<Repairer>;
  struct Member {
    std::size_t begin;                 // of the member in the output
    std::size_t name_begin, name_end;  // inside the quotes, in the output or in decoded_names_
    bool is_decoded;
  };
  struct Level {
    std::size_t first_member;   // in members_
    std::size_t decoded_begin;  // in decoded_names_
  };

  bool Copy(std::size_t size = 1) {
    out_.text.append(at_, size);
    at_ += size;
    return true;
  }

  bool Open() {
    if (depth() == kMaxDepth) return Problem("nested too deeply");
    levels_.push_back({members_.size(), decoded_names_.size()});
    return Copy();
  }
  bool Close() {
    if (*at_ == '}') CloseObject();
    levels_.pop_back();
    return Copy();
  }
  void Comma() { Copy(); }
  void Colon() { Copy(); }

  bool Scalar() {
    if (*at_ == '"') return CopyString();
    if (IsAtPythonNumber()) {
      out_.had_nan = true;
      out_.text.append("null");
      return PythonNumber();
    }
    const char* const begin = at_;
    if (!StrictScalar()) return false;
    out_.text.append(TextSince(begin));
    return true;
  }

  bool Name() {
    Member member{out_.text.size(), out_.text.size() + 1, 0, false};
    if (!CopyString()) return false;
    member.name_end = out_.text.size() - 1;
    const std::string_view name = NameOf(member);
    if (name.find('\\') != name.npos) {
      const std::string meaning = *UnescapeJson(name);
      member.name_begin = decoded_names_.size();
      decoded_names_.append(meaning);
      member.name_end = decoded_names_.size();
      member.is_decoded = true;
    }
    members_.push_back(member);
    return true;
  }

  bool CopyString() {
    Copy();
    while (true) {
      const char* const begin = at_;
      while (at_ != end_ && kIsPlain[static_cast<unsigned char>(*at_)]) ++at_;
      out_.text.append(TextSince(begin));
      if (at_ == end_) return Cut("the text ends inside a string");
      const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
      const char c = *at_;
      if (c == '"') return Copy();
      if (c == '\\') {
        if (!CopyEscape(rest)) return false;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        out_.had_control = true;
        out_.text.append(fmt::format("\\u{:04x}", static_cast<unsigned>(c)));
        ++at_;
      } else if (const auto [length, is_valid] = FirstUtf8Sequence(rest); is_valid) {
        Copy(length);
      } else {
        out_.had_invalid_utf8 = true;
        out_.text.append("\xef\xbf\xbd");
        at_ += length;
      }
    }
  }

  bool CopyEscape(std::string_view rest) {
    constexpr std::size_t kEscapeBytes = 6;
    const std::optional<std::uint32_t> unit = UnitOf(rest);
    if (!unit) {
      if (rest.size() < 2 || std::string_view("\"\\/bfnrt").find(rest[1]) == rest.npos)
        return Problem("an escape sequence expected");
      return Copy(2);
    }
    if (IsHighSurrogate(*unit)) {
      const std::optional<std::uint32_t> next = UnitOf(rest.substr(kEscapeBytes));
      if (next && IsLowSurrogate(*next)) return Copy(2 * kEscapeBytes);
    }
    if (!IsHighSurrogate(*unit) && !IsLowSurrogate(*unit)) return Copy(kEscapeBytes);
    out_.had_lone_surrogate = true;
    out_.text.append("\\ufffd");
    at_ += kEscapeBytes;
    return true;
  }

  // The UTF-16 unit that a \uXXXX at the start of `text` encodes.
  static std::optional<std::uint32_t> UnitOf(std::string_view text) {
    return text.starts_with("\\u") ? HexUnit(text.substr(2)) : std::nullopt;
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

  RepairedJson out_;
  std::vector<Level> levels_;
  std::vector<Member> members_;  // of all open objects
  std::string decoded_names_;    // of names with escape sequences
  std::vector<std::pair<std::size_t, std::size_t>> dead_spans_;
};

// Objects with many members: through a table of hashes. Not inlined, so that the recursion below
// has small frames.
__attribute__((noinline)) bool HasDuplicateAmongMany(const simdjson::dom::object& object) {
  // More are an attack on the hash: the sort below takes the same time for any names.
  constexpr std::size_t kMaxProbes = 32;
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

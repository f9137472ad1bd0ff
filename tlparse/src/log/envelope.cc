#include "log/envelope.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/ascii.h"
#include "base/json_count.h"
#include "base/json_repair.h"
#include "base/rank.h"

namespace tlparse {

namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

// End of the string that starts at `at` (on its quote): the position behind the closing quote.
std::size_t SkipString(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

std::size_t SkipValue(std::string_view text, std::size_t at) {
  std::int64_t depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = SkipString(text, at);
      if (depth == 0) return at;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') {
      if (depth == 0) return at;
      if (--depth == 0) return at + 1;
    }
    if (depth == 0 && c == ',') return at;
    ++at;
  }
  return at;
}

// The text between the quotes of a member's name, and its decoded form.
bool IsName(std::string_view raw, std::string_view name) {
  if (raw.find('\\') == std::string_view::npos) return raw == name;
  simdjson::dom::parser parser;
  std::string_view meant;
  const simdjson::padded_string quoted(std::string("\"").append(raw).append("\""));
  return parser.parse(quoted).get(meant) == simdjson::SUCCESS && meant == name;
}

// Calls `use(name, value)` for each member of `object`, with the text between the name's quotes.
template <typename Use>
void ForEachMember(std::string_view object, Use use) {
  std::size_t at = object.find('{');
  if (at == std::string_view::npos) return;
  ++at;
  const auto skip_space = [&] {
    while (at < object.size() && std::strchr(" \t\r\n,", object[at]) != nullptr &&
           object[at] != '\0')
      ++at;
  };
  for (skip_space(); at < object.size() && object[at] == '"'; skip_space()) {
    const std::size_t name_begin = at + 1;
    at = SkipString(object, at);
    const std::string_view name = object.substr(name_begin, at - 1 - name_begin);
    while (at < object.size() && object[at] != ':') ++at;
    if (at < object.size()) ++at;
    skip_space();
    const std::size_t begin = at;
    at = SkipValue(object, at);
    std::string_view value = object.substr(begin, at - begin);
    while (!value.empty() && std::strchr(" \t\r\n", value.back()) != nullptr)
      value.remove_suffix(1);
    use(name, value);
  }
}

// Whether SQLite finds the member `name` by the path $."name".
bool CanBeInPath(std::string_view name) {
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; });
}

// Whether the parser keeps an integer of these digits: int64, or uint64 where it has no sign.
bool FitsInto64Bits(std::string_view digits, bool is_negative) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return false;
  return !is_negative || value <= std::uint64_t{1} << 63;
}

// Lists and objects of a record of ordinary size.
constexpr std::size_t kMostKeptValueBytes = 16 << 10;

bool IsInteger(const element& value) { return value.type() == element_type::INT64; }

}  // namespace

std::string_view MemberText(std::string_view object, std::string_view key) {
  std::string_view found;
  ForEachMember(object, [&](std::string_view name, std::string_view value) {
    if (IsName(name, key)) found = value;
  });
  return found;
}

std::string WithoutLargeValues(std::string_view object) {
  std::string result = "{";
  const auto append = [&](std::string_view name, std::string_view value) {
    if (result.back() != '{') result += ',';
    result.append("\"").append(name).append("\":").append(value);
  };
  const auto is_large = [](std::string_view value) {
    return value.size() > kMostKeptValueBytes && (value[0] == '[' || value[0] == '{');
  };
  ForEachMember(object, [&](std::string_view name, std::string_view value) {
    if (!is_large(value)) return append(name, value);
    if (value[0] == '[') return append(name, "[]");
    append(name, "{");
    ForEachMember(value, [&](std::string_view inner_name, std::string_view inner) {
      append(inner_name, !is_large(inner) ? inner : inner[0] == '[' ? "[]" : "{}");
    });
    result += '}';
  });
  return result += '}';
}

std::string WithoutBigIntegers(std::string_view json) {
  std::string result;
  result.reserve(json.size() + 16);
  std::size_t at = 0;
  while (at < json.size()) {
    if (json[at] == '"') {
      const std::size_t end = SkipString(json, at);
      result.append(json, at, end - at);
      at = end;
    } else if (IsDigit(json[at])) {
      std::size_t end = at;
      while (end < json.size() &&
             (IsDigit(json[end]) || std::strchr(".eE+-", json[end]) != nullptr))
        ++end;
      std::string number(json.substr(at, end - at));
      const bool is_integer = number.find_first_of(".eE") == std::string::npos;
      const bool is_negative = at > 0 && json[at - 1] == '-';
      // Beyond double's range a number says no more than "huge".
      if (!is_integer || !FitsInto64Bits(number, is_negative)) {
        if (!std::isfinite(std::strtod(number.c_str(), nullptr))) {
          number = "1e300";
        } else if (is_integer) {
          number += "e0";
        }
      }
      result += number;
      at = end;
    } else {
      result += json[at++];
    }
  }
  return result;
}

const Envelope* EnvelopeParser::Parse(std::string_view json) {
  envelope_ = Envelope{};
  if (HasTooManyJsonValues(json)) return ParseLarge(json) ? &envelope_ : nullptr;
  element root;
  if (parser_.parse(json.data(), json.size(), false).get(root) == simdjson::SUCCESS) {
    if (root.type() != element_type::OBJECT) return nullptr;
    if (!HasDuplicateMembers(root)) {
      if (!Read(root)) return nullptr;
      if (!CanBeInPath(envelope_.kind)) envelope_.metadata = MemberText(json, envelope_.kind);
      return &envelope_;
    }
  }
  return ParseRepaired(json) ? &envelope_ : nullptr;
}

bool EnvelopeParser::ParseRepaired(std::string_view json) {
  Result<RepairedJson> repaired = RepairJson(json);
  if (!repaired) return false;
  repaired_ = std::move(repaired->text);
  element root;
  simdjson::error_code error = parser_.parse(repaired_).get(root);
  if (error != simdjson::SUCCESS) error = parser_.parse(WithoutBigIntegers(repaired_)).get(root);
  if (error != simdjson::SUCCESS || root.type() != element_type::OBJECT || !Read(root))
    return false;
  envelope_.was_repaired = true;
  if (!envelope_.kind.empty()) envelope_.metadata = MemberText(repaired_, envelope_.kind);
  return true;
}

// Large lists and objects are left out of what is parsed, so all of the text is checked first.
bool EnvelopeParser::ParseLarge(std::string_view json) {
  Result<RepairedJson> repaired = RepairJson(json);
  if (!repaired) return false;
  const bool was_repaired = repaired->had_nan || repaired->had_lone_surrogate ||
                            repaired->had_duplicate || repaired->had_invalid_utf8 ||
                            repaired->had_control;
  const std::string whole = std::move(repaired->text);
  repaired_ = WithoutLargeValues(whole);
  if (HasTooManyJsonValues(repaired_)) return false;
  element root;
  simdjson::error_code error = parser_.parse(repaired_).get(root);
  if (error != simdjson::SUCCESS) error = parser_.parse(WithoutBigIntegers(repaired_)).get(root);
  if (error != simdjson::SUCCESS || root.type() != element_type::OBJECT || !Read(root))
    return false;
  envelope_.was_repaired = was_repaired;
  // SQLite would parse all of the envelope for it.
  if (!envelope_.kind.empty()) {
    large_metadata_ = MemberText(whole, envelope_.kind);
    envelope_.metadata = large_metadata_;
  }
  return true;
}

// The value of the record key. Of several candidates the one that is known; none or several known
// ones: no kind.
element EnvelopeParser::ChooseKey() {
  constexpr std::size_t kMaxNames = 8, kMaxNameBytes = 64;
  const Candidate* chosen = &candidates_.front();
  if (candidates_.size() > 1) {
    std::size_t known_count = 0;
    for (const Candidate& candidate : candidates_) {
      if (is_record_key_ == nullptr || !is_record_key_(candidate.key)) continue;
      chosen = &candidate;
      ++known_count;
    }
    if (known_count != 1) {
      envelope_.has_several_keys = true;
      return {};
    }
    std::size_t name_count = 0;
    for (const Candidate& candidate : candidates_) {
      if (&candidate == chosen || name_count++ >= kMaxNames) continue;
      if (!envelope_.unknown_members.empty()) envelope_.unknown_members += ", ";
      envelope_.unknown_members += candidate.key.substr(0, kMaxNameBytes);
    }
  }
  envelope_.kind = chosen->key;
  return chosen->value;
}

bool EnvelopeParser::Read(const element& root) {
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) return false;
  const auto integer = [&](const simdjson::dom::key_value_pair& field,
                           std::optional<std::int64_t>& target) {
    if (IsInteger(field.value)) {
      target = field.value.get_int64().value_unsafe();
    } else if (!field.value.is_null() && envelope_.bad_member.empty()) {
      envelope_.bad_member = field.key;
    }
  };
  const auto string = [&](const simdjson::dom::key_value_pair& field, std::string_view& target) {
    if (field.value.get(target) != simdjson::SUCCESS && !field.value.is_null() &&
        envelope_.bad_member.empty()) {
      envelope_.bad_member = field.key;
    }
  };
  candidates_.clear();
  for (const simdjson::dom::key_value_pair field : object) {
    const std::string_view key = field.key;
    if (key == "has_payload") {
      std::string_view hash;
      string(field, hash);
      envelope_.names_payload = !field.value.is_null();
      envelope_.payload_hash = ParseMd5Hex(hash);
    } else if (key == "frame_id") {
      integer(field, envelope_.frame_id);
    } else if (key == "frame_compile_id") {
      integer(field, envelope_.frame_compile_id);
    } else if (key == "attempt") {
      integer(field, envelope_.attempt);
    } else if (key == "rank") {
      integer(field, envelope_.rank);
    } else if (key == "compiled_autograd_id") {
      integer(field, envelope_.compiled_autograd_id);
    } else if (key == "subgraph_name") {
      string(field, envelope_.subgraph_name);
    } else if (key == "stack") {
      envelope_.has_stack = field.value.is_array();
    } else {
      candidates_.push_back({key, field.value});
    }
  }
  if (envelope_.rank && !IsRank(*envelope_.rank)) std::swap(envelope_.rank, envelope_.bad_rank);
  if (candidates_.empty()) return true;
  const element metadata = ChooseKey();
  if (envelope_.has_several_keys || !metadata.is_object()) return true;
  simdjson::dom::object members;
  if (metadata.get(members) != simdjson::SUCCESS) return true;
  envelope_.is_trivial = members.size() == 0;
  for (const simdjson::dom::key_value_pair field : members) {
    if (field.key == "stack" || field.key == "user_stack") {
      envelope_.has_metadata_stack |= field.value.is_array();
    } else if (field.key == "name" && envelope_.kind == "artifact") {
      string(field, envelope_.name);
    }
  }
  return true;
}

}  // namespace tlparse

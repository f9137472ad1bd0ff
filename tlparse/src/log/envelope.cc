#include "log/envelope.h"

#include <algorithm>
#include <utility>

#include "base/json_count.h"
#include "base/json_repair.h"
#include "base/json_text.h"
#include "log/rank.h"

namespace tlparse {

namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

// Whether SQLite finds the member `name` by the path $."name".
bool CanBeInPath(std::string_view name) {
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; });
}

bool IsInteger(const element& value) { return value.type() == element_type::INT64; }

}  // namespace

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
    } else if (key == "traceparent") {  // of libtrace, for other tools
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

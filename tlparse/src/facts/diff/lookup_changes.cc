#include "facts/diff/lookup_changes.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "artifacts/common/text/device_text.h"
#include "facts/text/shorten.h"
#include "queries/facts/diff/lookup_changes.h"

namespace tlparse {
namespace {

struct SetMember {
  std::string name, hash, value;
};

Result<std::vector<SetMember>> LoadSet(Database& database, const KeySet& set) {
  std::vector<SetMember> members;
  FOR_EACH_ROW(
      const MemberOfSet& row,
      Query<MemberOfSet>(database, {.set_id = set.set_id, .device_index = set.device_index})) {
    std::string value(row.value);
    if (row.has_device && set.device_index) value = PutDeviceIndex(value, *set.device_index);
    members.push_back({std::string(row.name), std::string(row.hash), std::move(value)});
  }
  return members;
}

std::vector<ComponentDifference> CompareMembers(const std::vector<SetMember>& a,
                                                const std::vector<SetMember>& b) {
  std::vector<ComponentDifference> differences;
  std::unordered_map<std::string, const SetMember*> by_name;
  for (const SetMember& member : b) by_name.emplace(member.name, &member);
  for (const SetMember& member : a) {
    ComponentDifference difference;
    difference.name = member.name;
    difference.a_hash = member.hash;
    difference.a_value = member.value;
    const auto other = by_name.find(member.name);
    if (other != by_name.end()) {
      if (other->second->hash == member.hash) {
        by_name.erase(other);
        continue;
      }
      difference.b_hash = other->second->hash;
      difference.b_value = other->second->value;
      by_name.erase(other);
    }
    differences.push_back(std::move(difference));
  }
  for (const SetMember& member : b) {
    const auto left = by_name.find(member.name);
    if (left == by_name.end() || left->second != &member) continue;
    ComponentDifference difference;
    difference.name = member.name;
    difference.b_hash = member.hash;
    difference.b_value = member.value;
    differences.push_back(std::move(difference));
  }
  return differences;
}

Result<std::string> PayloadOf(Database& database, std::int64_t payload_id) {
  return database.QueryText(
      fmt::format("SELECT content FROM payload_row WHERE id = {}", payload_id));
}

Result<void> ExplainKeys(const LookupSide& a, const LookupSide& b, const FactLookup& a_lookup,
                         const FactLookup& b_lookup, CacheChange& cache) {
  std::vector<ComponentDifference> differences;
  const auto set_of = [](const CompileFacts& facts) {
    for (const FactLookup& lookup : facts.lookups) {
      if (lookup.set.set_id != 0) return lookup.set;
    }
    return KeySet();
  };
  const bool has_components = a_lookup.set.set_id != 0 && b_lookup.set.set_id != 0;
  const KeySet a_set = has_components ? a_lookup.set : set_of(a.compile);
  const KeySet b_set = has_components ? b_lookup.set : set_of(b.compile);
  if (a_set.set_id != 0 && b_set.set_id != 0) {
    ASSIGN_OR_RETURN(const std::vector<SetMember> a_members, LoadSet(a.database, a_set));
    ASSIGN_OR_RETURN(const std::vector<SetMember> b_members, LoadSet(b.database, b_set));
    differences = CompareMembers(a_members, b_members);
  }
  if (!has_components) {
    cache.fallback = fmt::format(
        "{}: components are not in the log; compared instead: {}torch._functorch.config",
        b_lookup.layer,
        a_set.set_id != 0 && b_set.set_id != 0 ? "the components of another lookup of the compile, "
                                               : "");
    if (a.compile.functorch_config_payload != 0 && b.compile.functorch_config_payload != 0) {
      ASSIGN_OR_RETURN(const std::string a_text,
                       PayloadOf(a.database, a.compile.functorch_config_payload));
      ASSIGN_OR_RETURN(const std::string b_text,
                       PayloadOf(b.database, b.compile.functorch_config_payload));
      if (a_text != b_text) {
        ComponentDifference difference = DescribeConfigChange(a_text, b_text);
        differences.push_back(std::move(difference));
      }
    }
  }
  cache.causes =
      FindCauses(std::move(differences), {a.facts.torch_version, b.facts.torch_version,
                                          a.facts.python_version, b.facts.python_version});
  return {};
}

}  // namespace

Result<std::vector<CacheChange>> CompareLookups(const LookupSide& a, const LookupSide& b) {
  std::vector<CacheChange> changes;
  using Place = std::tuple<std::string, std::string, int>;
  std::map<Place, std::pair<const FactLookup*, const FactLookup*>> places;
  for (const bool is_a : {true, false}) {
    std::map<std::pair<std::string, std::string>, int> count;
    for (const FactLookup& lookup : is_a ? a.compile.lookups : b.compile.lookups) {
      auto& sides =
          places[{lookup.layer, lookup.direction, count[{lookup.layer, lookup.direction}]++}];
      (is_a ? sides.first : sides.second) = &lookup;
    }
  }
  for (const auto& [place, sides] : places) {
    const auto& [old_one, new_one] = sides;
    const bool has_both = old_one != nullptr && new_one != nullptr;
    CacheChange cache;
    cache.has_same_key = has_both && old_one->key == new_one->key;
    if (has_both && cache.has_same_key && old_one->state == new_one->state &&
        old_one->bypass_reason == new_one->bypass_reason)
      continue;
    const auto& [layer, direction, ordinal] = place;
    cache.title = layer + (direction.empty() ? "" : " " + direction) +
                  (ordinal > 0 ? fmt::format(" {}", ordinal + 1) : "");
    if (old_one != nullptr) cache.a_state = old_one->state;
    if (new_one != nullptr) cache.b_state = new_one->state;
    if (has_both && !cache.has_same_key && !old_one->key.empty() && !new_one->key.empty()) {
      RETURN_IF_ERROR(ExplainKeys(a, b, *old_one, *new_one, cache));
    } else if (new_one != nullptr && new_one->state == "bypass") {
      cache.causes.push_back({CauseKind::kBypass, Shorten(new_one->bypass_reason, 300), {}, {}});
    } else if (new_one != nullptr && new_one->state == "guard_miss") {
      cache.causes.push_back({CauseKind::kGuardMiss, Shorten(new_one->guard, 300), {}, {}});
    } else if (new_one != nullptr && new_one->state == "remote_error") {
      cache.causes.push_back(
          {CauseKind::kRemoteError, Shorten(new_one->remote_error, 300), {}, {}});
    }
    changes.push_back(std::move(cache));
  }
  return changes;
}

}  // namespace tlparse

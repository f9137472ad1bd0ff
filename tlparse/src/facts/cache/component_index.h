// The components of cache keys, indexed so that ten thousand keys can be compared: a component set
// is a few runs over stored lists, and the hash of a set without expected differences (device
// index, rank in a path) is a sum over its runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "artifacts/common/cache/key_set.h"
#include "base/result.h"
#include "queries/facts/cache/component_index.h"
#include "store/database.h"
#include "store/hash128.h"

namespace tlparse {

// `text` without the index of devices ("cuda:3", "device(type='cuda', index=3)") and without the
// rank in paths (".../rank_3/..."): both become their ordinal of first appearance. Equal forms of
// different texts: the difference is expected in the job.
struct DesignNeutral {
  std::string text;
  bool has_device = false;
  bool has_rank_path = false;
};
DesignNeutral NeutralizeDesign(std::string_view name, std::string_view value);

// One component of a set.
struct KeyComponent {
  std::int64_t id;
  std::int64_t name_id;
};
// One component of a key.
struct ComponentOfKey {
  std::int64_t id = 0;
  // Of the key, if the component's text and hash depend on it; else -1
  std::int64_t device_index = -1;
  bool operator==(const ComponentOfKey&) const = default;
};

class ComponentIndex {
 public:
  static Result<ComponentIndex> Load(Database& database);

  // Hash of the set's (name, hash) pairs; components that name a device or a rank's path count by
  // their neutral text. Sets with equal hashes have expected differences only. Zero: no such set.
  Hash128 NeutralHash(std::int64_t set_id) const;

  // The components of a set, in order.
  Result<std::vector<KeyComponent>> Expand(std::int64_t set_id);
  // The component as in a key with this device index.
  ComponentOfKey In(const KeySet& set, std::int64_t component_id) const {
    const bool is_own =
        components_[static_cast<std::size_t>(component_id)].has_device && set.device_index;
    return {component_id, is_own ? *set.device_index : -1};
  }
  struct Text {
    std::string name;
    std::string hash;
    std::string value;
  };
  // Lives as long as the index; cached because few components differ and each is read often.
  Result<const Text*> Fetch(const ComponentOfKey& component);

 private:
  ComponentIndex(PreparedQuery<ComponentRunOfSet> runs, PreparedQuery<ComponentText> texts)
      : runs_(std::move(runs)), texts_(std::move(texts)) {}
  Result<void> LoadComponents(Database& database);
  Result<void> LoadLists(Database& database);
  Result<void> LoadRuns(Database& database);

  struct Entry {
    std::int64_t name_id = 0;
    Hash128 neutral;
    bool has_device = false;  // stored once for all device indexes
  };
  struct List {
    std::size_t begin = 0;  // into list_components_; sums_ has one more per list before
    std::size_t sum_begin = 0;
    std::size_t size = 0;
  };
  PreparedQuery<ComponentRunOfSet> runs_;
  PreparedQuery<ComponentText> texts_;
  std::vector<Entry> components_;  // by id
  std::vector<std::int64_t> list_components_;
  std::vector<Hash128> sums_;  // sums_[sum_begin + i]: of the first i components of the list
  std::unordered_map<std::int64_t, List> lists_;
  std::unordered_map<std::int64_t, Hash128> neutral_of_set_;
  std::map<std::pair<std::int64_t, std::int64_t>, Text> fetched_;
};

}  // namespace tlparse

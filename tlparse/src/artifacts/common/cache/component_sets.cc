#include "artifacts/common/cache/component_sets.h"

#include <cstdint>
#include <string>

#include "artifacts/common/text/device_text.h"
#include "artifacts/common/text/safe_text.h"
#include "queries/artifacts/common/cache/component_sets.h"
#include "rows/cache_event.h"
#include "store/database.h"

namespace tlparse {

namespace {

constexpr std::size_t kMaxBlock = 64;

std::string_view Prefix(std::string_view name) { return name.substr(0, name.find('[')); }

// One past the end of the block that begins at `begin`.
std::size_t BlockEnd(const std::vector<Component>& components, std::size_t begin) {
  const std::string_view prefix = Prefix(components[begin].name);
  std::size_t end = begin + 1;
  while (end < components.size() && end - begin < kMaxBlock &&
         Prefix(components[end].name) == prefix)
    ++end;
  return end;
}

// Names and hashes, which are what a key is made of. Names hold no newline in PyTorch's logs; a
// hash never does.
Hash128 HashOf(const std::vector<Component>& components, std::size_t begin, std::size_t end,
               std::string& buffer) {
  buffer.clear();
  for (std::size_t index = begin; index < end; ++index) {
    buffer += components[index].name;
    buffer += '\n';
    buffer += components[index].hash;
    buffer += '\n';
  }
  return HashBytes(buffer);
}

Hash128 HashOf(const std::vector<std::int64_t>& numbers) {
  SequenceHash hash;
  for (const std::int64_t number : numbers) hash.Add(number);
  return hash.Digest();
}

Hash128 HashOf(TextId name, std::string_view text, std::int64_t number = 0) {
  SequenceHash hash;
  hash.Add(name);
  hash.Add(text);
  hash.Add(number);
  return hash.Digest();
}

// The hash under which the same bytes are stored for another device index.
Hash128 HashForDevice(const Hash128& hash, std::int64_t device) {
  return HashOf(
      {static_cast<std::int64_t>(hash.low), static_cast<std::int64_t>(hash.high), device});
}

}  // namespace

ComponentSets::ComponentSets(TableSet& tables) {
  tables.Use<ComponentRow>();
  tables.Use<ComponentHashRow>();
  tables.Use<ComponentSetRow>();
  tables.Use<ComponentListRow>();
  tables.Use<ComponentRunRow>();
  tables.Use<CacheKeyRow>();
  tables.Use<CacheKeySetRow>();
}

// The text may have another hash for the same device in another process, where a part of the value
// does not show: then it is another component with the same text.
std::int64_t ComponentSets::StoreTemplate(RowBatch& rows, TextId name, std::string_view text,
                                          std::int64_t device, std::string_view hash) {
  const Hash128 own = HashBytes(hash);
  for (std::int64_t which = 0;; ++which) {
    const auto [entry, is_new] = templates_.try_emplace(HashOf(name, text, which), next_component_);
    if (is_new) {
      ++next_component_;
      rows.Add(ComponentRow{.id = entry->second, .name_id = name, .value = SafeText(rows, text)});
    }
    const auto [known, is_new_device] =
        template_hashes_.try_emplace(HashOf({entry->second, device}), own);
    if (is_new_device)
      rows.Add(
          ComponentHashRow{.component_id = entry->second, .device_index = device, .hash = hash});
    if (known->second == own) return entry->second;
  }
}

ComponentSets::Stored ComponentSets::StoreComponent(RowBatch& rows, TextPool& texts,
                                                    const Component& component,
                                                    std::int64_t& device) {
  const TextId name = texts.Id(rows, component.name);
  Hash128 key = HashOf(name, component.hash);
  auto known = components_.find(key);
  if (known != components_.end() && known->second.device != kNone && device != kNone &&
      known->second.device != device) {
    key = HashForDevice(key, kVerbatim);
    known = components_.find(key);
  }
  if (known != components_.end()) {
    if (known->second.device != kNone) device = known->second.device;
    return known->second;
  }
  std::optional<DeviceText> taken;
  if (device != kVerbatim) taken = TakeDeviceIndex(component.name, component.value);
  if (taken && (device == kNone || device == taken->device_index)) {
    device = taken->device_index;
    const Stored stored{StoreTemplate(rows, name, taken->text, device, component.hash), device};
    components_.emplace(key, stored);
    return stored;
  }
  const Stored stored{next_component_++, kNone};
  rows.Add(ComponentRow{.id = stored.id,
                        .name_id = name,
                        .hash = component.hash,
                        .value = SafeText(rows, component.value)});
  components_.emplace(key, stored);
  return stored;
}

ComponentSets::Place ComponentSets::AppendToList(RowBatch& rows,
                                                 const std::vector<std::int64_t>& ids,
                                                 std::int64_t device) {
  if (open_list_ == 0) {
    open_list_ = next_list_++;
    open_length_ = 0;
  }
  const Place place{open_list_, open_length_, device};
  for (const std::int64_t id : ids)
    rows.Add(
        ComponentListRow{.list_id = open_list_, .ordinal = open_length_++, .component_id = id});
  return place;
}

ComponentSets::Place ComponentSets::StoreBlock(RowBatch& rows, TextPool& texts,
                                               const std::vector<Component>& components,
                                               std::size_t begin, std::size_t end,
                                               std::int64_t& device) {
  Hash128 hash = HashOf(components, begin, end, buffer_);
  auto found = blocks_.find(hash);
  if (found != blocks_.end() && found->second.device != kNone && device != kNone &&
      found->second.device != device) {
    hash = HashForDevice(hash, device);
    found = blocks_.find(hash);
  }
  if (found != blocks_.end()) {
    open_list_ = 0;
    if (found->second.device != kNone) device = found->second.device;
    return found->second;
  }
  std::vector<std::int64_t>& ids = ids_;
  ids.clear();
  std::int64_t block_device = kNone;
  for (std::size_t index = begin; index < end; ++index) {
    const Stored stored = StoreComponent(rows, texts, components[index], device);
    if (stored.device != kNone) block_device = stored.device;
    ids.push_back(stored.id);
  }
  if (block_device == kNone)
    return blocks_.emplace(hash, AppendToList(rows, ids, kNone)).first->second;
  const Hash128 by_ids = HashOf(ids);
  auto same = template_blocks_.find(by_ids);
  if (same == template_blocks_.end()) {
    same = template_blocks_.emplace(by_ids, AppendToList(rows, ids, kNone)).first;
  } else {
    open_list_ = 0;
  }
  return blocks_.emplace(hash, Place{same->second.list_id, same->second.ordinal, block_device})
      .first->second;
}

KeySet ComponentSets::Intern(RowBatch& rows, TextPool& texts,
                             const std::vector<Component>& components, bool has_key) {
  const Hash128 hash = HashOf(components, 0, components.size(), buffer_);
  const Hash128 key = has_key ? hash : HashForDevice(hash, kVerbatim);
  if (const auto known = sets_.find(key); known != sets_.end()) return known->second;

  struct Run {
    std::size_t begin;
    std::size_t length;
    Place place;
  };
  std::vector<Run> runs;
  std::vector<std::int64_t> identity;
  std::int64_t device = has_key ? kNone : kVerbatim;
  open_list_ = 0;
  for (std::size_t begin = 0; begin < components.size();) {
    const std::size_t end = BlockEnd(components, begin);
    const Place place = StoreBlock(rows, texts, components, begin, end, device);
    const bool continues_run =
        !runs.empty() && place.list_id == runs.back().place.list_id &&
        place.ordinal == runs.back().place.ordinal + static_cast<std::int64_t>(runs.back().length);
    if (continues_run) {
      runs.back().length += end - begin;
    } else {
      runs.push_back({begin, end - begin, place});
    }
    begin = end;
  }
  for (const Run& run : runs)
    identity.insert(identity.end(),
                    {run.place.list_id, run.place.ordinal, static_cast<std::int64_t>(run.length)});
  const auto [stored, is_new] = stored_sets_.try_emplace(HashOf(identity), next_set_);
  if (is_new) {
    ++next_set_;
    rows.Add(
        ComponentSetRow{.id = stored->second, .hash = ToHex(hash), .length = components.size()});
    for (const Run& run : runs)
      rows.Add(ComponentRunRow{.set_id = stored->second,
                               .ordinal = run.begin,
                               .length = run.length,
                               .list_id = run.place.list_id,
                               .list_ordinal = run.place.ordinal});
  }
  const KeySet set{stored->second, device >= 0 ? std::optional(device) : std::nullopt};
  sets_.emplace(key, set);
  return set;
}

std::optional<std::int64_t> ComponentSets::KeyId(RowBatch& rows, std::string_view key) {
  if (key.empty()) return std::nullopt;
  const auto [entry, is_new] = keys_.try_emplace(HashBytes(key), next_key_);
  if (is_new) rows.Add(CacheKeyRow{.id = next_key_++, .key = SafeText(rows, key)});
  return entry->second;
}

void ComponentSets::LinkKey(RowBatch& rows, std::int64_t key_id, const KeySet& set) {
  const std::uint64_t pair =
      static_cast<std::uint64_t>(set.set_id) << 32 | static_cast<std::uint64_t>(key_id);
  if (links_.insert(pair).second)
    rows.Add(CacheKeySetRow{
        .key_id = key_id, .component_set_id = set.set_id, .device_index = set.device_index});
}

Result<void> ComponentSets::LoadComponents(Database& database) {
  std::unordered_map<std::int64_t, TextId> name_of_template;
  FOR_EACH_ROW(const StoredComponent& stored, Query<StoredComponent>(database)) {
    const std::int64_t id = stored.id;
    const auto name = static_cast<TextId>(stored.name_id);
    if (stored.hash) {
      components_.emplace(HashOf(name, *stored.hash), Stored{id, kNone});
      continue;
    }
    name_of_template.emplace(id, name);
    for (std::int64_t which = 0;
         !templates_.try_emplace(HashOf(name, stored.value, which), id).second;)
      ++which;
  }
  FOR_EACH_ROW(const StoredHash& stored, Query<StoredHash>(database)) {
    const std::int64_t id = stored.component_id, device = stored.device_index;
    template_hashes_.emplace(HashOf({id, device}), HashBytes(stored.hash));
    components_.insert_or_assign(HashOf(name_of_template[id], stored.hash), Stored{id, device});
  }
  ASSIGN_OR_RETURN(next_component_,
                   database.QueryInt("SELECT coalesce(max(id), 0) + 1 FROM component_row"));
  return {};
}

// A list is a stretch of one set that begins at a block: cutting it again gives the same blocks.
Result<void> ComponentSets::LoadLists(Database& database) {
  struct Member {
    std::string name, hash;
    std::int64_t id;
    bool is_template;
  };
  std::vector<Member> list;
  std::int64_t list_id = 0;
  const auto add_blocks = [&] {
    std::vector<Component> components;
    for (const Member& member : list) components.push_back({member.name, member.hash, {}});
    std::string buffer;
    for (std::size_t begin = 0; begin < components.size();) {
      const std::size_t end = BlockEnd(components, begin);
      const Place place{list_id, static_cast<std::int64_t>(begin), kNone};
      std::vector<std::int64_t> ids;
      bool has_template = false;
      for (std::size_t index = begin; index < end; ++index) {
        ids.push_back(list[index].id);
        has_template |= list[index].is_template;
      }
      if (has_template) {
        template_blocks_.emplace(HashOf(ids), place);
      } else {
        blocks_.emplace(HashOf(components, begin, end, buffer_), place);
      }
      begin = end;
    }
    list.clear();
  };
  ASSIGN_OR_RETURN(next_list_, database.QueryInt(
                                   "SELECT coalesce(max(list_id), 0) + 1 FROM component_list_row"));
  FOR_EACH_ROW(const StoredMember& row, Query<StoredMember>(database)) {
    if (row.list_id != list_id) add_blocks();
    list_id = row.list_id;
    list.push_back(
        {std::string(row.name), std::string(row.hash.value_or("")), row.component_id, !row.hash});
  }
  add_blocks();
  return {};
}

Result<void> ComponentSets::LoadSets(Database& database) {
  ASSIGN_OR_RETURN(next_set_,
                   database.QueryInt("SELECT coalesce(max(id), 0) + 1 FROM component_set_row"));
  std::vector<std::int64_t> identity;
  std::int64_t set_id = 0;
  const auto add_set = [&] {
    if (!identity.empty()) stored_sets_.emplace(HashOf(identity), set_id);
    identity.clear();
  };
  FOR_EACH_ROW(const StoredRun& run, Query<StoredRun>(database)) {
    if (run.set_id != set_id) add_set();
    set_id = run.set_id;
    identity.insert(identity.end(), {run.list_id, run.list_ordinal, run.length});
  }
  add_set();
  return {};
}

Result<void> ComponentSets::LoadKeys(Database& database) {
  ASSIGN_OR_RETURN(next_key_,
                   database.QueryInt("SELECT coalesce(max(id), 0) + 1 FROM cache_key_row"));
  FOR_EACH_ROW(const StoredKey& key, Query<StoredKey>(database)) {
    keys_.emplace(HashBytes(key.key), key.id);
  }
  FOR_EACH_ROW(const StoredLink& link, Query<StoredLink>(database)) {
    links_.insert(static_cast<std::uint64_t>(link.component_set_id) << 32 |
                  static_cast<std::uint64_t>(link.key_id));
  }
  return {};
}

Result<void> ComponentSets::Load(Database& database) {
  RETURN_IF_ERROR(LoadComponents(database));
  RETURN_IF_ERROR(LoadLists(database));
  RETURN_IF_ERROR(LoadSets(database));
  return LoadKeys(database);
}

}  // namespace tlparse

#include "artifacts/common/component_sets.h"

#include <array>
#include <cstdint>
#include <string>

#include "artifacts/common/safe_text.h"
#include "store/database.h"

namespace tlparse {

namespace {

constexpr std::size_t kHashLength = 51;
constexpr std::size_t kMaxBlock = 64;

// Bit 0: a base32 character of a hash; bit 1: a character of a name. A log holds millions of each, so they are looked up.
constexpr std::uint8_t kBase32 = 1;
constexpr std::uint8_t kNameCharacter = 2;
constexpr std::array<std::uint8_t, 256> kCharacters = [] {
  std::array<std::uint8_t, 256> table{};
  for (unsigned c = 0; c < 256; ++c) {
    const bool is_lower = c >= 'a' && c <= 'z';
    if (is_lower || (c >= '2' && c <= '7')) table[c] |= kBase32;
    if (is_lower || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_') table[c] |= kNameCharacter;
  }
  return table;
}();
bool IsNameCharacter(char c) { return (kCharacters[static_cast<unsigned char>(c)] & kNameCharacter) != 0; }
bool IsBase32(std::string_view text) {
  std::uint8_t all = kBase32;
  for (const char c : text) all &= kCharacters[static_cast<unsigned char>(c)];
  return all != 0;
}

std::string_view Prefix(std::string_view name) { return name.substr(0, name.find('[')); }

// One past the end of the block that begins at `begin`.
std::size_t BlockEnd(const std::vector<Component>& components, std::size_t begin) {
  const std::string_view prefix = Prefix(components[begin].name);
  std::size_t end = begin + 1;
  while (end < components.size() && end - begin < kMaxBlock && Prefix(components[end].name) == prefix) ++end;
  return end;
}

// Names and hashes, which are what a key is made of. Names hold no newline in PyTorch's logs; a hash never does.
Hash128 HashOf(const std::vector<Component>& components, std::size_t begin, std::size_t end, std::string& buffer) {
  buffer.clear();
  for (std::size_t index = begin; index < end; ++index) {
    buffer += components[index].name;
    buffer += '\n';
    buffer += components[index].hash;
    buffer += '\n';
  }
  return HashBytes(buffer);
}

}  // namespace

std::optional<Component> ParseComponent(std::string_view line, bool is_hashed) {
  Component component;
  if (is_hashed) {
    if (line.size() < kHashLength + 3 || line[0] != '[' || line[kHashLength + 1] != ']' || line[kHashLength + 2] != ' ') {
      return std::nullopt;
    }
    component.hash = line.substr(1, kHashLength);
    if (!IsBase32(component.hash)) return std::nullopt;
    line.remove_prefix(kHashLength + 3);
  }
  std::size_t end = 0;
  while (end < line.size() && IsNameCharacter(line[end])) ++end;
  if (end == 0 || end == line.size()) return std::nullopt;
  if (line[end] == '[') {
    // The index or key may hold anything; it ends at the first "]: ".
    end = line.find("]: ", end);
    if (end == std::string_view::npos) return std::nullopt;
    ++end;
  }
  if (line.substr(end, 2) != ": ") {
    // An empty text, whose trailing blank was lost on the way.
    if (end + 1 != line.size() || line[end] != ':') return std::nullopt;
  }
  component.name = line.substr(0, end);
  component.value = line.size() >= end + 2 ? line.substr(end + 2) : std::string_view();
  return component;
}

ComponentSets::ComponentSets(TableSet& tables)
    : component_(tables.Use("component", 4)),
      set_(tables.Use("component_set", 3)),
      list_row_(tables.Use("component_list_row", 3)),
      run_(tables.Use("component_run", 5)),
      cache_key_(tables.Use("cache_key", 2)) {}

std::int64_t ComponentSets::ComponentId(RowBatch& rows, TextPool& texts, const Component& component) {
  const TextId name = texts.Id(rows, component.name);
  SequenceHash hash;
  hash.Add(name);
  hash.Add(component.hash);
  const auto [entry, is_new] = components_.try_emplace(hash.Digest(), next_component_);
  if (is_new) {
    ++next_component_;
    rows.Add(component_, entry->second, name, component.hash, SafeText(rows, component.value));
  }
  return entry->second;
}

ComponentSets::Place ComponentSets::PlaceOfBlock(RowBatch& rows, TextPool& texts, const std::vector<Component>& components,
                                                 std::size_t begin, std::size_t end) {
  thread_local std::string buffer;
  const Hash128 hash = HashOf(components, begin, end, buffer);
  if (auto found = blocks_.find(hash); found != blocks_.end()) {
    open_list_ = 0;
    return found->second;
  }
  if (open_list_ == 0) {
    open_list_ = next_list_++;
    open_length_ = 0;
  }
  const Place place{open_list_, open_length_};
  for (std::size_t index = begin; index < end; ++index) {
    rows.Add(list_row_, open_list_, open_length_++, ComponentId(rows, texts, components[index]));
  }
  blocks_.emplace(hash, place);
  return place;
}

std::int64_t ComponentSets::Intern(RowBatch& rows, TextPool& texts, const std::vector<Component>& components) {
  thread_local std::string buffer;
  const Hash128 hash = HashOf(components, 0, components.size(), buffer);
  const auto [entry, is_new] = sets_.try_emplace(hash, next_set_);
  if (!is_new) return entry->second;
  const std::int64_t set_id = next_set_++;
  rows.Add(set_, set_id, ToHex(hash), components.size());

  open_list_ = 0;
  Place run{0, 0};
  std::size_t run_begin = 0;
  for (std::size_t begin = 0; begin < components.size();) {
    const std::size_t end = BlockEnd(components, begin);
    const Place place = PlaceOfBlock(rows, texts, components, begin, end);
    const bool continues_run = begin > 0 && place.list_id == run.list_id &&
                               place.ordinal == run.ordinal + static_cast<std::int64_t>(begin - run_begin);
    if (!continues_run) {
      if (begin > 0) rows.Add(run_, set_id, run_begin, begin - run_begin, run.list_id, run.ordinal);
      run = place;
      run_begin = begin;
    }
    begin = end;
  }
  rows.Add(run_, set_id, run_begin, components.size() - run_begin, run.list_id, run.ordinal);
  return set_id;
}

void ComponentSets::LinkKey(RowBatch& rows, TextId key, std::int64_t set_id) {
  const std::uint64_t pair = static_cast<std::uint64_t>(set_id) << 32 | static_cast<std::uint64_t>(key);
  if (keys_.insert(pair).second) rows.Add(cache_key_, key, set_id);
}

Result<void> ComponentSets::Load(Database& database) {
  ASSIGN_OR_RETURN(Statement stored, database.Prepare("SELECT id, name_id, hash FROM component"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, stored.Step());
    if (!has_row) break;
    SequenceHash hash;
    hash.Add(stored.Int(1));
    hash.Add(stored.Text(2));
    components_.emplace(hash.Digest(), stored.Int(0));
  }
  ASSIGN_OR_RETURN(next_component_, database.QueryInt("SELECT coalesce(max(id), 0) + 1 FROM component"));
  ASSIGN_OR_RETURN(next_set_, database.QueryInt("SELECT coalesce(max(id), 0) + 1 FROM component_set"));
  ASSIGN_OR_RETURN(next_list_, database.QueryInt("SELECT coalesce(max(list_id), 0) + 1 FROM component_list_row"));

  // A list is a stretch of one set that begins at a block: cutting it again gives the same blocks.
  ASSIGN_OR_RETURN(Statement members,
                   database.Prepare("SELECT l.list_id, t.text, c.hash FROM component_list_row l "
                                    "JOIN component c ON c.id = l.component_id JOIN text t ON t.id = c.name_id "
                                    "ORDER BY l.list_id, l.ordinal"));
  std::vector<std::pair<std::string, std::string>> list;
  std::int64_t list_id = 0;
  const auto add_blocks = [&] {
    std::vector<Component> components;
    for (const auto& [name, hash] : list) components.push_back({name, hash, {}});
    std::string buffer;
    for (std::size_t begin = 0; begin < components.size();) {
      const std::size_t end = BlockEnd(components, begin);
      blocks_.emplace(HashOf(components, begin, end, buffer), Place{list_id, static_cast<std::int64_t>(begin)});
      begin = end;
    }
    list.clear();
  };
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, members.Step());
    if (!has_row || members.Int(0) != list_id) add_blocks();
    if (!has_row) break;
    list_id = members.Int(0);
    list.emplace_back(members.Text(1), members.Text(2));
  }

  ASSIGN_OR_RETURN(Statement sets, database.Prepare("SELECT id, hash FROM component_set"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, sets.Step());
    if (!has_row) break;
    if (const std::optional<Hash128> hash = FromHex(sets.Text(1))) sets_.emplace(*hash, sets.Int(0));
  }
  ASSIGN_OR_RETURN(Statement keys, database.Prepare("SELECT key_id, component_set_id FROM cache_key"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, keys.Step());
    if (!has_row) return {};
    keys_.insert(static_cast<std::uint64_t>(keys.Int(1)) << 32 | static_cast<std::uint64_t>(keys.Int(0)));
  }
}

}  // namespace tlparse

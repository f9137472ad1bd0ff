// Cache key components: what one lookup hashed into its key. A set of them is stored as runs of lists that earlier sets brought:
//
//   set 1   gm | example_inputs[0] example_inputs[1] | inductor_config[a] inductor_config[b]
//           three blocks, all new: they become list 1; set 1 is the run list 1, components 0 … 4
//   set 2   gm' | example_inputs[0] example_inputs[1] | inductor_config[a] inductor_config[b]
//           the block gm' is new: list 2. Set 2 is two runs: list 2, component 0; list 1, components 1 … 4
//
// A block is the longest series of components whose names agree up to the '[', at most 64. The order of components is kept.
//
// On GPUs every rank has its own device index, and so keys and hashes of its own in everything that
// names it. Such a component is stored once, with a placeholder for the index (device_text.h), its
// hash once for each index; the set is then the same for all ranks, and a key is a set and a
// device index. A set has one device index, that of the first component that names one; a
// component that names another one, or several, is stored unchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "artifacts/common/cache/component_line.h"
#include "artifacts/common/cache/key_set.h"
#include "base/result.h"
#include "store/hash128.h"
#include "store/row_batch.h"
#include "store/text_pool.h"

namespace tlparse {

class Database;

class ComponentSets {
 public:
  explicit ComponentSets(TableSet& tables);

  // Takes over the sets of an existing database. Call before Intern.
  Result<void> Load(Database& database);

  // The set; one not seen before becomes rows. `components` is not empty. Without a key to keep the
  // device index, texts are stored unchanged.
  KeySet Intern(RowBatch& rows, TextPool& texts, const std::vector<Component>& components,
                bool has_key);
  // The id of a key; one not seen before becomes a row. Nothing for the empty key.
  std::optional<std::int64_t> KeyId(RowBatch& rows, std::string_view key);
  // Records that the key was made of the set (or that the set is the logged part of it).
  void LinkKey(RowBatch& rows, std::int64_t key_id, const KeySet& set);

 private:
  using Index = std::unordered_map<Hash128, std::int64_t, Hash128Hasher>;
  // Device index of a set so far.
  static constexpr std::int64_t kNone = -1;      // no component has named one
  static constexpr std::int64_t kVerbatim = -2;  // texts are stored unchanged

  struct Stored {
    std::int64_t id;
    std::int64_t device;  // kNone: stored unchanged
  };
  struct Place {
    std::int64_t list_id;
    std::int64_t ordinal;
    std::int64_t device;
  };
  // Each takes the device index of the set so far, and sets it if it is the first to have one.
  Stored StoreComponent(RowBatch& rows, TextPool& texts, const Component& component,
                        std::int64_t& device);
  std::int64_t StoreTemplate(RowBatch& rows, TextId name, std::string_view text,
                             std::int64_t device, std::string_view hash);
  Place StoreBlock(RowBatch& rows, TextPool& texts, const std::vector<Component>& components,
                   std::size_t begin, std::size_t end, std::int64_t& device);
  Place AppendToList(RowBatch& rows, const std::vector<std::int64_t>& ids, std::int64_t device);
  Result<void> LoadComponents(Database& database);
  Result<void> LoadLists(Database& database);
  Result<void> LoadSets(Database& database);
  Result<void> LoadKeys(Database& database);

  std::int64_t next_key_ = 1;
  std::int64_t next_component_ = 1;
  std::int64_t next_set_ = 1;
  std::int64_t next_list_ = 1;
  std::unordered_map<Hash128, Stored, Hash128Hasher> components_;  // by name and hash
  // By name, text with the placeholder, and a number: 0, or 1, 2, … for further hashes of the same text on one device.
  Index templates_;
  // by component and device index: its hash
  std::unordered_map<Hash128, Hash128, Hash128Hasher> template_hashes_;
  std::unordered_map<Hash128, Place, Hash128Hasher> blocks_;  // by names and hashes
  // by component ids, of blocks with a placeholder
  std::unordered_map<Hash128, Place, Hash128Hasher> template_blocks_;
  std::unordered_map<Hash128, KeySet, Hash128Hasher> sets_;  // by names and hashes
  Index stored_sets_;                                        // by runs
  Index keys_;                                               // by text
  std::unordered_set<std::uint64_t> links_;                  // (set id << 32 | key id)
  // The list that new blocks of the current set are added to; 0: none.
  std::int64_t open_list_ = 0;
  std::int64_t open_length_ = 0;
  // Scratch.
  std::string buffer_;             // of HashOf
  std::vector<std::int64_t> ids_;  // of StoreBlock
};

}  // namespace tlparse

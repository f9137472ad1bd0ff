// Cache key components: what one lookup hashed into its key, stored as little as it differs from earlier lookups.
//
// A component line is `[<51 base32 characters>] <name>: <text>` (FxGraphHashDetails.debug_lines in torch/_inductor/codecache.py);
// the text may span lines. A set is cut into blocks: maximal runs of components whose names agree up to '[', of at most 64.
// A block seen before is referenced where it lies; new blocks that follow each other become a new list; references that follow
// each other in one list become one run. Order is kept exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "store/hash128.h"
#include "store/row_batch.h"
#include "store/text_pool.h"

namespace tlparse {

class Database;

struct Component {
  std::string_view name;   // inductor_config[freezing]
  std::string_view hash;   // "" if the line gives none
  std::string_view value;
};

// Reads the first line of a component; nothing if it is none (then it continues the one before). With `is_hashed` false, a line
// without `[hash]` is accepted.
std::optional<Component> ParseComponent(std::string_view line, bool is_hashed = true);

class ComponentSets {
 public:
  explicit ComponentSets(TableSet& tables);

  // Takes over the sets of an existing database. Call before Intern.
  Result<void> Load(Database& database);

  // The id of the set; one not seen before becomes rows. `components` is not empty.
  std::int64_t Intern(RowBatch& rows, TextPool& texts, const std::vector<Component>& components);
  // Notes that the key was made of the set (or of a part of what the log tells of it).
  void LinkKey(RowBatch& rows, TextId key, std::int64_t set_id);

 private:
  struct Place {
    std::int64_t list_id;
    std::int64_t ordinal;
  };
  Place PlaceOfBlock(RowBatch& rows, TextPool& texts, const std::vector<Component>& components, std::size_t begin, std::size_t end);
  std::int64_t ComponentId(RowBatch& rows, TextPool& texts, const Component& component);

  TableId component_;
  TableId set_;
  TableId list_row_;
  TableId run_;
  TableId cache_key_;
  std::int64_t next_component_ = 1;
  std::int64_t next_set_ = 1;
  std::int64_t next_list_ = 1;
  std::unordered_map<Hash128, std::int64_t, Hash128Hasher> components_;
  std::unordered_map<Hash128, std::int64_t, Hash128Hasher> sets_;
  std::unordered_map<Hash128, Place, Hash128Hasher> blocks_;
  std::unordered_set<std::uint64_t> keys_;  // (set id << 32 | key's text id)
  // The list that new blocks of the set under way are added to.
  std::int64_t open_list_ = 0;
  std::int64_t open_length_ = 0;
};

}  // namespace tlparse

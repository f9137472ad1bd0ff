// The texts of a page of files: what records hold, each distinct payload once. Texts whose hashes
// begin alike share a chunk text/<prefix>, a large one has its own. Sixteen such chunks are a group;
// search/<group> says what a search has to know of its texts without reading them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "answers/search/text_search.h"
#include "base/result.h"
#include "report/output_directory.h"
#include "store/database.h"

namespace tlparse {

class PageTexts {
 public:
  // From this size on a text has its own chunk.
  static constexpr std::int64_t kAloneBytes = 256 << 10;
  // A chunk is read and parsed as a whole before the page continues: half a megabyte takes a few
  // milliseconds.
  static constexpr std::int64_t kChunkBytes = 512 << 10;

  static Result<PageTexts> Find(Database& database, std::int64_t run_id);

  int prefix_digits() const { return prefix_digits_; }
  std::int64_t group_count() const { return std::int64_t{1} << (4 * (prefix_digits_ - 1)); }
  Result<void> WriteGroup(Database& database, const Directory& data, std::int64_t group) const;

 private:
  struct Use {
    std::int64_t first_record_id = 0;                  // 0: no record of the run has it
    std::optional<std::int64_t> compile_id, title_id;  // of that record
    TextKind kind = TextKind::kLog;
    std::string direction;  // of its graph
    std::int64_t record_count = 0;
    std::vector<std::int64_t> ranks;  // ascending
  };
  friend class TextGroupWriter;

  Result<void> FindKinds(Database& database);

  std::vector<Use> uses_;  // by payload id
  int prefix_digits_ = 1;
};

}  // namespace tlparse

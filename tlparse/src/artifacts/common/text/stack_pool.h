// Stacks as a trie: frames with the same callers share rows of stack_frame.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "artifacts/common/process_state.h"
#include "base/result.h"
#include "store/hash128.h"
#include "store/row_batch.h"

namespace tlparse {

class Database;

class StackPool {
 public:
  explicit StackPool(TableSet& tables);
  // Takes over the frames of the database. Again: those that another pool has added since.
  Result<void> Load(Database& database);

  struct Frame {
    std::optional<std::string_view> file;
    std::optional<std::int64_t> line;
    std::string_view function;
    std::string_view code;
  };
  // The child of `parent_id` (0: none) for this frame.
  std::int64_t Child(RowBatch& rows, std::int64_t parent_id, const Frame& frame);
  // A JSON list of frames, outermost first: {"line": 7, "name": "f", "filename": 3, "loc": "x + y"},
  // where 3 is the id of an interned string of the process. Returns the innermost frame's id, 0 for an empty list. Sets *unresolved to an interned
  // id without text, if there was one (it may be nullptr). Elements that are no objects, and
  // members of the wrong type, are left out; kBadJson if `frames` is not a list.
  Result<std::int64_t> Stack(RowBatch& rows, const ProcessState& process,
                             const simdjson::dom::element& frames,
                             std::optional<std::int64_t>* unresolved);

 private:
  std::int64_t next_ = 1;
  std::unordered_map<Hash128, std::int64_t, Hash128Hasher> ids_;
  std::string key_;  // reused
};

}  // namespace tlparse

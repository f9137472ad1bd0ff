// Derived content: the normalised form of payloads (without addresses, timings and paths). Each
// distinct one is stored once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "store/hash128.h"
#include "store/row_batch.h"

namespace tlparse {

class Database;

// Kinds of content. `name` is content.kind.
enum class ContentKind : std::uint8_t {
  kGraph,           // normalised graph text; graph_node_row
  kCode,            // normalised generated code
  kCodeKernels,     // not stored as rows: what was parsed from one code text
  kGuardTree,       // guard_row
  kSchedule,        // collective_row
  kOpList,          // op_row, op_output_row
  kOpEstimate,      // op_estimate_row
  kProvenance,      // kernel_row, kernel_node_row, node_mapping_row, kernel_source_row
  kExecutionOrder,  // graph_execution_row
  kTritonKernels,   // triton_kernel_row
  kText,  // any other payload, normalised (fx_graph_runnable, torch._functorch.config, …)
};
std::string_view Name(ContentKind kind);

struct ContentId {
  std::int64_t id;
  bool is_new;  // first time: its rows have to be added
};

class ContentRegistry {
 public:
  explicit ContentRegistry(TableSet& tables);

  // Takes over the contents of an existing database. Call before Intern.
  Result<void> Load(Database& database);

  // The content of that kind and hash (of the normalised form).
  ContentId Intern(RowBatch& rows, ContentKind kind, const Hash128& hash, std::int64_t record_id);

  // The content of an earlier record with this payload; saves parsing repeated payloads. payload_id
  // 0 is never known.
  std::optional<std::int64_t> OfPayload(ContentKind kind, std::int64_t payload_id) const;
  void LinkPayload(RowBatch& rows, ContentKind kind, std::int64_t payload_id,
                   std::int64_t content_id);

  std::int64_t next_id() const { return next_; }

 private:
  struct Key {
    Hash128 hash;
    ContentKind kind;
    bool operator==(const Key&) const = default;
  };
  struct KeyHasher {
    std::size_t operator()(const Key& key) const {
      return static_cast<std::size_t>(key.hash.low + static_cast<std::uint64_t>(key.kind));
    }
  };
  std::int64_t next_ = 1;
  std::unordered_map<Key, std::int64_t, KeyHasher> ids_;
  // (payload id << 8 | kind) → content id
  std::unordered_map<std::uint64_t, std::int64_t> of_payload_;
};

}  // namespace tlparse

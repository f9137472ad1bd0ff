// The answer of `tlparse history`. history.cc prints it as a table, history_json.cc as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifacts/common/compile_status.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "facts/compiles/vllm_start.h"
#include "queries/answers/history/history.h"
#include "store/database.h"

namespace tlparse {

inline CompileStatus StatusOf(const CompileInHistory& row) { return CompileStatusFrom(row.status); }

// What is said beside the compiles.
struct HistoryAnswer {
  std::string why_none;
  std::string only;  // with --rank or --process
  std::optional<std::int64_t> compile_count;
  std::vector<VllmStart> starts;
};

// Reads the compiles to their end.
Result<JsonWriter> HistoryJson(Database& database, QueryRows<CompileInHistory>& compiles,
                               const HistoryAnswer& answer);

}  // namespace tlparse

// What every load of a run needs from a database: its row of `run` and the known payloads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "log/payload_index.h"
#include "store/database.h"
#include "store/row_batch.h"

namespace tlparse {

// The id of the run of this name; nothing: there is none.
Result<std::optional<std::int64_t>> FindRunId(Database& database, const std::string& name);
// A new row of `run`, made now.
void AddRunRow(std::int64_t id, const std::string& name, RowBatch& rows);
// Adds the payloads of an existing database to an empty index. Returns the id of the next one.
Result<std::int64_t> LoadPayloads(Database& database, PayloadIndex& index);
// The directory that a path's file is in, for temporary files on the same file system.
std::string DirectoryOf(const std::string& path);
std::uint64_t RandomSeed();

}  // namespace tlparse

// The files of a load that are no logs: each through its reader into rows, one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/reader.h"
#include "store/batch_table.h"

namespace tlparse {

class RuntimeStage {
 public:
  // Declares the tables of all readers in `tables`, which outlives the stage.
  explicit RuntimeStage(TableSet& tables);

  // What the load gives. All outlive the stage; used by one thread.
  struct Load {
    Database& database;
    BatchWriter& writer;
    TextPool& texts;
    ImportLog& import_log;
    std::int64_t run_id;
    RuntimeOptions options;
  };
  // Reads `input` into rows of load.database. False: it was not what it was taken for, and is a
  // skipped file of import_log. kNotFound or kIo if it cannot be opened; kDatabase.
  // `on_progress` gets the bytes of the file (as on disk) that are done.
  Result<bool> Read(const RuntimeInput& input, Load& load,
                    const std::function<void(std::int64_t)>& on_progress);

 private:
  friend class OpenProfile;
  RuntimeReader* Find(InputKind kind);
  Result<void> LoadIds(Database& database);

  TableSet& tables_;
  TableId profile_table_;
  std::vector<std::pair<InputKind, std::unique_ptr<RuntimeReader>>> readers_;
  std::vector<std::int64_t> next_ids_;  // by table; empty: not asked yet
};

// Removes a profile with all that it owns.
Result<void> RemoveProfile(Database& database, std::int64_t id);

// True: the run holds a profile with this file's bytes (whatever its path) and nothing is to do.
// False: it does not; the rows of an earlier state of the file under this path are gone. Reads the
// file once to compare it.
Result<bool> ReplaceChangedProfile(Database& database, std::int64_t run_id,
                                   const std::string& path);

}  // namespace tlparse

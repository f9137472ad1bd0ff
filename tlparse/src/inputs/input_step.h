// Reads the files of a load other than logs, one after the other, each by its reader.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "inputs/reader.h"
#include "store/batch_table.h"

namespace tlparse {

class RuntimeStep {
 public:
  // Declares the tables of all readers in `tables`, which outlives the step.
  explicit RuntimeStep(TableSet& tables);

  // What the load gives. All outlive the step; used by one thread.
  struct Load {
    Database& database;
    BatchWriter& writer;
    TextPool& texts;
    ImportLog& import_log;
    std::int64_t run_id;
    RuntimeOptions options;
  };
  // Reads `input` into rows of load.database. False: it was of another kind, and is a skipped file
  // of import_log. kNotFound or kIo if it cannot be opened; kDatabase.
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

// True: the run has a profile with this file's bytes (under any path); nothing is to be done.
// False: it has not; the rows of an earlier state of the file under this path were removed. Reads
// the file once to compare it.
Result<bool> ReplaceChangedProfile(Database& database, std::int64_t run_id,
                                   const std::string& path);

}  // namespace tlparse

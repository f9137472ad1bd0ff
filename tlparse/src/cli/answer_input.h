// Inputs of answers that compare runs: a database, DB:run, an output directory, a log or a
// directory of logs.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// An open database and the run that was named in it. Logs are ingested into a temporary database,
// which is removed from the file system right after it was opened.
struct AnswerInput {
  Database database;
  std::string run;  // empty: the latest
};

// kNotFound, kIo, kNotATrace with what is wrong and what would be right.
Result<AnswerInput> OpenAnswerInput(const std::string& name);

}  // namespace tlparse

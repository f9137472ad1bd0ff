// Inputs of answers: a database, an output directory, a log or a directory of logs; of those that
// compare runs also DB:run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// An open database and the run that was named in it. Logs are ingested into a temporary database,
// which is removed from the file system right after it was opened.
struct AnswerInput {
  Database database;
  std::string run;  // empty: the latest
  bool is_from_logs = false;
};

// Whether it is a database, or an output directory that holds one.
bool IsAnswerDatabase(const std::string& path);
// kNotFound, kIo, kNotATrace; the message says what is wrong and what is expected.
Result<AnswerInput> OpenAnswerInput(const std::string& name);
// Of an answer about one input, without DB:run. Says on standard error that logs are read, and how
// they are read once and for all.
Result<Database> OpenAskedDatabase(const std::string& name);
// The same as OpenAnswerInput of one input, or of several logs and directories as one run.
Result<AnswerInput> OpenAnswerInputs(const std::vector<std::string>& names);

}  // namespace tlparse

// run.json: what is known of a command that `tlparse run` started.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "inputs/torch_logs/abort_text.h"
#include "runner/process_watch.h"
#include "runner/recorded_variables.h"

namespace tlparse {

// How the program judged that the command hangs, and what it could take then.
struct HangReport {
  std::int64_t time_us = 0;
  std::string why;                   // a sentence
  std::vector<std::string> taken;    // what was taken, a line each
  std::vector<std::string> missing;  // what could not be, and why
  bool was_ended = false;            // the command was, then
  std::vector<std::int64_t> busy;    // ranks that alone used the CPU; empty: none did
};

struct RunFacts {
  std::vector<std::string> command;
  std::string directory;  // in which it was started
  std::int64_t started_us = 0, ended_us = 0;
  int exit_code = 0;
  std::vector<WatchedProcess> processes;
  std::vector<JobEnvironment::Setting> environment;  // TellingVariables
  std::vector<JobEnvironment::Setting> recorded;     // JobEnvironment::settings
  std::vector<HangReport> hangs;
  std::vector<AbortText> aborts;  // ErrorText::Aborts
};

// The text of the file, with the names of design's §12 and some more. Processes that ended with 0
// within a second and are neither the command nor a rank are left out and counted.
std::string RunFileText(const RunFacts& facts);

// Writes the file whole, or not at all.
Result<void> WriteRunFile(const std::string& path, std::string_view text);

}  // namespace tlparse

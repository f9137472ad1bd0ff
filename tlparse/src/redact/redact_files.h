// Redacts the files of a job: structured logs, recorder dumps, profiles of torch.profiler, snapshots of the allocator, run.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "redact/pseudonyms.h"

namespace tlparse {

struct RedactedFile {
  std::string path;                  // of the input
  std::string written = {};          // below the output directory; empty: the file was left out
  std::string reason = {};           // why
  std::int64_t replaced = 0;         // names, by occurrence
  std::int64_t kept_records = 0;     // of a log
  std::int64_t dropped_records = 0;  // of a log: their envelope cannot be parsed
  std::int64_t dropped_lines = 0;    // of a log: they belong to no record
};

struct RedactionReport {
  std::vector<RedactedFile> files;
  std::size_t names = 0;  // that have a pseudonym, with those of the key
};

// Reads all files at `inputs` twice: for the user's names, then to write each into `directory`, which is made, with pseudonyms.
// Compressed files are written plain, pickles of recorders as JSON. What cannot be parsed is dropped. `hides_sizes`: see TextRedactor. kRefused: `directory` exists and is not empty.
Result<RedactionReport> RedactFiles(const std::vector<std::string>& inputs,
                                    const std::string& directory, Pseudonyms& pseudonyms,
                                    bool hides_sizes);

}  // namespace tlparse

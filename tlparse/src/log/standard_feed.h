// Logs read from standard input, in the format that `tail -f` writes for one or several files.
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "log/find_logs.h"
#include "log/tail_splitter.h"

namespace tlparse {

// Their bytes are kept in files without a name. A file named in the input is never opened: its log
// has the path "-/" + name, or "-" if there was no header.
class StandardFeed {
 public:
  // `directory`: on whose file system the bytes are kept.
  explicit StandardFeed(std::string directory);
  StandardFeed(const StandardFeed&) = delete;  // its splitter refers to it
  StandardFeed& operator=(const StandardFeed&) = delete;

  // Reads what arrives within the time; false: the input has ended. kUsage: too many files.
  Result<bool> Read(std::chrono::milliseconds longest);
  // All logs so far, in the order in which they appeared.
  const std::vector<FoundLog>& logs() const { return logs_; }

 private:
  Result<void> Keep(const std::string& name, std::string_view bytes);
  std::string directory_;
  TailSplitter splitter_;
  std::unordered_map<std::string, FileDescriptor> descriptors_;  // by path
  std::vector<FoundLog> logs_;
  std::string buffer_;
};

}  // namespace tlparse

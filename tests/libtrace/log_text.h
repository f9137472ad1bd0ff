// Reads a structured trace log the slow and obvious way, independently of the library that wrote
// it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/sink.h"
#include "libtrace/trace.h"

namespace libtrace::testing {

struct LoggedRecord {
  std::string prefix;    // up to and with "] "
  std::string envelope;  // the JSON
  std::string payload;
  bool has_payload = false;

  std::string pid() const;
  bool Has(std::string_view text) const { return envelope.find(text) != std::string::npos; }
  // `{"artifact": {"name": "<name>"`
  bool IsArtifact(std::string_view name) const;
};

// Fails the running test if a line is malformed, an interned id is used before it is defined, or a
// payload does not match its MD5.
std::vector<LoggedRecord> ParseLog(std::string_view text);

inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}
std::string ReadText(const std::filesystem::path& path);
// Files of a directory that are structured trace logs.
std::vector<std::filesystem::path> LogsIn(const std::filesystem::path& directory);

// The first record that contains `text` in its envelope.
std::optional<LoggedRecord> FindRecord(const std::vector<LoggedRecord>& records,
                                       std::string_view text);

// The payloads of all artifacts of that name, one after the other.
std::string PayloadsOf(const std::vector<LoggedRecord>& records, std::string_view artifact);

// A directory that goes away with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string string() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// A trace into memory for the length of a test; reported errors are kept.
class MemoryTrace {
 public:
  explicit MemoryTrace(Options options = {});
  ~MemoryTrace();

  std::vector<LoggedRecord> records();  // flushes first
  std::string text();
  const std::vector<std::string>& errors() const { return *errors_; }

 private:
  std::shared_ptr<MemorySink> sink_;
  std::shared_ptr<std::vector<std::string>> errors_;
};

}  // namespace libtrace::testing

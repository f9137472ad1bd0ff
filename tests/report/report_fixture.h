// From log text to an output directory, for tests.
#pragma once

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/md5.h"
#include "import/importer.h"
#include "log/find_logs.h"
#include "report/report.h"
#include "store/database.h"
#include "tests/base/temp_directory.h"
#include "tests/catch2.h"

namespace tlparse {

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  REQUIRE(stream);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// All files below `root`, as relative paths.
inline std::set<std::string> FilesBelow(const std::string& root) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) {
      files.insert(std::filesystem::relative(entry.path(), root).string());
    }
  }
  return files;
}

// A header line of a record and its payload (nothing if `payload` is nullptr).
inline std::string LogRecordText(const std::string& envelope, const char* payload = nullptr,
                                 int pid = 4242) {
  std::string header = envelope;
  if (payload != nullptr) {
    header.pop_back();
    header += ", \"has_payload\": \"" + ToHex(Md5(payload)) + "\"}";
  }
  std::string text =
      "V1121 08:30:01.123000 " + std::to_string(pid) + " torch/_dynamo/x.py:10] " + header + "\n";
  if (payload == nullptr) return text;
  text += '\t';
  for (const char* c = payload; *c != '\0'; ++c) {
    text += *c;
    if (*c == '\n') text += '\t';
  }
  return text + "\n";
}

// The database of one log with this text, made in `directory`.
inline Database Ingested(const TempDirectory& directory, const std::string& text) {
  const std::string log = directory.path() + "/a.log";
  std::ofstream(log, std::ios::binary) << text;
  ImportOptions import;
  import.database_path = directory.path() + "/trace.db";
  REQUIRE(ImportLogs({FoundLog{log, std::nullopt, static_cast<std::int64_t>(text.size())}}, {},
                     import));
  auto database = Database::Open(import.database_path, Database::Mode::kReadOnly);
  REQUIRE(database);
  return std::move(*database);
}

// Ingests logs and writes their report to <directory>/out.
class ReportOf {
 public:
  explicit ReportOf(const std::vector<std::string>& logs, ReportOptions options = {}) {
    std::vector<FoundLog> found;
    for (const std::string& path : logs) {
      found.push_back(FoundLog{path, RankFromFileName(path),
                               static_cast<std::int64_t>(std::filesystem::file_size(path))});
    }
    ImportOptions import;
    import.database_path = directory_.path() + "/trace.db";
    import.run_name = "test";
    const auto imported = ImportLogs(found, {}, import);
    INFO((imported ? std::string() : imported.error().message));
    REQUIRE(imported);
    auto database = Database::Open(import.database_path, Database::Mode::kReadOnly);
    REQUIRE(database);
    auto output = CreateOutputDirectory(root(), false);
    REQUIRE(output);
    const auto written = WriteReport(*database, *output, options);
    INFO((written ? std::string() : written.error().message));
    REQUIRE(written);
    summary_ = *written;
  }

  std::string root() const { return directory_.path() + "/out"; }
  std::string File(const std::string& name) const { return ReadFile(root() + "/" + name); }
  bool Has(const std::string& name) const { return std::filesystem::exists(root() + "/" + name); }
  const ReportSummary& summary() const { return summary_; }
  const TempDirectory& directory() const { return directory_; }

 private:
  TempDirectory directory_;
  ReportSummary summary_;
};

// The same for log text: `name` is the file's name.
struct TextLog {
  TempDirectory directory;
  std::string Path(const std::string& name, const std::string& text) const {
    return directory.Write(name, text);
  }
};

}  // namespace tlparse

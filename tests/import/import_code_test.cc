// Every code of import_log is provoked by a fixture, so that none can lose its way into the table
// unseen.
#include "log/import_code.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

TEST_CASE("Every code of import_log has a fixture", "[import_code]") {
  std::string fixtures;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(TRACEKIT_SOURCE_DIR "/fixtures")) {
    if (entry.path().extension() != ".test") continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    for (std::size_t at = text.find("\n=== rows"); at != text.npos;
         at = text.find("\n=== rows", at + 1)) {
      fixtures += text.substr(at, text.find("\n=== ", at + 5) - at);
    }
  }
  // What is found in profiles and dumps is provoked by tests in Python.
  for (const auto& entry :
       std::filesystem::directory_iterator(TRACEKIT_SOURCE_DIR "/tests/inputs")) {
    if (entry.path().extension() != ".py") continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    fixtures.append(std::istreambuf_iterator<char>(stream), {});
  }
  REQUIRE(fixtures.size() > 10'000);
  for (int code = 1; code < static_cast<int>(ImportCode::kCount); ++code) {
    const ImportCodeInfo& info = Info(static_cast<ImportCode>(code));
    CAPTURE(info.name);
    // A record of 768 MiB is no fixture: tests/log makes the limit small, tests/e2e/test_damaged.py
    // makes such a record. Nor is more than memory is given to: tests/e2e/test_memory.py; nor a log
    // that is removed while it is followed: tests/e2e/test_watch.py.
    if (info.code != ImportCode::kLineTooLong && info.code != ImportCode::kMemoryLimit &&
        info.code != ImportCode::kRemovedFile)
      CHECK(fixtures.find(info.name) != fixtures.npos);
  }
}

#include "inputs/size_estimate.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

namespace {

constexpr std::int64_t kGb = 1'000'000'000;

class File {
 public:
  explicit File(const std::string& bytes)
      : path_(std::filesystem::temp_directory_path() /
              ("size_estimate." + std::to_string(getpid()) + "." + std::to_string(count_++))) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::string path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("A log takes its size, a profile a part of it", "[size_estimate]") {
  CHECK(EstimateDatabaseBytes(InputKind::kLog, "none", kGb) == 1'100'000'000);
  CHECK(EstimateDatabaseBytes(InputKind::kProfile, "none", kGb) == 120'000'000);
  CHECK(EstimateDatabaseBytes(InputKind::kLog, "gzip", kGb) == 8 * 1'100'000'000LL);
  CHECK(EstimateDatabaseBytes(InputKind::kProfile, "zstd", kGb) == 18 * 120'000'000LL);
  CHECK(EstimateDatabaseBytes(InputKind::kRecorderDump, "none", 0) == 0);
}

TEST_CASE("The estimate of a load sums over its files by their content", "[size_estimate]") {
  const File plain("V1122 19:13"), gzip("\x1f\x8b\x08 rest"), zstd("\x28\xb5\x2f\xfd rest");
  FoundInputs found;
  found.logs = {{plain.path(), std::nullopt, kGb}, {gzip.path(), 0, kGb}};
  found.runtime = {{zstd.path(), InputKind::kProfile, kGb}};
  CHECK(EstimateDatabaseBytes(found) ==
        EstimateDatabaseBytes(InputKind::kLog, "none", kGb) +
            EstimateDatabaseBytes(InputKind::kLog, "gzip", kGb) +
            EstimateDatabaseBytes(InputKind::kProfile, "zstd", kGb));
}

TEST_CASE("Pipes, standard input and files that are gone add nothing", "[size_estimate]") {
  FoundInputs found;
  found.logs = {{"-", std::nullopt, 0}, {"/dev/fd/0", std::nullopt, -1}};
  CHECK(EstimateDatabaseBytes(found) == 0);
  found.logs.push_back({"/nonexistent/log", std::nullopt, 5 * kGb});
  CHECK(EstimateDatabaseBytes(found) == 0);
}

TEST_CASE("Small inputs are not looked at", "[size_estimate]") {
  FoundInputs found;
  found.logs = {{"/nonexistent/log", std::nullopt, 1'000'000}};
  CHECK(EstimateDatabaseBytes(found) == 1'100'000);
}

#include "log/find_logs.h"

#include <sys/stat.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/base/temp_directory.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader =
    "V1121 08:30:01.123000 4242 torch/_logging/structured.py:28] {\"str\": [\"a.py\", 0]}\n";

std::vector<std::string> NamesOf(const FoundLogs& found, const TempDirectory& directory) {
  std::vector<std::string> names;
  for (const FoundLog& log : found.logs) {
    names.push_back(log.path.substr(directory.path().size() + 1));
  }
  return names;
}

std::string ReasonFor(const FoundLogs& found, std::string_view name) {
  for (const SkippedFile& file : found.skipped) {
    if (fs::path(file.path).filename() == name) return file.reason;
  }
  return "(not skipped)";
}

TEST_CASE("RankFromFileName knows the names that PyTorch gives and no others", "[find_logs]") {
  const auto rank = [](const char* name) { return RankFromFileName(name).value_or(-1); };
  CHECK(rank("dedicated_log_torch_trace_rank_12_ab3_x9_z.log") == 12);
  CHECK(rank("/logs/dedicated_log_torch_trace_rank_0_abcdefgh.log.gz") == 0);
  CHECK(rank("dedicated_log_torch_trace_rank_7_abcdefgh.log.zst") == 7);
  CHECK(rank("dedicated_log_torch_trace_rank_3.log") == 3);
  CHECK(rank("dedicated_log_torch_trace_abcdefgh.log") == -1);
  CHECK(rank("dedicated_log_torch_trace_rank_1_a.log") == 1);  // renamed by somebody
  CHECK(rank("dedicated_log_torch_trace_rank_5_second try.log.gz") == 5);
  CHECK(rank("dedicated_log_torch_trace_rank_1a_bcdef.log") == -1);
  CHECK(rank("dedicated_log_torch_trace_rank_99999999999.log") == -1);
  CHECK(rank("dedicated_log_torch_trace_rank_1048575.log") == 1048575);
  CHECK(rank("dedicated_log_torch_trace_rank_1048576.log") == -1);  // no job has so many
  CHECK(IsTraceFileName("dedicated_log_torch_trace_abcdefgh.log"));
  CHECK(IsTraceFileName("dedicated_log_torch_trace_rank_1_a.log"));
  CHECK(IsTraceFileName("a/b/dedicated_log_torch_trace_rank_99999999999.log"));
  for (const char* name :
       {"", "dedicated_log_torch_trace_.log", "dedicated_log_torch_trace_abcdefg.log",
        "dedicated_log_torch_trace_abcdefghi.log", "dedicated_log_torch_trace_ABCDEFGH.log",
        "dedicated_log_torch_trace_abcdefgh.txt", "dedicated_log_torch_trace_abcdefgh.log.bz2",
        "xdedicated_log_torch_trace_abcdefgh.log", "dedicated_log_torch_trace_abcdefgh.log/x",
        "dedicated_log_torch_trace_rank_.log", "dedicated_log_torch_trace_rank_1abcdefgh.log"}) {
    INFO(name);
    CHECK_FALSE(IsTraceFileName(name));
    CHECK(rank(name) == -1);
  }
}

TEST_CASE("IsTraceHeaderLine follows the grammar", "[find_logs]") {
  for (const char* line : {
           R"(V1121 08:30:01.123000 4242 torch/x.py:28] {"a": 1})",
           R"([rank12]:I1121 08:30:01.123000 4242 torch/x.py:28] {)",
           R"(V0402 22:22:05.000001 140144363024384 /a b/x.py:1] {})",
           R"(V1121 08:30:01.123000     42 C:\x.py:12] {})",
           R"(V1321 08:30:01.123000 4242 torch/x.py:28] {})",  // an odd date is no reason to lose
                                                               // it
           R"(V1121 08:30:01.123000 42 a] {b:c] {:7] {})",
           "V1121 08:30:01.123000 42 /x.py:7] {}\r",
       }) {
    INFO(line);
    CHECK(IsTraceHeaderLine(line));
  }
  for (const char* line : {
           "",
           "V",
           "\tV1121 08:30:01.123000 4242 torch/x.py:28] {}",
           R"(D1121 08:30:01.123000 4242 torch/x.py:28] {})",
           R"(V1121 08:30:01.1230 4242 torch/x.py:28] {})",
           R"(V1121 08:30:01.123000 torch/x.py:28] {})",
           R"(V1121 08:30:01.123000 4242 torch/x.py:28] [0/0] [__guards] text)",
           R"(V1121 08:30:01.123000 4242 torch/x.py:] {})",
           R"(V1121 08:30:01.123000 4242 :28] {})",
           R"(V1121 08:30:01.123000 4242 torch/x.py28] {})",
           R"([rank]:V1121 08:30:01.123000 4242 torch/x.py:28] {})",
           R"([rank1] V1121 08:30:01.123000 4242 torch/x.py:28] {})",
       }) {
    INFO(line);
    CHECK_FALSE(IsTraceHeaderLine(line));
  }
}

TEST_CASE("FindLogs searches directories, by rank and then by path", "[find_logs]") {
  const TempDirectory directory;
  const std::string header(kHeader);
  directory.Write("dedicated_log_torch_trace_rank_10_abcdefgh.log", header);
  directory.Write("dedicated_log_torch_trace_rank_2_abcdefgh.log", header);
  directory.Write("dedicated_log_torch_trace_abcdefgh.log", header);
  directory.Write("below/dedicated_log_torch_trace_rank_2_abcdefgh.log", header);
  directory.Write("below/deeper/renamed.txt", "noise\n\n" + header);
  directory.Write("job.out", "hello\n[rank3]:" + header);
  directory.Write("empty.log", "");
  directory.Write("notes.md", "nothing of interest\n\t" + header);
  directory.Write("late.txt", std::string(70'000, '\n') + header);
  REQUIRE(::mkfifo((directory.path() + "/pipe").c_str(), 0600) == 0);

  const auto found = FindLogs(directory.path());
  REQUIRE(found);
  CHECK(NamesOf(*found, directory) ==
        std::vector<std::string>{"below/dedicated_log_torch_trace_rank_2_abcdefgh.log",
                                 "dedicated_log_torch_trace_rank_2_abcdefgh.log",
                                 "dedicated_log_torch_trace_rank_10_abcdefgh.log",
                                 "below/deeper/renamed.txt",
                                 "dedicated_log_torch_trace_abcdefgh.log", "job.out"});
  CHECK(found->logs[2].rank == 10);
  CHECK_FALSE(found->logs[5].rank);
  CHECK(found->logs[0].size_bytes == static_cast<std::int64_t>(header.size()));
  CHECK(found->skipped.size() == 4);
  CHECK(ReasonFor(*found, "empty.log") == "it is empty");
  CHECK(ReasonFor(*found, "pipe") == "it is not a regular file");
  CHECK(ReasonFor(*found, "notes.md") ==
        "no record of a structured trace begins in its first 64 kB");
  CHECK(ReasonFor(*found, "late.txt") == ReasonFor(*found, "notes.md"));
}

TEST_CASE("FindLogs follows links but enters nothing twice", "[find_logs]") {
  const TempDirectory directory, elsewhere;
  directory.Write("a/dedicated_log_torch_trace_rank_0_abcdefgh.log", kHeader);
  elsewhere.Write("dedicated_log_torch_trace_rank_1_abcdefgh.log", kHeader);
  const fs::path root = directory.path();
  fs::create_directory_symlink(root, root / "a/loop");
  fs::create_directory_symlink("a", root / "b");
  fs::create_directory_symlink(elsewhere.path(), root / "c");
  fs::create_symlink("missing", root / "dangling");
  fs::create_symlink("a/dedicated_log_torch_trace_rank_0_abcdefgh.log", root / "z.log");

  const auto found = FindLogs(directory.path());
  REQUIRE(found);
  CHECK(NamesOf(*found, directory) ==
        std::vector<std::string>{"a/dedicated_log_torch_trace_rank_0_abcdefgh.log",
                                 "c/dedicated_log_torch_trace_rank_1_abcdefgh.log"});
  CHECK(ReasonFor(*found, "loop") == "it was already found under another name");
  CHECK(ReasonFor(*found, "b") == "it was already found under another name");
  CHECK(ReasonFor(*found, "z.log") == "it was already found under another name");
  CHECK_THAT(ReasonFor(*found, "dangling"), Catch::Matchers::StartsWith("it cannot be read: "));
}

TEST_CASE("FindLogs does not search what tlparse wrote", "[find_logs]") {
  const TempDirectory directory;
  directory.Write("dedicated_log_torch_trace_rank_0_abcdefgh.log", kHeader);
  directory.Write("tl_out/.tlparse-output", "");
  directory.Write("tl_out/payloads/0.txt", kHeader);
  directory.Write("other_out/payloads/0.txt", kHeader);
  const auto found = FindLogs(directory.path());
  REQUIRE(found);
  CHECK(NamesOf(*found, directory) ==
        std::vector<std::string>{"dedicated_log_torch_trace_rank_0_abcdefgh.log",
                                 "other_out/payloads/0.txt"});
  CHECK(found->skipped.size() == 1);
  CHECK(ReasonFor(*found, "tl_out") == "it is an output directory of tlparse");
}

TEST_CASE("FindLogs looks into compressed files", "[find_logs]") {
  const TempDirectory directory;
  const std::string path = directory.path() + "/old.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  REQUIRE(file != nullptr);
  REQUIRE(gzwrite(file, kHeader.data(), static_cast<unsigned>(kHeader.size())) > 0);
  REQUIRE(gzclose(file) == Z_OK);
  directory.Write("broken.gz", "\x1f\x8b\x08garbage");
  const auto found = FindLogs(directory.path());
  REQUIRE(found);
  CHECK(NamesOf(*found, directory) == std::vector<std::string>{"old.gz"});
  CHECK(found->skipped.size() == 1);
}

TEST_CASE("FindLogs takes a file and standard input as they are", "[find_logs]") {
  const TempDirectory directory;
  const std::string path = directory.Write("whatever", "no trace at all");
  const auto file = FindLogs(path);
  REQUIRE(file);
  REQUIRE(file->logs.size() == 1);
  CHECK(file->logs[0].path == path);
  CHECK(file->logs[0].size_bytes == 15);
  const auto standard_input = FindLogs("-");
  REQUIRE(standard_input);
  CHECK(standard_input->logs.at(0).path == "-");
  CHECK(standard_input->logs.at(0).size_bytes == -1);
  const auto missing = FindLogs(directory.path() + "/missing");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
}

TEST_CASE("LatestLog is the trace modified last", "[find_logs]") {
  const TempDirectory directory;
  const auto none = LatestLog(directory.path());
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::kNotFound);
  const std::string a = directory.Write("dedicated_log_torch_trace_aaaaaaaa.log", kHeader);
  const std::string b = directory.Write("below/dedicated_log_torch_trace_bbbbbbbb.log", kHeader);
  const std::string c = directory.Write("notes.txt", "newer, but no trace");
  const auto now = fs::last_write_time(a);
  fs::last_write_time(b, now - std::chrono::hours(1));
  fs::last_write_time(c, now + std::chrono::hours(1));
  CHECK(LatestLog(directory.path()) == a);
  fs::last_write_time(b, now + std::chrono::minutes(1));
  CHECK(LatestLog(directory.path()) == b);
}

}  // namespace
}  // namespace tlparse

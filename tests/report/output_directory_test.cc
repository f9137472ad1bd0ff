#include "report/output_directory.h"

#include <filesystem>

#include "tests/base/temp_directory.h"
#include "tests/catch2.h"
#include "tests/report/report_fixture.h"

namespace tlparse {
namespace {

namespace fs = std::filesystem;

TEST_CASE("output directory: made with its parents and marked") {
  const TempDirectory temp;
  REQUIRE(CreateOutputDirectory(temp.path() + "/a/b/out", false));
  CHECK(fs::exists(temp.path() + "/a/b/out/" + std::string(kMarkerFileName)));
  CHECK(OpenOutputDirectory(temp.path() + "/a/b/out"));
  CHECK_FALSE(OpenOutputDirectory(temp.path() + "/a/b"));
}

TEST_CASE("output directory: an existing one needs overwrite") {
  const TempDirectory temp;
  const std::string path = temp.path() + "/out";
  REQUIRE(CreateOutputDirectory(path, false));
  temp.Write("out/-_0_0_0/old.txt", "old");
  const auto again = CreateOutputDirectory(path, false);
  REQUIRE_FALSE(again);
  CHECK(again.error().code == ErrorCode::kRefused);
  CHECK(fs::exists(path + "/-_0_0_0/old.txt"));
  REQUIRE(CreateOutputDirectory(path, true));
  CHECK(FilesBelow(path) == std::set<std::string>{std::string(kMarkerFileName)});
}

TEST_CASE("output directory: nothing foreign is deleted") {
  const TempDirectory temp;
  temp.Write("mine/letter.txt", "dear");
  const auto refused = CreateOutputDirectory(temp.path() + "/mine", true);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kRefused);
  CHECK(ReadFile(temp.path() + "/mine/letter.txt") == "dear");
  CHECK_FALSE(CreateOutputDirectory(temp.path() + "/mine/letter.txt", true));
  // A marker that is a link proves nothing.
  fs::create_symlink("letter.txt", temp.path() + "/mine/" + std::string(kMarkerFileName));
  CHECK_FALSE(CreateOutputDirectory(temp.path() + "/mine", true));
  CHECK(ReadFile(temp.path() + "/mine/letter.txt") == "dear");
}

TEST_CASE("output directory: links inside are removed, not followed") {
  const TempDirectory temp;
  temp.Write("mine/letter.txt", "dear");
  REQUIRE(CreateOutputDirectory(temp.path() + "/out", false));
  fs::create_directory_symlink(temp.path() + "/mine", temp.path() + "/out/rank_0");
  REQUIRE(CreateOutputDirectory(temp.path() + "/out", true));
  CHECK(ReadFile(temp.path() + "/mine/letter.txt") == "dear");
  CHECK_FALSE(fs::exists(fs::symlink_status(temp.path() + "/out/rank_0")));
}

TEST_CASE("output directory: an empty one may be used") {
  const TempDirectory temp;
  fs::create_directory(temp.path() + "/out");
  CHECK_FALSE(CreateOutputDirectory(temp.path() + "/out", false));
  CHECK(CreateOutputDirectory(temp.path() + "/out", true));
}

TEST_CASE("output directory: only single names, no links, no second file of a name") {
  const TempDirectory temp;
  const auto directory = CreateOutputDirectory(temp.path() + "/out", false);
  REQUIRE(directory);
  for (const std::string_view name :
       {std::string_view(""), std::string_view("."), std::string_view(".."),
        std::string_view("a/b"), std::string_view("/etc"), std::string_view("a\0b", 3)}) {
    CAPTURE(name);
    CHECK_FALSE(directory->CreateFile(name));
    CHECK_FALSE(directory->Child(name));
  }
  fs::create_directory_symlink(temp.path(), temp.path() + "/out/link");
  fs::create_symlink(temp.path() + "/elsewhere", temp.path() + "/out/file");
  CHECK_FALSE(directory->Child("link"));
  CHECK_FALSE(directory->CreateFile("file"));
  CHECK_FALSE(fs::exists(temp.path() + "/elsewhere"));
  CHECK(directory->CreateFile("twice"));
  CHECK_FALSE(directory->CreateFile("twice"));
}

TEST_CASE("file writer: small, large and restarted files") {
  const TempDirectory temp;
  const auto directory = CreateOutputDirectory(temp.path() + "/out", false);
  REQUIRE(directory);
  FileWriter writer;
  REQUIRE(writer.Open(*directory, "large"));
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    const std::string piece(static_cast<std::size_t>(i % 700), static_cast<char>('a' + i % 26));
    writer.Append(piece);
    writer.Append('\n');
    expected += piece + '\n';
  }
  const std::string huge(1 << 20, 'z');
  writer.Append(huge);
  REQUIRE(writer.Close());
  CHECK(ReadFile(temp.path() + "/out/large") == expected + huge);
  REQUIRE(writer.Open(*directory, "restarted"));
  writer.Append(huge);
  writer.Restart();
  writer.Append("short");
  REQUIRE(writer.Close());
  CHECK(ReadFile(temp.path() + "/out/restarted") == "short");
}

}  // namespace
}  // namespace tlparse

#include "import/follower.h"

#include <filesystem>

#include "base/file_system.h"
#include "tests/import/import_log_file.h"

using namespace tlparse;  // NOLINT: a test

namespace {

const std::string kOneRecord = RecordText("one"), kOtherRecord = RecordText("two");

constexpr char kTexts[] =
    "SELECT p.content FROM record r JOIN payload p ON p.hash = r.payload_hash ORDER BY r.id";

FoundLog Log(const std::string& path) { return {path, {}, -1, {}}; }

}  // namespace

TEST_CASE("Types of network file systems, and of local ones", "[follower]") {
  for (const std::uint32_t type : {0x6969U, 0xff534d42U, 0x65735546U, 0x0bd00bd0U})
    CHECK(IsNetworkFileSystem(type));
  for (const std::uint32_t type : {0xef53U, 0x58465342U, 0x9123683eU, 0x01021994U, 0x794c7630U})
    CHECK_FALSE(IsNetworkFileSystem(type));  // ext4, XFS, Btrfs, tmpfs, overlayfs
  CHECK_FALSE(IsOnNetwork("/no/such/directory"));
}

TEST_CASE("Others read what each step has committed, with and without a write-ahead log",
          "[follower]") {
  const bool is_on_network = GENERATE(false, true);
  Ingest ingest;
  const std::string path = ingest.Write("a.log", kOneRecord);
  auto follower = Follower::Open({ingest.database_path, "run", is_on_network});
  REQUIRE(follower);
  REQUIRE((*follower)->Add(Log(path)));
  REQUIRE((*follower)->Step());
  CHECK(std::filesystem::exists(ingest.database_path + "-wal") != is_on_network);
  CHECK(ingest.Rows(kTexts) == Lines{"one"});
  ingest.Write("a.log", kOneRecord + kOtherRecord);
  REQUIRE((*follower)->Step());
  CHECK(ingest.Rows(kTexts) == Lines{"one", "two"});
  CHECK_FALSE(std::filesystem::exists(ingest.database_path + "-journal"));
  REQUIRE((*follower)->Finish());
  CHECK((*follower)->Holds(Log(path)));
  ingest.Write("a.log", kOneRecord + kOtherRecord + kOneRecord);
  CHECK_FALSE((*follower)->Holds(Log(path)));
}

TEST_CASE("A log is begun when its first bytes are there", "[follower]") {
  Ingest ingest;
  const std::string path = ingest.Write("a.log", std::string(kOneRecord.size(), '\0'));
  PayloadIndex index(ingest.directory.path());
  ReadShared shared{&index, 1, 1, nullptr};
  GrowingLog log(Log(path), true);
  CHECK(log.Look(0) == LogChange::kGrown);
  CHECK_FALSE(*log.Begin(shared, true));
  CHECK_FALSE(log.is_begun());
  ingest.Write("a.log", kOneRecord);
  CHECK(log.Look(1) == LogChange::kGrown);
  CHECK(*log.Begin(shared, true));
  CHECK(log.is_begun());
}

TEST_CASE("A smaller size that is seen for less than a second changes nothing", "[follower]") {
  Ingest ingest;
  const std::string path = ingest.Write("a.log", kOneRecord + kOtherRecord);
  PayloadIndex index(ingest.directory.path());
  ReadShared shared{&index, 1, 1, nullptr};
  GrowingLog::Tools tools{shared};
  GrowingLog log(Log(path), true);
  constexpr std::int64_t kSecond = 1'000'000;
  CHECK(log.Look(0) == LogChange::kGrown);
  REQUIRE(*log.Begin(shared, true));
  Window window;
  while (*log.Next(window, tools)) {
  }
  CHECK(log.Look(kSecond) == LogChange::kNone);
  // In the same file: the bytes come back
  std::filesystem::resize_file(path, kOneRecord.size());
  CHECK(log.Look(2 * kSecond) == LogChange::kNone);
  CHECK(log.Look(2 * kSecond + 900'000) == LogChange::kNone);
  std::filesystem::resize_file(path, kOneRecord.size() + kOtherRecord.size());
  ingest.Write("a.log", kOneRecord + kOtherRecord);
  CHECK(log.Look(3 * kSecond) == LogChange::kNone);
  // They do not
  std::filesystem::resize_file(path, kOneRecord.size());
  CHECK(log.Look(4 * kSecond) == LogChange::kNone);
  CHECK(log.Look(5 * kSecond) == LogChange::kRewritten);
  // Gone
  log.Restart();
  std::filesystem::remove(path);
  CHECK(log.Look(6 * kSecond) == LogChange::kNone);
  CHECK(log.Look(7 * kSecond) == LogChange::kGone);
}

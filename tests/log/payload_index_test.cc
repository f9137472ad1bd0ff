#include "log/payload_index.h"

#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <vector>

#include "tests/base/temp_directory.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

using Entry = PayloadIndex::Entry;

Md5Digest RandomDigest(std::mt19937_64& random) {
  const std::uint64_t halves[2] = {random(), random()};
  Md5Digest digest;
  std::memcpy(digest.data(), halves, sizeof(halves));
  return digest;
}

bool IsSame(const Entry& a, const Entry& b) {
  return a.md5 == b.md5 && a.fingerprint == b.fingerprint && a.id == b.id;
}

// What an index should hold; std::map orders digests as memcmp does.
struct Model {
  std::map<Md5Digest, Entry> existing, inserted;

  void RequireFound(PayloadIndex& index, std::mt19937_64& random) const {
    REQUIRE(index.size() == existing.size() + inserted.size());
    for (const auto& entries : {existing, inserted}) {
      for (const auto& [md5, entry] : entries) {
        const auto found = index.Find(md5);
        if (!found || !IsSame(*found, entry)) FAIL("entry " << entry.id << " is lost");
      }
    }
    for (int i = 0; i < 1000; ++i) {
      if (index.Find(RandomDigest(random))) FAIL("found what was never inserted");
    }
  }

  // Ends the index.
  void RequireEqual(PayloadIndex& index, std::mt19937_64& random) const {
    RequireFound(index, random);
    auto expected = inserted.begin();
    REQUIRE(index.ForEachSorted([&](const Entry& entry) {
      if (expected == inserted.end() || !IsSame(entry, expected->second)) FAIL("wrong order");
      ++expected;
    }));
    CHECK(expected == inserted.end());
  }
};

TEST_CASE("PayloadIndex agrees with std::map from one table to many spilled runs",
          "[payload_index]") {
  const TempDirectory directory;
  std::mt19937_64 random(3);
  for (const std::size_t max_table_bytes :
       {std::size_t{0}, std::size_t{1} << 12, std::size_t{1} << 16, std::size_t{64} << 20}) {
    PayloadIndex index(directory.path(), max_table_bytes);
    Model model;
    model.RequireFound(index, random);
    for (std::uint32_t id = 1; id <= 5000; ++id) {
      const Entry entry{RandomDigest(random), random() % 3 == 0 ? 0 : random(), id};
      REQUIRE(!index.Find(entry.md5));
      REQUIRE(index.Insert(entry));
      model.inserted[entry.md5] = entry;
      if (id % 1237 == 0) model.RequireFound(index, random);
    }
    model.RequireEqual(index, random);
    // Nothing is left behind in the directory, not even while it is in use.
    CHECK(std::filesystem::is_empty(directory.path()));
  }
}

TEST_CASE("PayloadIndex finds the entries of an existing database but does not repeat them",
          "[payload_index]") {
  const TempDirectory directory;
  std::mt19937_64 random(4);
  PayloadIndex index(directory.path(), 1 << 12);
  Model model;
  REQUIRE(index.AddSortedRun([](Entry&) { return false; }));
  for (std::uint32_t id = 1; id <= 1000; ++id) {
    const Entry entry{RandomDigest(random), 0, id};
    model.existing[entry.md5] = entry;
  }
  auto next = model.existing.begin();
  REQUIRE(index.AddSortedRun([&](Entry& entry) {
    if (next == model.existing.end()) return false;
    entry = (next++)->second;
    return true;
  }));
  model.RequireFound(index, random);
  for (std::uint32_t id = 1001; id <= 2000; ++id) {
    const Entry entry{RandomDigest(random), random(), id};
    REQUIRE(index.Insert(entry));
    model.inserted[entry.md5] = entry;
  }
  model.RequireEqual(index, random);

  bool is_first = true;
  const auto unsorted = index.AddSortedRun([&](Entry& entry) {
    entry.md5 = {static_cast<std::uint8_t>(is_first ? 9 : 8)};
    return std::exchange(is_first, false);
  });
  CHECK(unsorted);  // one entry is in order
  int count = 0;
  const auto descending = index.AddSortedRun([&](Entry& entry) {
    entry.md5 = {static_cast<std::uint8_t>(9 - count)};
    return count++ < 2;
  });
  REQUIRE_FALSE(descending);
  CHECK(descending.error().code == ErrorCode::kInternal);
  CHECK(!index.Find({8}));
}

TEST_CASE("PayloadIndex keeps apart digests that share their first or last half",
          "[payload_index]") {
  const TempDirectory directory;
  std::mt19937_64 random(5);
  for (const bool share_first : {true, false}) {
    PayloadIndex index(directory.path(), 1 << 15);
    Model model;
    for (std::uint32_t id = 1; id <= 4000; ++id) {
      Entry entry{RandomDigest(random), random(), id};
      std::fill_n(entry.md5.begin() + (share_first ? 0 : 8), 8, std::uint8_t{0xff});
      if (id == 1) entry.md5 = {};
      REQUIRE(index.Insert(entry));
      model.inserted[entry.md5] = entry;
    }
    model.RequireEqual(index, random);
  }
}

TEST_CASE("PayloadIndex reports a full disk and keeps what it holds", "[payload_index]") {
  std::mt19937_64 random(6);
  PayloadIndex nowhere("/nonexistent/directory", 0);
  Model model;
  Result<void> result;
  for (std::uint32_t id = 1; result && id <= 100; ++id) {
    const Entry entry{RandomDigest(random), random(), id};
    result = nowhere.Insert(entry);
    if (result) model.inserted[entry.md5] = entry;
  }
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kIo);
  CHECK_FALSE(nowhere.AddSortedRun([](Entry&) { return false; }));
  model.RequireEqual(nowhere, random);

  // A limit on the size of files stands for a full disk.
  const TempDirectory directory;
  PayloadIndex index(directory.path(), 1 << 20);
  rlimit old_limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  const rlimit small{1 << 16, old_limit.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  model = {};
  result = {};
  for (std::uint32_t id = 1; result && id <= 100'000; ++id) {
    const Entry entry{RandomDigest(random), random(), id};
    result = index.Insert(entry);
    if (result) model.inserted[entry.md5] = entry;
  }
  CHECK_FALSE(result);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  model.RequireFound(index, random);
  const Entry entry{RandomDigest(random), 1, 100'001};
  REQUIRE(index.Insert(entry));
  model.inserted[entry.md5] = entry;
  model.RequireEqual(index, random);
}

}  // namespace
}  // namespace tlparse

#include "store/query.h"

#include "enums/profile.h"
#include "queries/query_test.h"
#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

using namespace tlparse;  // NOLINT: a test

namespace {

struct QueryDatabase : ScratchDatabase {
  QueryDatabase() {
    const Result<void> made = database.Execute(
        "INSERT INTO run (id, uuid, name, created_at, tool_version) VALUES (1, 'u', 'r', 't', 'v');"
        "INSERT INTO profile (id, run_id, path, kind, rank, event_count, kept_count, "
        "clock_offset_us, host, size_bytes, compression, content_hash) VALUES "
        "(1, 1, 'a.json', 'kineto', 3, 10, 5, 0, 'h', 1, 'none', 'x'), "
        "(2, 1, 'b.json', 'nsys', NULL, 20, 5, 0, NULL, 1, 'none', 'y');"
        "INSERT INTO compiled_slice_row (id, profile_id, kind, start_ns, duration_ns) VALUES "
        "(1, 1, 0, 1500, 1), (2, 1, 3, 2500, 1)");
    if (!made) throw std::runtime_error(made.error().message);
  }
};

Result<Lines> Profiles(Database& database, TestProfile::Parameters parameters) {
  Lines lines;
  FOR_EACH_ROW(const TestProfile& row, Query<TestProfile>(database, parameters)) {
    if (row.id == 7) continue;
    lines.push_back(std::string(row.path) + " " + (row.rank ? std::to_string(*row.rank) : "-") +
                    " " + std::to_string(row.twice) + " " + std::to_string(row.rank_or_zero) + " " +
                    std::string(row.host.value_or("NULL")) + (row.is_unranked ? " unranked" : ""));
  }
  return lines;
}

Result<std::int64_t> SumUntilError(Database& database) {
  std::int64_t sum = 0;
  FOR_EACH_ROW(const TestFails& row, Query<TestFails>(database)) sum += row.number;
  return sum;
}

}  // namespace

TEST_CASE("Rows are read by name", "[query]") {
  QueryDatabase scratch;
  CHECK(*Profiles(scratch.database, {.run_id = 1, .only = "1"}) ==
        Lines{"a.json 3 20 3 h", "b.json - 40 0 NULL unranked"});
  CHECK(*Profiles(scratch.database, {.run_id = 1, .kind = "nsys", .only = "p.id > 0"}) ==
        Lines{"b.json - 40 0 NULL unranked"});
  CHECK(Profiles(scratch.database, {.run_id = 1, .only = "nothing"}).error().code ==
        ErrorCode::kDatabase);
}

TEST_CASE("Lists, enums and prepared queries", "[query]") {
  QueryDatabase scratch;
  auto slices = PreparedQuery<TestSlices>::Make(scratch.database);
  REQUIRE(slices);
  const auto read = [&](std::vector<std::int64_t> ids,
                        std::vector<std::string> kinds) -> Result<Lines> {
    Lines lines;
    FOR_EACH_ROW(const TestSlices& row, slices->Run({.ids = ids, .kinds = kinds})) {
      lines.push_back(std::string(Name(row.kind)) + " " + std::to_string(row.start_us));
      if (row.id == 1 && ids.size() == 1) break;
    }
    return lines;
  };
  CHECK(*read({1, 2}, {"graph_call", "backward"}) ==
        Lines{"graph_call 1.500000", "backward 2.500000"});
  CHECK(*read({1}, {"graph_call", "backward"}) == Lines{"graph_call 1.500000"});
  CHECK(*read({2}, {"graph_call"}) == Lines{});
  CHECK(*read({1, 2}, {"it's"}) == Lines{});
}

TEST_CASE("An outer join makes numbers optional", "[query]") {
  static_assert(std::is_same_v<decltype(TestOfViews::problem), std::int64_t>);
  static_assert(std::is_same_v<decltype(TestOfViews::launch), std::optional<std::int64_t>>);
  QueryDatabase scratch;
  auto first = First(Query<TestJoined>(scratch.database));
  REQUIRE(first);
  REQUIRE(*first);
  CHECK((*first)->start_ns == 1500);
  const std::int64_t id = (*first)->id;  // of the left side
  CHECK(id == 1);
  const std::optional<CompiledSliceKind> kind = (*first)->kind;
  CHECK(kind == CompiledSliceKind::kGraphCall);
}

TEST_CASE("Commands take parameters by name", "[query]") {
  QueryDatabase scratch;
  REQUIRE(Execute<TestRename>(scratch.database, {.id = 2, .path = std::string("c.json")}));
  CHECK(scratch.Rows("SELECT path FROM profile ORDER BY id") == Lines{"a.json", "c.json"});
}

TEST_CASE("An error between rows returns from the loop's function", "[query]") {
  QueryDatabase scratch;
  const Result<std::int64_t> sum = SumUntilError(scratch.database);
  REQUIRE_FALSE(sum);
  CHECK(sum.error().message.find("integer overflow") != std::string::npos);
}

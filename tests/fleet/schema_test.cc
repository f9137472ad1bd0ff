// The fleet's tables follow from those of the database.
#include "fleet/fleet_schema.h"
#include "fleet/push_log.h"
#include "fleet/run_selection.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

std::vector<std::string> Names(const FleetTable& table) {
  std::vector<std::string> names;
  for (const FleetColumn& column : table.columns) names.push_back(column.name);
  return names;
}

bool Has(const FleetTable& table, const std::string& column) {
  const std::vector<std::string> names = Names(table);
  return std::find(names.begin(), names.end(), column) != names.end();
}

TEST_CASE("Every id of the schema is a reference that a pull can translate") {
  const auto unexplained = UnexplainedIds();
  REQUIRE(unexplained);
  // A column that is listed here wants "REFERENCES …" in schemas/sql, or a line in kUndeclared or
  // kIdsOfTheLog of fleet_schema.cc.
  CHECK(*unexplained == std::vector<std::string>{});
}

TEST_CASE("Tables: what is a fact, a content, a pool") {
  const Result<FleetSchema> schema = MakeFleetSchema();
  REQUIRE(schema);
  const auto kind = [&](const char* name) {
    const FleetTable* table = schema->Find(name);
    REQUIRE(table != nullptr);
    return table->kind;
  };
  for (const char* fact :
       {"run", "log_file", "process", "compile", "graph", "record", "cache_event", "graph_break",
        "recompile", "collective_use", "output_code", "attempt"})
    CHECK(kind(fact) == FleetTable::Kind::kFact);
  for (const char* content :
       {"collective", "graph_node", "guard", "kernel", "kernel_node", "kernel_source",
        "node_mapping", "op", "op_estimate", "triton_kernel"})
    CHECK(kind(content) == FleetTable::Kind::kContent);
  for (const char* pool : {"text", "content", "stack_frame", "cache_key", "payload_content"})
    CHECK(kind(pool) == FleetTable::Kind::kPool);
  for (const char* own : {"payload", "component", "compile_record", "import_code"})
    CHECK(schema->Find(own) == nullptr);
}

TEST_CASE("Columns: strings in place, hashes beside ids, the process of every row") {
  const Result<FleetSchema> schema = MakeFleetSchema();
  REQUIRE(schema);
  const FleetTable& event = *schema->Find("cache_event");
  for (const char* column :
       {"layer", "bypass_reason", "component_set_id", "component_set_hash", "process_id",
        "process_rank", "function", "label", "direction", "lookup_ordinal"})
    CHECK(Has(event, column));
  CHECK_FALSE(Has(event, "layer_id"));
  const FleetTable& kernel = *schema->Find("kernel");
  CHECK(Has(kernel, "id"));
  CHECK_FALSE(Has(kernel, "content_id"));
  CHECK(Has(*schema->Find("record"), "payload_content_hash"));
}

TEST_CASE("Tables that others refer to come first") {
  const Result<FleetSchema> schema = MakeFleetSchema();
  REQUIRE(schema);
  std::vector<std::string> order;
  for (const FleetTable& table : schema->tables) order.push_back(table.name);
  const auto place = [&](const char* name) { return std::find(order.begin(), order.end(), name); };
  CHECK(place("log_file") < place("process"));
  CHECK(place("process") < place("compile"));
  CHECK(place("compile") < place("graph"));
  CHECK(place("graph") < place("cache_event"));
  CHECK(place("kernel") < place("kernel_node"));
}

TEST_CASE("Statements: what an old server does not know is for new ones") {
  const Result<FleetSchema> schema = MakeFleetSchema();
  REQUIRE(schema);
  const auto old_tables = TableDefinitions(*schema, {18}, 400);
  const auto new_tables = TableDefinitions(*schema, {25}, 400);
  REQUIRE((old_tables && new_tables));
  REQUIRE(old_tables->size() == new_tables->size());
  for (std::size_t i = 0; i < old_tables->size(); ++i) {
    const std::string sql = CreateStatement((*old_tables)[i], "fleet");
    for (const char* word : {"LowCardinality", "CODEC", "TTL"})
      CHECK(sql.find(word) == std::string::npos);
    CHECK((*old_tables)[i].columns.size() == (*new_tables)[i].columns.size());
  }
}

TEST_CASE("Ranks: lists and what is none") {
  CHECK(ParseRankRanges("0-63,128").value() == RankRanges{{0, 63}, {128, 128}});
  CHECK(ParseRankRanges("").value().empty());
  for (const char* wrong : {"a", "1-", "-1", "3-1", "1,", "1;2", "1-2-3", "99999999999999999999"})
    CHECK_FALSE(ParseRankRanges(wrong));
}

PushRow Load(std::uint64_t id, std::vector<Hash128> logs) {
  PushRow row;
  row.load_id = id;
  row.version = id;
  row.host = "a";
  row.log_hashes = std::move(logs);
  for (std::size_t i = 0; i < row.log_hashes.size(); ++i)
    row.log_paths.push_back("log" + std::to_string(row.log_hashes[i].high));
  return row;
}

TEST_CASE("Loads: the latest row counts, and what a live load replaces does not") {
  PushRow first = Load(1, {{1, 1}});
  PushRow second = Load(2, {{2, 1}});
  second.replaces = {1};
  const auto ids = [](const std::vector<PushRow>& rows) {
    std::vector<std::uint64_t> found;
    for (const PushRow& row : LiveLoads(rows)) found.push_back(row.load_id);
    return found;
  };
  CHECK(ids({first}) == std::vector<std::uint64_t>{1});
  CHECK(ids({first, second}) == std::vector<std::uint64_t>{2});
  PushRow withdrawn = second;
  withdrawn.state = PushRow::kWithdrawn;
  withdrawn.version = 9;
  CHECK(ids({withdrawn, first, second}) == std::vector<std::uint64_t>{1});
}

TEST_CASE("Logs of two loads: the same, grown, apart, mixed") {
  const PushRow mine = Load(9, {{1, 1}, {1, 2}});  // {low, high}: log 1 and log 2
  CHECK(CompareLogs(mine, {Load(1, {{1, 1}, {1, 2}})}).is_there);
  CHECK(CompareLogs(mine, {Load(1, {{1, 2}, {1, 1}})}).is_there);
  const Overlap apart = CompareLogs(mine, {Load(1, {{1, 3}})});
  CHECK((!apart.is_there && apart.replaced.empty() && apart.conflict.empty()));
  // Another state of log 2 under the same path of the same host.
  CHECK(CompareLogs(mine, {Load(1, {{5, 2}})}).replaced == std::vector<std::uint64_t>{1});
  CHECK(CompareLogs(mine, {Load(1, {{1, 1}})}).replaced == std::vector<std::uint64_t>{1});
  CHECK_FALSE(CompareLogs(mine, {Load(1, {{1, 1}, {1, 3}})}).conflict.empty());
  PushRow elsewhere = Load(1, {{5, 2}});
  elsewhere.host = "b";
  CHECK(CompareLogs(mine, {elsewhere}).replaced.empty());
}

}  // namespace
}  // namespace tlparse

#include "store/row_batch.h"

#include "rows/core.h"
#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

namespace {

template <typename Row>
concept CanLeaveOutId = requires {
  Row{.text = "x"};
};
template <typename Row>
concept CanBeComplete = requires {
  Row{.id = 1, .text = "x"};
};

}  // namespace

TEST_CASE("A table has one id however often it is asked for", "[row_batch]") {
  TableSet tables;
  const TableId a = tables.Use("a", 2);
  const TableId b = tables.Use("b", 3);
  CHECK(a != b);
  CHECK(tables.Use("a", 2) == a);
  CHECK(tables.tables().size() == 2);
  CHECK(tables.tables()[b].columns == 3);
}

TEST_CASE("Values become cells: text is copied, static text is not", "[row_batch]") {
  enum class Colour : std::uint8_t { kRed = 3 };
  TableSet tables;
  const TableId table = tables.Use("t", 7);
  RowBatch rows(tables);
  std::string text = "copied";
  const std::string own = "static";
  rows.Add(table, text, StaticText{own}, StaticAny{own, false}, std::optional<double>(0.5),
           std::optional<std::string_view>(), Colour::kRed, false);
  text = "changed";
  const std::vector<Cell>& cells = rows.cells(table);
  REQUIRE(cells.size() == 7);
  CHECK(std::string_view(cells[0].bytes, cells[0].size) == "copied");
  CHECK(cells[1].bytes == own.data());
  CHECK(cells[1].type == Cell::Type::kText);
  CHECK(cells[2].type == Cell::Type::kBlob);
  CHECK(cells[3].real == 0.5);
  CHECK(cells[4].type == Cell::Type::kNull);
  CHECK(cells[5].integer == 3);
  CHECK(cells[6].type == Cell::Type::kInt);
  CHECK(cells[6].integer == 0);
  rows.Clear();
  CHECK(rows.cells(table).empty());
}

TEST_CASE("Members of a row become cells in the order of the columns", "[row_batch]") {
  TableSet tables;
  const TableId table = tables.Use<StackFrameRow>();
  CHECK(tables.Use<StackFrameRow>() == table);
  CHECK(tables.tables()[table].name == "stack_frame");
  RowBatch rows(tables);
  const std::string own = "static";
  std::string copied = "copied";
  rows.Add(StackFrameRow{.id = 7, .file = copied, .line = 3, .function = StaticText{own}});
  copied = "changed";
  const std::vector<Cell>& cells = rows.cells(table);
  REQUIRE(cells.size() == 6);
  CHECK(cells[0].integer == 7);
  CHECK(cells[1].type == Cell::Type::kNull);
  CHECK(std::string_view(cells[2].bytes, cells[2].size) == "copied");
  CHECK(cells[3].integer == 3);
  CHECK(cells[4].bytes == own.data());
  CHECK(cells[5].type == Cell::Type::kNull);
}

TEST_CASE("A column that is NOT NULL cannot be left out", "[row_batch]") {
  STATIC_REQUIRE_FALSE(CanLeaveOutId<TextRow>);
  STATIC_REQUIRE(CanBeComplete<TextRow>);
}

TEST_CASE("A row of a table that was not named is reported", "[row_batch]") {
  TableSet tables;
  tables.Use<StackFrameRow>();
  RowBatch rows(tables);
  rows.Add(TextRow{.id = 1, .text = "x"});
  CHECK(rows.unknown_table() == "text");
  rows.Clear();
  CHECK(rows.unknown_table().empty());
}

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
  const TableId a = tables.Use<TextRow>();
  const TableId b = tables.Use<StackFrameRow>();
  CHECK(a != b);
  CHECK(tables.Use<TextRow>() == a);
  CHECK(tables.Find<StackFrameRow>() == b);
  CHECK(tables.Find<ContentRow>() == TableSet::kNoTable);
  CHECK(tables.tables().size() == 2);
  CHECK(tables.tables()[b].columns.size() == 6);
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
  CHECK(rows.unknown_table() == TextRow::kTable);
  rows.Clear();
  CHECK(rows.unknown_table().empty());
}

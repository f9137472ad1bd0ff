#include "store/batch_table.h"

#include "rows/core.h"
#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

using namespace tlparse;  // NOLINT: a test
using namespace std::string_literals;

namespace {

struct AnyRow {
  std::optional<std::int64_t> a = std::nullopt;
  std::optional<RowText> b = std::nullopt;
  std::optional<StaticAny> c = std::nullopt;
  std::optional<double> d = std::nullopt;
  static constexpr std::string_view kTable = "any_row";
  static constexpr std::array<std::string_view, 4> kColumns = {"a", "b", "c", "d"};
  template <typename Visit>
  void ForEachValue(Visit&& visit) const {
    visit(a);
    visit(b);
    visit(c);
    visit(d);
  }
};
// Id: what the test calls an id, whether the table takes it or not.
template <typename Id, typename Name>
struct NameRow {
  Id id;
  Name name;
  static constexpr std::string_view kTable = "name";
  static constexpr std::array<std::string_view, 2> kColumns = {"id", "name"};
  template <typename Visit>
  void ForEachValue(Visit&& visit) const {
    visit(id);
    visit(name);
  }
};
using IdName = NameRow<std::int64_t, RowText>;
struct MissingRow : IdName {
  static constexpr std::string_view kTable = "not_there";
};
struct OtherColumnRow : IdName {
  static constexpr std::array<std::string_view, 2> kColumns = {"id", "title"};
};

struct Tables {
  ScratchDatabase scratch;
  TableSet tables;
  Tables() {
    REQUIRE(scratch.database.Execute(
        "CREATE TABLE any_row(a ANY, b ANY, c ANY, d ANY) STRICT;"
        "CREATE TABLE name(id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT"));
    tables.Use<AnyRow>();
    tables.Use<IdName>();
  }
};

}  // namespace

TEST_CASE("Rows of all types arrive in their order", "[batch_table]") {
  Tables with;
  RowBatch rows(with.tables);
  const std::string blob = "\xff\0"s;
  rows.Add(AnyRow{.a = 1, .b = "text", .d = 0.5});
  rows.Add(IdName{7, std::string_view("a\0b", 3)});
  rows.Add(AnyRow{.b = StaticText{""}, .c = StaticAny{blob, false}});
  rows.Add(AnyRow{.a = INT64_MAX, .b = std::optional<StaticText>(), .c = StaticAny{"t", true}});
  with.scratch.Insert(with.tables, rows);
  CHECK(with.scratch.Rows("SELECT quote(a), quote(b), quote(c), quote(d) FROM any_row ORDER BY "
                          "rowid") ==
        Lines{"1|'text'|NULL|0.5", "NULL|''|X'FF00'|NULL", "9223372036854775807|NULL|'t'|NULL"});
  CHECK(with.scratch.Rows("SELECT id, hex(name) FROM name") == Lines{"7|610062"});
}

TEST_CASE("A batch can be filled and inserted again and again", "[batch_table]") {
  Tables with;
  auto writer = BatchWriter::Make(with.scratch.database, with.tables);
  REQUIRE(writer);
  RowBatch rows(with.tables);
  CHECK((*writer)->Insert(rows));  // an empty one
  for (int batch = 0; batch < 3; ++batch) {
    for (int row = 0; row < 1000; ++row) rows.Add(IdName{batch * 1000 + row, std::string(50, 'x')});
    REQUIRE((*writer)->Insert(rows));
    rows.Clear();
  }
  CHECK(*with.scratch.database.QueryInt("SELECT count(*) FROM name WHERE length(name) = 50") ==
        3000);
}

TEST_CASE("Rows keep their ids, in order or not", "[batch_table]") {
  Tables with;
  auto writer = BatchWriter::Make(with.scratch.database, with.tables);
  REQUIRE(writer);
  RowBatch rows(with.tables);
  const auto insert = [&](std::initializer_list<int> ids) {
    for (const int id : ids) rows.Add(IdName{id, std::to_string(id)});
    const Result<void> inserted = (*writer)->Insert(rows);
    rows.Clear();
    return inserted.has_value();
  };
  CHECK(insert({4, 5, 6}));
  CHECK(insert({7, 8}));   // go on
  CHECK(insert({12, 9}));  // do not
  CHECK(insert({10}));     // continues from 9, which is not the greatest
  CHECK(insert({13}));
  CHECK(insert({14, 16}));    // begins as if
  CHECK_FALSE(insert({16}));  // taken
  CHECK(with.scratch.Rows("SELECT group_concat(id), sum(name <> id) FROM name") ==
        Lines{"4,5,6,7,8,9,10,12,13,14,16|0"});
  // What SQLite gives is compared with what was meant.
  CHECK(insert({17}));
  REQUIRE(with.scratch.database.Execute("DELETE FROM name WHERE id > 9"));
  CHECK_FALSE(insert({18}));
}

TEST_CASE("What SQLite refuses is an error that names the table", "[batch_table]") {
  const auto refused = [](const auto& row) {
    Tables with;
    with.tables.Use<std::remove_cvref_t<decltype(row)>>();
    RowBatch rows(with.tables);
    rows.Add(row);
    auto writer = BatchWriter::Make(with.scratch.database, with.tables);
    REQUIRE(writer);
    const Result<void> inserted = (*writer)->Insert(rows);
    REQUIRE_FALSE(inserted);
    CHECK(inserted.error().message.find("name") != std::string::npos);
    CHECK(*with.scratch.database.QueryInt("SELECT count(*) FROM name") == 0);
    return inserted.error().code;
  };
  CHECK(refused(NameRow<RowText, RowText>{"no number", "x"}) == ErrorCode::kDatabase);
  CHECK(refused(NameRow<std::int64_t, std::optional<RowText>>{1, std::nullopt}) ==
        ErrorCode::kDatabase);
}

TEST_CASE("Tables that are not there or have other columns are found before the load",
          "[batch_table]") {
  Tables with;
  TableSet missing = with.tables;
  missing.Use<MissingRow>();
  CHECK(BatchWriter::Make(with.scratch.database, missing).error().code == ErrorCode::kInternal);
  TableSet other;
  other.Use<OtherColumnRow>();
  CHECK(BatchWriter::Make(with.scratch.database, other).error().message.find("name") !=
        std::string::npos);
}

TEST_CASE("A table that has more columns takes rows as well", "[batch_table]") {
  ScratchDatabase scratch;
  REQUIRE(scratch.database.Execute(
      "DROP TABLE stack_frame;"
      "CREATE TABLE stack_frame(later TEXT, function TEXT, code TEXT, id INTEGER PRIMARY KEY, "
      "parent_id INTEGER, line INTEGER, file TEXT) STRICT"));
  TableSet tables;
  tables.Use<StackFrameRow>();
  RowBatch rows(tables);
  rows.Add(StackFrameRow{.id = 1, .file = "a.py", .line = 3});
  rows.Add(StackFrameRow{.id = 2, .parent_id = 1, .function = "f"});
  scratch.Insert(tables, rows);
  CHECK(scratch.Rows("SELECT id, parent_id, file, line, function, code, later FROM stack_frame") ==
        Lines{"1|NULL|a.py|3|NULL|NULL|NULL", "2|1|NULL|NULL|f|NULL|NULL"});
}

TEST_CASE("Rows of a table that was not named are an error", "[batch_table]") {
  ScratchDatabase scratch;
  TableSet tables;
  tables.Use<TextRow>();
  auto writer = BatchWriter::Make(scratch.database, tables);
  REQUIRE(writer);
  RowBatch rows(tables);
  rows.Add(StackFrameRow{.id = 1});
  const Result<void> inserted = (*writer)->Insert(rows);
  REQUIRE_FALSE(inserted);
  CHECK(inserted.error().message.find("stack_frame") != std::string::npos);
}

TEST_CASE("Every view of the schema can be read", "[schema]") {
  ScratchDatabase scratch;
  for (const std::string& view :
       scratch.Rows("SELECT name FROM sqlite_schema WHERE type = 'view'")) {
    INFO(view);
    CHECK(scratch.database.Prepare("SELECT * FROM \"" + view + "\""));
  }
}

#include "store/text_pool.h"

#include <set>

#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

using namespace tlparse;  // NOLINT: a test
using namespace std::string_literals;

TEST_CASE("Every distinct string has one id and one row", "[text_pool]") {
  ScratchDatabase scratch;
  TableSet tables;
  TextPool texts(tables);
  RowBatch rows(tables);
  texts.AddFixedRows(rows);
  CHECK(texts.Id(rows, "chromium_event") == kTextChromiumEvent);
  CHECK(texts.Id(rows, "artifact") == kTextArtifact);
  // Equal in size and in the bytes that the cache looks at first; long; empty; with NUL.
  std::vector<std::string> names = {
      "", "a\0b"s, "a\0c"s, std::string(119, 'l'), std::string(120, 'l'), std::string(5000, 'l')};
  for (char c = 'a'; c <= 'z'; ++c) names.push_back("x"s + c + "yyz");
  std::set<TextId> ids;
  for (const std::string& name : names) ids.insert(texts.Id(rows, name));
  CHECK(ids.size() == names.size());
  CHECK(*ids.begin() == kFirstFreeText);
  for (const std::string& name : names) CHECK(ids.contains(texts.Id(rows, name)));
  CHECK_FALSE(texts.OptionalId(rows, ""));
  scratch.Insert(tables, rows);
  CHECK(*scratch.database.QueryInt("SELECT count(*) FROM text_row WHERE id >= 33") ==
        static_cast<std::int64_t>(names.size()));
  CHECK(scratch.Rows("SELECT text FROM text_row WHERE id = 1") == Lines{"chromium_event"});
}

TEST_CASE("A string that is no text shares the id of its repaired form", "[text_pool]") {
  ScratchDatabase scratch;
  TableSet tables;
  TextPool texts(tables);
  RowBatch rows(tables);
  const TextId damaged = texts.Id(rows, "a\xff");
  CHECK(texts.Id(rows, "a\xEF\xBF\xBD") == damaged);
  CHECK(texts.Id(rows, "a\xff") == damaged);
  CHECK(texts.Id(rows, "a\xfe") == damaged);
  const TextId next = texts.Id(rows, "next");
  CHECK(next != damaged);
  scratch.Insert(tables, rows);
  CHECK(scratch.Rows("SELECT hex(text) FROM text_row ORDER BY id") ==
        Lines{"61EFBFBD", "6E657874"});
}

TEST_CASE("A pool continues where an existing database ends", "[text_pool]") {
  ScratchDatabase scratch;
  TableSet tables;
  TextPool first(tables);
  RowBatch rows(tables);
  first.AddFixedRows(rows);
  const TextId known = first.Id(rows, "known");
  scratch.Insert(tables, rows);

  TableSet tables_again;
  TextPool second(tables_again);
  RowBatch more(tables_again);
  REQUIRE(second.Load(scratch.database));
  CHECK(second.Id(more, "known") == known);
  CHECK(second.Id(more, "str") == kTextStr);
  CHECK(second.Id(more, "new") == known + 1);
  scratch.Insert(tables_again, more);  // "known" again would break the key
  CHECK(*scratch.database.QueryInt("SELECT count(*) FROM text_row WHERE id >= 33") == 2);
}

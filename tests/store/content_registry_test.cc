#include "store/content_registry.h"

#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

using namespace tlparse;  // NOLINT: a test

TEST_CASE("Content is stored once per kind and hash", "[content_registry]") {
  ScratchDatabase scratch;
  TableSet tables;
  ContentRegistry contents(tables);
  RowBatch rows(tables);
  const Hash128 one = HashBytes("one"), two = HashBytes("two");
  const ContentId first = contents.Intern(rows, ContentKind::kGraph, one, 10);
  CHECK(first.is_new);
  const ContentId again = contents.Intern(rows, ContentKind::kGraph, one, 11);
  CHECK_FALSE(again.is_new);
  CHECK(again.id == first.id);
  CHECK(contents.Intern(rows, ContentKind::kCode, one, 12).id == 2);
  CHECK(contents.Intern(rows, ContentKind::kGraph, two, 13).is_new);
  CHECK(contents.next_id() == 4);
  scratch.Insert(tables, rows);
  CHECK(scratch.Rows("SELECT id, kind, hash = '" + ToHex(one) +
                     "', record_id FROM content_row ORDER BY id") ==
        Lines{"1|graph|1|10", "2|code|1|12", "3|graph|0|13"});
}

TEST_CASE("What a payload was found to be is remembered, by kind", "[content_registry]") {
  ScratchDatabase scratch;
  TableSet tables;
  ContentRegistry contents(tables);
  RowBatch rows(tables);
  const std::int64_t id = contents.Intern(rows, ContentKind::kGraph, HashBytes("one"), 1).id;
  CHECK_FALSE(contents.OfPayload(ContentKind::kGraph, 5));
  contents.LinkPayload(rows, ContentKind::kGraph, 5, id);
  contents.LinkPayload(rows, ContentKind::kGraph, 5, id);  // once is enough
  contents.LinkPayload(rows, ContentKind::kGraph, 0, id);  // no payload, no link
  CHECK(contents.OfPayload(ContentKind::kGraph, 5) == id);
  CHECK_FALSE(contents.OfPayload(ContentKind::kCode, 5));
  CHECK_FALSE(contents.OfPayload(ContentKind::kGraph, 0));
  scratch.Insert(tables, rows);
  CHECK(scratch.Rows("SELECT payload_id, content_id FROM payload_content_row") == Lines{"5|1"});

  TableSet tables_again;
  ContentRegistry loaded(tables_again);
  RowBatch more(tables_again);
  REQUIRE(loaded.Load(scratch.database));
  CHECK(loaded.OfPayload(ContentKind::kGraph, 5) == id);
  CHECK_FALSE(loaded.OfPayload(ContentKind::kCode, 5));
  CHECK_FALSE(loaded.Intern(more, ContentKind::kGraph, HashBytes("one"), 2).is_new);
  CHECK(loaded.Intern(more, ContentKind::kGraph, HashBytes("two"), 2).id == id + 1);
}

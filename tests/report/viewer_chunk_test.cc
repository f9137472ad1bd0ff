// How a query becomes a table of the page's data.
#include "report/viewer_chunk.h"

#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

namespace tlparse {
namespace {

struct Stacks : ScratchDatabase {
  Stacks() {
    const Result<void> filled = database.Execute(
        "INSERT INTO text VALUES (101, 'a.py'), (102, 'a \"quoted\" <name>');"
        "INSERT INTO stack_frame (id, parent_id, line) VALUES (7, NULL, 70), (8, 7, 80), (9, 7, "
        "90)");
    if (!filled) throw std::runtime_error(filled.error().message);
  }
};

TEST_CASE("Numbers, texts and ids of texts become columns", "[viewer_chunk]") {
  Stacks stacks;
  ChunkWriter writer;
  REQUIRE(writer.AddTable(stacks.database, "record",
                          "SELECT column1 AS id, column2 AS share, 0 AS \"|\", column3 AS "
                          "\"file@text\", column4 AS name FROM (VALUES (1, 0.5, 101, 'x'), "
                          "(2, NULL, 102, NULL), (:first, 1, 101, 'a.py'), (4, 2, NULL, 'x'))",
                          {{":first", 3}, {":unused", 5}}));
  CHECK(writer.Finish() ==
        "{\"strings\":[\"a.py\",\"x\",\"a \\\"quoted\\\" "
        "<name>\"],\"tables\":{\"record\":{\"rows\":4,"
        "\"numbers\":{\"id\":[1,2,3,4],\"share\":[0.5,null,1,2]},"
        "\"texts\":{\"file\":[0,2,0,null],\"name\":[1,null,0,1]}}}}\n");
}

TEST_CASE("Later tables know the stacks of earlier ones", "[viewer_chunk]") {
  Stacks stacks;
  ChunkWriter writer;
  REQUIRE(writer.AddTable(stacks.database, "record",
                          "SELECT column1 AS stack_id, column2 AS user_stack_id, 0 AS \"|\" "
                          "FROM (VALUES (8, NULL), (NULL, 7), (8, 7))",
                          {}));
  const std::string frames =
      "SELECT id, line, 0 AS \"|\" FROM stack_frame WHERE id IN (SELECT value FROM "
      "json_each(:stacks)) ORDER BY id";
  REQUIRE(writer.AddTable(stacks.database, "frame", frames, {}));
  CHECK(writer.Finish().find("\"frame\":{\"rows\":2,\"numbers\":{\"id\":[7,8],\"line\":[70,80]}") !=
        std::string::npos);
  // Another document begins without any.
  REQUIRE(writer.AddTable(stacks.database, "frame", frames, {}));
  CHECK(writer.Finish().find("\"frame\":{\"rows\":0") != std::string::npos);
}

}  // namespace
}  // namespace tlparse

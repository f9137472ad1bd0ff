// How a query becomes a table of the page's data.
#include "report/viewer/chunk.h"
#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

namespace tlparse {
namespace {

struct Stacks : ScratchDatabase {
  Stacks() {
    const Result<void> filled = database.Execute(
        "INSERT INTO text_row VALUES (101, 'a.py'), (102, 'a \"quoted\" <name>');"
        "INSERT INTO stack_frame (id, parent_id, file, line) VALUES (6, NULL, NULL, 60), "
        "(7, NULL, NULL, 70), (8, 7, 'a.py', 80), (9, 7, NULL, 90)");
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

TEST_CASE("Frames are those of the stacks of earlier tables, and their callers", "[viewer_chunk]") {
  Stacks stacks;
  ChunkWriter writer;
  REQUIRE(writer.AddTable(stacks.database, "record",
                          "SELECT column1 AS stack_id, column2 AS user_stack_id, 0 AS \"|\" "
                          "FROM (VALUES (8, NULL), (NULL, 8), (6, 404))",
                          {}));
  REQUIRE(writer.AddFrames(stacks.database, "frame"));
  CHECK(writer.Finish().find(
            "\"frame\":{\"rows\":3,\"numbers\":{\"id\":[6,7,8],\"parent_id\":[null,null,7],"
            "\"line\":[60,70,80]},\"texts\":{\"file\":[null,null,0],\"function\":[null,null,null],"
            "\"code\":[null,null,null]}") != std::string::npos);
  // Another document begins without any.
  REQUIRE(writer.AddFrames(stacks.database, "frame"));
  CHECK(writer.Finish().find("\"frame\":{\"rows\":0") != std::string::npos);
}

}  // namespace
}  // namespace tlparse

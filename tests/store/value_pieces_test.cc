#include "store/value_pieces.h"

#include <string>

#include "base/utf8.h"
#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

using namespace tlparse;  // NOLINT: a test
using namespace std::string_literals;

TEST_CASE("Pieces of a value are the value, and end between its characters", "[value_pieces]") {
  ScratchDatabase scratch;
  REQUIRE(scratch.database.Execute("CREATE TABLE t(id INTEGER PRIMARY KEY, content)"));
  auto insert = scratch.database.Prepare("INSERT INTO t VALUES (?, ?)");
  REQUIRE(insert);
  std::int64_t id = 0;
  for (const std::string& unit :
       {"a"s, "\xc3\xa4"s, "\xe2\x80\xa8"s, "\xf0\x9f\x94\xa5"s, "\x80"s, "\xe2\x80"s, "\0\xff"s}) {
    for (std::size_t shift = 0; shift < 4; ++shift) {
      std::string content(shift, '.');
      while (content.size() < 600'000) content += unit;
      IsTextSafe(content) ? insert->Bind(2, std::string_view(content))
                          : insert->BindBlob(2, content);
      insert->Bind(1, ++id);
      REQUIRE(insert->Run());
      std::string whole;
      std::string sanitized;
      std::size_t largest = 0;
      REQUIRE(ReadInPieces(scratch.database, "t", "content", id, [&](std::string_view piece) {
        whole += piece;
        sanitized += SanitizeUtf8(piece);
        largest = std::max(largest, piece.size());
      }));
      CHECK(whole == content);
      CHECK(sanitized == SanitizeUtf8(content));
      CHECK(largest <= 256 << 10);
    }
  }
}

TEST_CASE("An empty value has no piece, a missing row is an error", "[value_pieces]") {
  ScratchDatabase scratch;
  REQUIRE(scratch.database.Execute(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, content); INSERT INTO t VALUES (1, '')"));
  std::string whole;
  const auto add = [&](std::string_view piece) { whole += piece; };
  CHECK(ReadInPieces(scratch.database, "t", "content", 1, add));
  CHECK(whole.empty());
  CHECK(ReadInPieces(scratch.database, "t", "content", 2, add).error().code ==
        ErrorCode::kDatabase);
}

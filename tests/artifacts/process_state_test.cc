#include "artifacts/common/process_state.h"

#include "tests/catch2.h"

namespace tlparse {
namespace {

TEST_CASE("Labels of compile ids can be read back", "[process_state]") {
  for (const char* label : {"0/0", "12/3", "!1", "!1/0/2"}) {
    const std::optional<CompileIds> ids = CompileIds::Parse(label);
    REQUIRE(ids);
    CHECK(ids->Label() == label);
  }
  CHECK(CompileIds::Parse("3/4_1") == CompileIds::Parse("3/4"));
  CHECK(CompileIds::Parse("!2_1") == CompileIds::Parse("!2"));
  CHECK(CompileIds{std::nullopt, 5, std::nullopt}.Label() == "5/-");
}

TEST_CASE("What is no label gives nothing", "[process_state]") {
  for (const char* label : {"", "None", "!", "0", "0/", "/0", "0/0/0", "!1/2", "0/0_", "0/0_x",
                            "-1/0", "0/-1", "a/b", "0/0 ", "99999999999999999999/0"}) {
    CAPTURE(label);
    CHECK_FALSE(CompileIds::Parse(label));
  }
}

TEST_CASE("Directions have names", "[process_state]") {
  CHECK(Name(Direction::kBackward) == "backward");
  CHECK(Name(Direction::kUnknown).empty());
}

}  // namespace
}  // namespace tlparse

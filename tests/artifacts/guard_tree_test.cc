#include "artifacts/common/text/guard_tree.h"

#include <string>

#include "tests/catch2.h"

namespace tlparse {
namespace {

TEST_CASE("A guard tree's lines have depth, kind, expression and the source of the nearest manager",
          "[guard_tree]") {
  const std::vector<GuardLine> lines = ParseGuardTree(
      "\nTREE_GUARD_MANAGER:\n+- RootGuardManager\n"
      "| +- GuardManager: source=L['x'], accessed_by=DictGetItemGuardAccessor('x')\n"
      "| | +- TENSOR_MATCH: check_tensor(L['x'], size=[2])\n"
      "| +- GLOBAL_STATE: ___check_global_state()\n\nGuard latency = 1.5 us");
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].kind == "RootGuardManager");
  CHECK(lines[0].depth == 0);
  CHECK(lines[1].kind == "GuardManager");
  CHECK(lines[1].source == "L['x']");
  CHECK(lines[2].depth == 2);
  CHECK(lines[2].expression == "check_tensor(L['x'], size=[2])");
  CHECK(lines[2].source == "L['x']");
  CHECK(lines[3].source.empty());
  CHECK(lines[3].expression == "___check_global_state()");
}

TEST_CASE("The comment of a guard tells code and place", "[guard_tree]") {
  GuardLine line;
  ParseGuardComment("a == '  # no'      # x = 1  # note  # nn/m.py:134 in forward (HINT: type (a))",
                    line);
  CHECK(line.expression == "a == '  # no'");
  CHECK(line.user_code == "x = 1  # note");
  CHECK(line.user_file == "nn/m.py");
  CHECK(line.user_line == 134);
  CHECK(line.user_function == "forward");
  CHECK(line.hint == "type (a)");

  GuardLine place;
  ParseGuardComment("b  # _dynamo/output_graph.py:1181 in init_ambient_guards", place);
  CHECK(place.expression == "b");
  CHECK(place.user_code.empty());
  CHECK(place.user_line == 1181);

  GuardLine both;
  ParseGuardComment(
      "d > 0.0  # if y.item() > 0:  # user/p.py:12 in step (_dynamo/variables/tensor.py:2849 in "
      "evaluate_expr)",
      both);
  CHECK(both.user_code == "if y.item() > 0:");
  CHECK(both.user_file == "user/p.py");
  CHECK(both.user_line == 12);
  CHECK(both.user_function == "step");

  GuardLine code;
  ParseGuardComment("c  # only code", code);
  CHECK(code.expression == "c");
  CHECK(code.user_code == "only code");
  CHECK(code.user_file.empty());

  GuardLine quote;
  ParseGuardComment("it's  # x  # m.py:1 in f", quote);
  CHECK(quote.expression == "it's");
  CHECK(quote.user_line == 1);
}

TEST_CASE("Text that is no tree, and trees that are damaged, are taken as they are",
          "[guard_tree]") {
  CHECK(ParseGuardTree("").empty());
  CHECK(ParseGuardTree("no tree\n| | +\n").empty());
  const std::vector<GuardLine> deep = ParseGuardTree("| | | +- A: x\ny\n| +- \n+- B");
  REQUIRE(deep.size() == 3);
  CHECK(deep[0].depth == 3);
  CHECK(deep[0].expression == "x\ny");
  CHECK(deep[1].kind.empty());
  CHECK(deep[2].kind == "B");
  std::string nested;
  for (int depth = 0; depth < 5000; ++depth) nested += "| ";
  CHECK(ParseGuardTree(nested + "+- C: d").at(0).depth == 5000);
}

}  // namespace
}  // namespace tlparse

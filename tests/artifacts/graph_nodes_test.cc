#include "artifacts/common/graph/graph_nodes.h"

#include <memory>
#include <string>

#include "tests/catch2.h"

namespace tlparse {
namespace {

TEST_CASE("A source comment names file, line, function and code", "[graph_nodes]") {
  SourceLine source;
  REQUIRE(ParseSourceComment("# File: /home/u/a in b.py:15 in forward, code: x = f(1), code: 2",
                             source));
  CHECK(source.file == "/home/u/a in b.py");
  CHECK(source.line == 15);
  CHECK(source.function == "forward");
  CHECK(source.code == "x = f(1), code: 2");
  REQUIRE(
      ParseSourceComment("# Annotation: {'a': 1} File: C:\\m.py:3 in <lambda>, code: y ", source));
  CHECK(source.file == "C:\\m.py");
  CHECK(source.function == "<lambda>");
  CHECK(source.code == "y");
  REQUIRE(ParseSourceComment("# File: m.py:3 in f", source));
  CHECK(source.code.empty());
  CHECK_FALSE(ParseSourceComment("# No stacktrace found for following nodes", source));
  CHECK_FALSE(ParseSourceComment("# File: m.py in f, code: x", source));
  CHECK_FALSE(ParseSourceComment("# File: m.py:99999999999999999999 in f, code: x", source));
}

TEST_CASE("Statements become nodes with the source above them", "[graph_nodes]") {
  ParsedGraph graph;
  ParseGraphNodes(
      "class G(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n        l_x_ = L_x_\n"
      "         # File: m.py:1 in f, code: a\n        mm: \"f32[2, 2][2, 1]cpu\" = "
      "torch.ops.aten.mm.default(x, x);  x = None\n"
      "        add = mm + 1;  mm = None\n        # No stacktrace found for following nodes\n       "
      " s: \"Sym(s0)\" = t[0]\n"
      "        p: \"f32\"  # PlainAOTInput(idx=0)\n        return (add,)\n",
      graph);
  REQUIRE(graph.nodes.size() == 4);
  CHECK(graph.nodes[0].name == "l_x_");
  CHECK(graph.nodes[0].source == -1);
  CHECK(graph.nodes[1].operation == "torch.ops.aten.mm.default");
  CHECK(graph.nodes[1].source == 0);
  CHECK(graph.nodes[2].operation == "mm + 1");
  CHECK(graph.nodes[2].source == 0);
  CHECK(graph.nodes[3].name == "s");
  CHECK(graph.nodes[3].operation == "t[0]");
  CHECK(graph.nodes[3].source == -1);
  ParseGraphNodes("", graph);
  CHECK(graph.nodes.empty());
}

TEST_CASE("GraphNodes finds by name; the first of equal names counts", "[graph_nodes]") {
  ParsedGraph graph;
  ParseGraphNodes(
      "# File: m.py:1 in f, code: a\nb = 1\n# File: m.py:2 in f, code: c\na = 1\nb = 2\n", graph);
  const GraphNodes nodes(graph, {{1, 1, 2, 3, 4}, {1, 2, 2, 3, 5}});
  REQUIRE(nodes.Find("b") != nullptr);
  CHECK(nodes.Find("b")->line == 1);
  CHECK(nodes.Find("a")->line == 2);
  CHECK(nodes.Find("c") == nullptr);
  CHECK(nodes.Find("") == nullptr);
}

TEST_CASE("A node of a backward graph has the line that it is the backward of", "[graph_nodes]") {
  ParsedGraph graph;
  ParseGraphNodes(
      "# Backward of forward node: File: m.py:1 in f, code: a\nmul = 1\n"
      "# recompute: MUST_SAVE Backward of forward node: File: m.py:2 in f, code: b\nsum_1 = 2\n"
      "# File: m.py:3 in f, code: c\nrelu = 3\n",
      graph);
  const GraphNodes nodes(graph, {{1, 1, 2, 3, 11}, {1, 2, 2, 3, 12}, {1, 3, 2, 3, 13}});
  REQUIRE(nodes.FindBackward("mul") != nullptr);
  CHECK(nodes.FindBackward("mul")->line == 1);
  CHECK(nodes.FindBackward("sum_1")->line == 2);
  CHECK(nodes.FindBackward("relu") == nullptr);
  CHECK(nodes.Find("relu")->line == 3);
  CHECK(nodes.HasForward({1, 3, 2, 3, 13}));
  CHECK_FALSE(nodes.HasForward({1, 1, 2, 3, 11}));
}

TEST_CASE("The pool forgets the graph that was not used for longest", "[graph_nodes]") {
  ParsedGraph graph;
  ParseGraphNodes("# File: m.py:1 in f, code: a\nb = 1\n", graph);
  const auto nodes =
      std::make_shared<const GraphNodes>(graph, std::vector<GraphNodes::Source>{{1, 1, 0, 0, 0}});
  GraphNodePool pool(2 * nodes->size_bytes());
  pool.Put(1, nodes);
  pool.Put(2, nodes);
  CHECK(pool.Find(1) != nullptr);
  pool.Put(3, nodes);
  CHECK(pool.Find(2) == nullptr);
  CHECK(pool.Find(1) != nullptr);
  CHECK(pool.Find(3) != nullptr);
  CHECK(pool.Find(0) == nullptr);
}

}  // namespace
}  // namespace tlparse

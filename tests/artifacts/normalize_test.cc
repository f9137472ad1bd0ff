#include "artifacts/common/text/normalize.h"

#include <string>
#include <string_view>

#include "tests/catch2.h"

namespace tlparse {
namespace {

std::string Graph(std::string_view text) {
  std::string buffer;
  return std::string(NormalizeGraph(text, buffer));
}
std::string Code(std::string_view text) {
  std::string buffer;
  return std::string(NormalizeCode(text, buffer));
}
std::string Guards(std::string_view text) {
  std::string buffer;
  return std::string(NormalizeGuards(text, buffer));
}
std::string Runnable(std::string_view text) {
  std::string buffer;
  return std::string(NormalizeRunnable(text, buffer));
}
std::string Plain(std::string_view text) {
  std::string buffer;
  return std::string(NormalizeText(text, buffer));
}

TEST_CASE("A text without anything to remove is returned as it is, not copied", "[normalize]") {
  const std::string text =
      "def f(x_1, mul_2): 0x1f 'index=' cuda: a.b/c 3.14159265358979 (16, 1024)";
  std::string buffer = "old";
  CHECK(NormalizeText(text, buffer).data() == text.data());
  CHECK(NormalizeGraph(text, buffer).data() == text.data());
  CHECK(NormalizeGuards(text, buffer).data() == text.data());
  CHECK(NormalizeCode(text, buffer).data() == text.data());
  CHECK(NormalizeRunnable(text, buffer).data() == text.data());
  CHECK(Plain("").empty());
  CHECK(Plain("0").empty() == false);
}

TEST_CASE("Addresses go, constants of code stay", "[normalize]") {
  CHECK(Plain("<function f at 0x7f7ebed21170>") == "<function f at 0x<addr>>");
  CHECK(Plain("<f at 0x12ab>") == "<f at 0x<addr>>");
  CHECK(Plain("0x7fffffff 0xff") == "0x7fffffff 0xff");
  CHECK(Plain("a 0x55d5c8a0b2c0 b 0x55d5c8a0b2c1") == "a 0x<addr> b 0x<addr>");
  CHECK(Plain("x at 0x") == "x at 0x");
  // Too long for an address
  CHECK(Plain("sha 0x0123456789abcdef01") == "sha 0x0123456789abcdef01");
}

TEST_CASE("The benchmark at the end of generated code goes, with the sizes that it makes",
          "[normalize]") {
  const std::string code = "def call(args):\n    s27 = args[0]\n    return (s27, )\n";
  const auto with_size = [&](const char* size) {
    return code + "\n\ndef get_args():\n    primals_3 = " + size +
           "\n    return [primals_3]\n\n\ndef benchmark_compiled_module(args, times=10):\n    "
           "pass\n";
  };
  CHECK(Code(with_size("25")) == Code(with_size("31")));
  CHECK(Code(with_size("25")).starts_with(code));
  CHECK(Code(code + "\ndef benchmark_compiled_module(times=10, repeat=10):\n    s = 25\n") ==
        Code(code));
  CHECK(Code("def call():\n    get_args()\n    return 25\n") !=
        Code("def call():\n    get_args()\n    return 31\n"));
}

TEST_CASE("Hits are found at every place of a block and at the end", "[normalize]") {
  for (std::size_t before = 0; before < 40; ++before) {
    for (std::size_t after = 0; after < 20; ++after) {
      const std::string head(before, '.');
      const std::string tail(after, '.');
      CHECK(Plain(head + "0x7f7ebed21170" + tail) == head + "0x<addr>" + tail);
    }
  }
}

TEST_CASE("A device's index is replaced by its order of appearance", "[normalize]") {
  CHECK(Graph("\"f32[4, 4][4, 1]cuda:3\", device(type='cuda', index=3)") ==
        "\"f32[4, 4][4, 1]cuda:0\", device(type='cuda', index=0)");
  CHECK(Graph("cuda:1 cuda:0 cuda:1") == "cuda:0 cuda:1 cuda:0");
  CHECK(Graph("cuda:0 cuda:1") == "cuda:0 cuda:1");
  // As many digits as a job of ten thousand ranks needs
  CHECK(Graph("cuda:10239 cuda:123456") == "cuda:0 cuda:123456");
  // The processor is no device that ranks have their own of: it takes no part in the numbering.
  CHECK(Graph("xpu:5 cpu:7 mtia:5") == "xpu:0 cpu:7 mtia:0");
  CHECK(Graph("cpu:0 cuda:0") == Graph("cpu:0 cuda:3"));
  CHECK(Graph("idx=7, max=3, barracuda: 3") == "idx=7, max=3, barracuda: 3");
  CHECK(Code("with torch.cuda._DeviceGuard(3):\n    torch.cuda.set_device(3)\n    stream3 = "
             "get_raw_stream(3)\n    k.run(x, stream=stream3)\n") ==
        "with torch.cuda._DeviceGuard(0):\n    torch.cuda.set_device(0)\n    stream0 = "
        "get_raw_stream(0)\n    k.run(x, stream=stream0)\n");
  CHECK(Code("DeviceProperties(type='cuda', index=3, multi_processor_count=132)") ==
        "DeviceProperties(type='cuda', index=0, multi_processor_count=132)");
}

TEST_CASE("More devices than are remembered keep their numbers", "[normalize]") {
  std::string text;
  for (int index = 30; index > 10; --index) text += "cuda:" + std::to_string(index) + " ";
  const std::string normal = Graph(text);
  CHECK(normal.find("cuda:0 cuda:1 ") == 0);
  CHECK(normal.find("cuda:15 cuda:14 cuda:13 cuda:12 cuda:11") != std::string::npos);
}

TEST_CASE("A pre-grad graph without its id is the graph that Dynamo logged", "[normalize]") {
  CHECK(Graph("class G:\n    return (x,)\n\n\n # graph id: 140182332413936") ==
        "class G:\n    return (x,)");
  CHECK(Graph("class G:\n    return (x,)\n") == "class G:\n    return (x,)");
  CHECK(Graph("# graph id: ") == "# graph id:");
  CHECK(Graph("12") == "12");
  CHECK(Graph("# File: <eval_with_key>.17:5 in forward") ==
        "# File: <eval_with_key>.N:5 in forward");
  CHECK(Graph("g_optimizer_140329873123456_140329873120000_c5 = 1") ==
        "g_optimizer_<addr>_<addr>_c = 1");
  CHECK(Graph("a_20241121") == "a_20241121");
}

TEST_CASE("Code loses AOT id, cache paths and provenance handles", "[normalize]") {
  CHECK(Code("# AOT ID: ['12_forward']\nimport torch") == "# AOT ID: ['_forward']\nimport torch");
  CHECK(
      Code("#include "
           "\"/tmp/rt-cache/mlp/2r/c2rnilspx43ivnzu4uieul65kx65dfhfbptbh5og4wk6rqebuxoo.h\"\nx") ==
      "#include \"<cache>.h\"\nx");
  CHECK(Code("# kernel path: "
             "/tmp/torchinductor_u/ab/cabc7p7e3ivnzu4uieul65kx65dfhfbptbh5og4wk6rqebuxoo.py") ==
        "# kernel path: <cache>.py");
  CHECK(Code("torch/csrc/c10/core /xx/cab /ab/cabc") == "torch/csrc/c10/core /xx/cab /ab/cabc");
  CHECK(Code("a\n    # [Provenance debug handles] k:3\n    k(x)\n") == "a\n    k(x)\n");
  CHECK(Code("// [Provenance debug handles] k:3") == "");
  CHECK(Code("_p = None  # device(type='cpu') torch.float32 (512,) (1,) 7f169ec22990\n_q = None  # "
             "device("
             "type='cpu') torch.float32 () () 5581f6e0\n") ==
        "_p = None  # device(type='cpu') torch.float32 (512,) (1,) <addr>\n_q = None  # device("
        "type='cpu') torch.float32 () () <addr>\n");
  CHECK(Code("x = f(a) 7f169ec22990\n") == "x = f(a) 7f169ec22990\n");
  CHECK(Code("param(1) streams(2) am") == "param(1) streams(2) am");
}

TEST_CASE("Guards lose object ids with their padding, and the latency", "[normalize]") {
  CHECK(Guards("| +- TYPE_MATCH: ___check_type_id(L['x'], 129836096)    \nb") ==
        "| +- TYPE_MATCH: ___check_type_id(L['x'], <addr>)\nb");
  CHECK(Guards("+- ID_MATCH: ___check_obj_id(G['a'], 140329327543056), type=<class 'x'>  # c") ==
        "+- ID_MATCH: ___check_obj_id(G['a'], <addr>), type=<class 'x'>  # c");
  CHECK(Guards("+- ID_MATCH: "
               "___check_obj_id(G['__optimizer_140329327543056_140329327543056_c7'].x, 9472864)") ==
        "+- ID_MATCH: ___check_obj_id(G['__optimizer_<addr>_<addr>_c'].x, <addr>)");
  CHECK(Guards("+- TENSOR_MATCH: check_tensor(L['x'], size=[10000000, 10000000])") ==
        "+- TENSOR_MATCH: check_tensor(L['x'], size=[10000000, 10000000])");
  CHECK(Guards("+- EQUALS_MATCH: f(L['x'], 10000000)") == "+- EQUALS_MATCH: f(L['x'], 10000000)");
  CHECK(Guards("tree\n\nGuard latency = 129.95 us") == "tree\n\nGuard latency = ");
}

TEST_CASE("Runnables lose their environment, rank and the order of sets and settings",
          "[normalize]") {
  CHECK(Runnable("x\ntorch.b = 1\ntorch.a = 2\n\ny") == "x\ntorch.a = 2\ntorch.b = 1\n\ny");
  CHECK(Runnable("x\ntorch.b = 1") == "x\ntorch.b = 1");
  CHECK(Runnable("\nimport os\nos.environ['A'] = '/tmp/x'\nos.environ['B'] = 'y'\nimport torch") ==
        "\nimport os\nimport torch");
  CHECK(Runnable("setup({'1': {'size': 4, 'rank': 17}})") ==
        "setup({'1': {'size': 4, 'rank': 0}})");
  CHECK(Runnable("x\ntorch._dynamo.config.a = {'b', 'a'}\ny") ==
        Runnable("x\ntorch._dynamo.config.a = {'a', 'b'}\ny"));
  CHECK(Runnable("x\ntorch._dynamo.config.a = {'b', 'a'}\ny") !=
        Runnable("x\ntorch._dynamo.config.a = {'a', 'c'}\ny"));
  CHECK(Runnable("x\ntorch.a = {'b': 'c', 'a': 'd'}\ny") == "x\ntorch.a = {'b': 'c', 'a': 'd'}\ny");
}

}  // namespace
}  // namespace tlparse

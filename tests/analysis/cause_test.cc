#include "facts/cache/cause.h"

#include "facts/cache/component_index.h"
#include "facts/text/shorten.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

ComponentDifference Differs(std::string name, std::string a, std::string b) {
  ComponentDifference difference;
  difference.name = std::move(name);
  difference.a_hash = "h1";
  difference.b_hash = "h2";
  difference.a_value = std::move(a);
  difference.b_value = std::move(b);
  return difference;
}

ComponentDifference OnlyHere(std::string name, std::string value) {
  ComponentDifference difference;
  difference.name = std::move(name);
  difference.b_hash = "h2";
  difference.b_value = std::move(value);
  return difference;
}

constexpr char kTensor[] =
    "TensorMetadata(dtype=torch.float32, shape=torch.Size([8, 16]), stride=(16, 1), "
    "device=device(type='cuda', index=0), layout=torch.strided)";
constexpr char kOtherDevice[] =
    "TensorMetadata(dtype=torch.float32, shape=torch.Size([8, 16]), stride=(16, 1), "
    "device=device(type='cuda', index=5), layout=torch.strided)";
constexpr char kOtherShape[] =
    "TensorMetadata(dtype=torch.float32, shape=torch.Size([9, 16]), stride=(16, 1), "
    "device=device(type='cuda', index=5), layout=torch.strided)";

}  // namespace

TEST_CASE("an option that differs is named with both values") {
  const auto causes = FindCauses({Differs("inductor_config[max_fusion_size]", "64", "13")}, {});
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == CauseKind::kConfig);
  CHECK(causes[0].text == "inductor_config[max_fusion_size]: 64 → 13");
}

TEST_CASE("a component on one side only is a difference") {
  const auto causes = FindCauses({OnlyHere("inductor_config[new_option]", "True")}, {});
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].text == "inductor_config[new_option]: only on this side (True)");
}

TEST_CASE(
    "the device index is an expected difference; another shape on another device is the shape") {
  auto causes = FindCauses({Differs("example_inputs[0]", kTensor, kOtherDevice)}, {});
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == CauseKind::kDevice);
  CHECK(IsNote(causes[0].kind));
  causes = FindCauses({Differs("example_inputs[0]", kTensor, kOtherShape)}, {});
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == CauseKind::kInputs);
  CHECK(causes[0].text == "example_inputs[0]: shape [8, 16] → [9, 16]");
}

TEST_CASE("another build explains the options that it changed, and not the inputs") {
  std::vector<ComponentDifference> differences = {
      Differs("torch_version", "a", "b"), Differs("example_inputs[0]", kTensor, kOtherShape)};
  for (int i = 0; i < 20; ++i)
    differences.push_back(Differs("inductor_config[o" + std::to_string(i) + "]", "1", "2"));
  const auto causes = FindCauses(std::move(differences), {"2.14.1", "2.13.0", "", ""});
  REQUIRE(causes.size() == 2);
  CHECK(causes[0].kind == CauseKind::kBuild);
  CHECK(causes[0].text == "torch 2.14.1 → 2.13.0");
  CHECK(causes[0].explained.size() == 20);
  CHECK(causes[1].kind == CauseKind::kInputs);
}

TEST_CASE("constants of equal text and other hashes mean another Python") {
  std::vector<ComponentDifference> differences;
  for (const char* name : {"a", "b", "c", "d"})
    differences.push_back(Differs("inductor_config[" + std::string(name) + "]", "False", "False"));
  const auto causes = FindCauses(std::move(differences), {});
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == CauseKind::kBuild);
  CHECK(causes[0].explained.size() == 4);
}

TEST_CASE("texts, lists and dictionaries of equal text and other hashes are of one Python") {
  std::vector<ComponentDifference> differences;
  for (const char* value : {"0", "1", "[]", "{}", "()", ""})
    differences.push_back(Differs("inductor_config[" + std::string(value) + "]", value, value));
  const auto causes = FindCauses(std::move(differences), {});
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == CauseKind::kUnstable);
}

TEST_CASE("graphs that differ in the name of a process group only") {
  const auto causes =
      FindCauses({Differs("gm", "x = torch.ops._c10d_functional.all_reduce.default(y, 'sum', '1')",
                          "x = torch.ops._c10d_functional.all_reduce.default(y, 'sum', '7')")},
                 {});
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == CauseKind::kProcessGroup);
}

TEST_CASE("another graph explains other inputs; sizes alone are the inputs'") {
  auto causes = FindCauses({Differs("gm", "a = mm(x)", "a = relu(x)"),
                            Differs("example_inputs[0]", kTensor, kOtherShape)},
                           {});
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == CauseKind::kGraph);
  CHECK(causes[0].explained.size() == 1);
  causes = FindCauses({Differs("gm", "a = view(x, [8, 16])", "a = view(x, [9, 16])"),
                       Differs("example_inputs[0]", kTensor, kOtherShape)},
                      {});
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == CauseKind::kInputs);
}

TEST_CASE("expected differences have one neutral form") {
  CHECK(NeutralizeDesign("gm", "f(cuda:3, cuda:3, cuda:5)").text ==
        NeutralizeDesign("gm", "f(cuda:0, cuda:0, cuda:1)").text);
  CHECK(NeutralizeDesign("gm", "f(cuda:3, cuda:5)").text !=
        NeutralizeDesign("gm", "f(cuda:3, cuda:3)").text);
  CHECK(NeutralizeDesign("x", "/tmp/rank_3/a").has_rank_path);
  CHECK(NeutralizeDesign("x", "/tmp/rank_3/a").text ==
        NeutralizeDesign("x", "/tmp/rank_12/a").text);
  CHECK_FALSE(NeutralizeDesign("x", "index=3, rank_4").has_device);
  CHECK_FALSE(NeutralizeDesign("x", "index=3, rank_4").has_rank_path);
}

TEST_CASE("values are cut between characters") {
  CHECK(Shorten("a\nb  c", 10) == "a b c");
  CHECK(Shorten("äöü", 4) == "äö…");
}

TEST_CASE("gradients that are not needed are no option") {
  const ComponentDifference inference = Differs("fx_kwargs[is_inference]", "False", "True");
  auto causes = FindCauses({inference}, {});
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == CauseKind::kInputs);
  CHECK(causes[0].text ==
        "is_inference False → True: gradients are not needed, as under torch.no_grad()");
  // An input that requires them is why.
  causes = FindCauses({inference, Differs("example_inputs[0]", kTensor, kOtherShape)}, {});
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].text == "example_inputs[0]: shape [8, 16] → [9, 16]");
  CHECK(GradientChange(causes[0]).find("is_inference") == 0);
  // Another graph may be one without gradients, or another one.
  causes = FindCauses({inference, Differs("gm", "a", "b")}, {});
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == CauseKind::kGraph);
  CHECK(!GradientChange(causes[0]).empty());
}

}  // namespace tlparse

// Texts of changes: what differs is in them, whatever their length.
#include "facts/text/text_diff.h"

#include "facts/contents/code_difference.h"
#include "tests/catch2.h"

namespace tlparse {

TEST_CASE("a change says once what is equal at both ends of a call") {
  CHECK(ChangeText("dropout(x, 0.1, True)", "dropout(x, 0.5, True)", 80) ==
        "dropout(x, 0.1 → 0.5, True)");
  CHECK(ChangeText("f(g(8))", "f(g(16))", 80) == "f(g(8 → 16))");
  // Two arguments, another name, no bracket: both sides are whole.
  CHECK(ChangeText("f(a, b)", "f(c, d)", 80) == "f(a, b) → f(c, d)");
  CHECK(ChangeText("relu(x)", "silu(x)", 80) == "relu(x) → silu(x)");
  CHECK(ChangeText("y = x + 1", "y = x + 2", 80) == "y = x + 1 → y = x + 2");
  CHECK(ChangeText("f(x)", "f(x, 1)", 80) == "f(x) → f(x, 1)");
}

TEST_CASE("a change of long texts is shown around its place") {
  const std::string loop =
      "for(int64_t x2=static_cast<int64_t>(0L); x2<static_cast<int64_t>(63L); x2+=";
  const std::string text =
      ChangeText(loop + "16L, y=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; z)",
                 loop + "8L, w=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb)", 60);
  CHECK(text.find("x2+=16L") != std::string::npos);
  CHECK(text.find("x2+=8L") != std::string::npos);
  CHECK(text.size() < 180);
  CHECK(ChangeText("a\n  b\t c", "a b  d", 80) == "a b c → a b d");
  // No character of several bytes is divided.
  const std::string long_text(50, 'x');
  CHECK(ChangeText(long_text + "ééééééé", long_text + "è", 5).find("\xC3…") == std::string::npos);
}

TEST_CASE("deletions follow from other lines") {
  CHECK(WithoutDeletions("a = f(x);  x = None\nreturn (a,)\n") == "a = f(x)\nreturn (a,)\n");
  CHECK(WithoutDeletions("a = 'x;  y'\n") == "a = 'x;  y'\n");
}

TEST_CASE("what generated C++ was made for") {
  const std::string load =
      "auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + "
      "static_cast<int64_t>(x0), static_cast<int64_t>(";
  const std::string wide = load + "16));\n" + load + "3L));\n",
                    narrow = load + "8));\n" + load + "7L));\n";
  CHECK(TargetChange(wide, narrow) == "for vectors of 8 floats instead of 16");
  CHECK(TargetChange(wide, wide).empty());
  CHECK(TargetChange(wide, "x").empty());
  CHECK(TargetChange("#pragma omp parallel num_threads(1)",
                     "#pragma omp parallel num_threads(2)") == "for 2 threads instead of 1");
  CHECK(TargetChange("Vectorized<float>(0); x0+=static_cast<int64_t>(16L)",
                     "Vectorized<float>(0); x0+=static_cast<int64_t>(8L)") ==
        "for vectors of 8 floats instead of 16");
  CHECK(TargetChange("x0+=static_cast<int64_t>(16L)", "x0+=static_cast<int64_t>(8L)").empty());
}

TEST_CASE("names of kernels and comments are no other code") {
  const std::string a = "# Original ATen: [add]\ncpp_fused_add_0 = f('x')\ncpp_fused_add_0(y)\n",
                    b = "cpp_fused_mul_1 = f('x')\ncpp_fused_mul_1(y)\n",
                    other = "cpp_fused_mul_1 = f('z')\ncpp_fused_mul_1(y)\n",
                    crossed = "cpp_fused_mul_1 = f('x')\ncpp_fused_mul_2(y)\n";
  CHECK(AreEqualButForNames(a, b));
  CHECK(!AreEqualButForNames(a, other));
  CHECK(!AreEqualButForNames(a, crossed));
  CHECK(!AreEqualButForNames("#pragma omp simd\n", "#pragma omp parallel\n"));
}

TEST_CASE("the parameter of a graph that differs is found by its name") {
  const std::string a = R"x(def forward(self, L_w_: "f32[4]", L_x_: "f32[8, 2]"):)x";
  const std::string b =
      R"x(def forward(self, L_w_: "f32[4]", s7: "Sym(s7)", L_x_: "f32[s7, 2]"):)x";
  CHECK(DifferingAnnotations(a, b) ==
        std::pair<std::string, std::string>("L_x_: f32[8, 2]", "L_x_: f32[s7, 2]"));
}

}  // namespace tlparse

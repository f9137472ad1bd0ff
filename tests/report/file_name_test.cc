#include "report/tree/file_name.h"

#include "base/utf8.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

using Text = std::string_view;

TEST_CASE("file names: usual names stay as they are") {
  CHECK(SafeFileName("torch._functorch.config", "_3.txt") == "torch._functorch.config_3.txt");
  CHECK(SafeFileName("f\xC3\xBCnktion", "_1.json") == "f\xC3\xBCnktion_1.json");
}

TEST_CASE("file names: nothing leads out of the directory") {
  for (const Text stem : {Text(".."), Text("."), Text(""), Text("../../etc/passwd"), Text("/"),
                          Text("a/../b"), Text("a\\b"), Text("nul\0byte", 8), Text("\n\r\t\x7f")}) {
    for (const Text suffix : {Text(""), Text("_1.txt"), Text(".html")}) {
      const std::string name = SafeFileName(stem, suffix);
      CAPTURE(name);
      CHECK_FALSE(name.empty());
      CHECK(name != ".");
      CHECK(name != "..");
      CHECK(name.find_first_of(Text("/\\\0\n\r\t\x7f", 7)) == std::string::npos);
    }
  }
}

TEST_CASE("file names: reserved characters and devices of Windows") {
  CHECK(SafeFileName("<lambda>:a*b?\"|", "_2.txt") == "_lambda__a_b____2.txt");
  CHECK(SafeFileName("CON", ".html") == "_CON.html");
  CHECK(SafeFileName("com1", "") == "_com1");
  CHECK(SafeFileName("console", "") == "console");
  CHECK(SafeFileName("name. ", "") == "name._");
}

TEST_CASE("file names: long ones are cut between characters and stay apart") {
  std::string umlauts;
  for (int i = 0; i < 2000; ++i) umlauts += "\xC3\xBC";
  const std::string a = SafeFileName(umlauts, "_12.json");
  const std::string b = SafeFileName(umlauts + "b", "_12.json");
  CHECK(a.size() <= kMaxFileNameBytes);
  CHECK(IsTextSafe(a));
  CHECK(a.ends_with("_12.json"));
  CHECK(a != b);
}

TEST_CASE("file names: bytes that are not UTF-8") {
  CHECK(SafeFileName("a\xFF\xFE"
                     "b",
                     ".txt") == "a__b.txt");
  CHECK(IsTextSafe(SafeFileName("\xED\xA0\x80", ".txt")));
}

TEST_CASE("unique names: equal ones and ones that differ by case") {
  UniqueNames names;
  CHECK(names.Next("a/b", ".html") == "a_b.html");
  CHECK(names.Next("a:b", ".html") == "a_b~2.html");
  CHECK(names.Next("A?B", ".html") == "A_B~3.html");
  CHECK(names.Next("other", ".html") == "other.html");
}

TEST_CASE("file stems are those of paths") {
  CHECK(FileStem("/tmp/torchinductor/ab/cabc.py") == "cabc");
  CHECK(FileStem("a.tar.gz") == "a.tar");
  CHECK(FileStem(".hidden") == ".hidden");
  CHECK(FileStem("dir/") == "dir");
  CHECK(FileStem("..").empty());
  CHECK(FileStem("").empty());
}

TEST_CASE("URLs of paths") {
  CHECK(UrlFromPath("-_0_0_0/a b#c?d%_1.txt") == "-_0_0_0/a%20b%23c%3Fd%25_1.txt");
  CHECK(UrlFromPath("javascript:alert(1)") == "javascript%3Aalert%281%29");
}

}  // namespace
}  // namespace tlparse

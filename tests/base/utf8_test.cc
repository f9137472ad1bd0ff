#include "base/utf8.h"

#include <string>
#include <string_view>

#include "tests/catch2.h"

namespace tlparse {
namespace {

using namespace std::string_view_literals;

TEST_CASE("IsTextSafe takes valid UTF-8 without NUL", "[utf8]") {
  CHECK(IsTextSafe(""));
  CHECK(IsTextSafe("plain\r\n\t\x7f"));
  CHECK(IsTextSafe("\xc3\xa4 \xe2\x80\xa8 \xf0\x9f\x94\xa5"));
  CHECK_FALSE(IsTextSafe("a\0b"sv));
  CHECK_FALSE(IsTextSafe("\x80"));
  CHECK_FALSE(IsTextSafe("\xc0\xaf"));          // overlong
  CHECK_FALSE(IsTextSafe("\xed\xa0\x80"));      // surrogate
  CHECK_FALSE(IsTextSafe("\xf4\x90\x80\x80"));  // above U+10FFFF
  CHECK_FALSE(IsTextSafe("cut \xe2\x80"));
}

TEST_CASE("SanitizeUtf8 replaces the longest prefix of a valid sequence once", "[utf8]") {
  constexpr auto kReplacement = "\xef\xbf\xbd";
  const std::string r = kReplacement;
  CHECK(SanitizeUtf8("") == "");
  CHECK(SanitizeUtf8("\xc3\xa4") == "\xc3\xa4");
  CHECK(SanitizeUtf8("a\0b"sv) == "a" + r + "b");
  CHECK(SanitizeUtf8("cut \xe2\x80") == "cut " + r);
  CHECK(SanitizeUtf8("\xe2\x80z") == r + "z");
  CHECK(SanitizeUtf8("\xf0\x9f\x94z\x80") == r + "z" + r);
  CHECK(SanitizeUtf8("\xc0\xaf") == r + r);
  CHECK(SanitizeUtf8("\xed\xa0\x80") == r + r + r);
  CHECK(SanitizeUtf8("\xf4\x90\x80\x80") == r + r + r + r);
  CHECK(SanitizeUtf8("\xff\xc3\xa4") == r + "\xc3\xa4");
}

TEST_CASE("SanitizeUtf8 makes every three bytes safe and keeps what was safe", "[utf8]") {
  for (unsigned value = 0; value < 1u << 24; value += 251) {
    const char bytes[3] = {static_cast<char>(value >> 16), static_cast<char>(value >> 8),
                           static_cast<char>(value)};
    const std::string_view text(bytes, 3);
    const std::string safe = SanitizeUtf8(text);
    if (!IsTextSafe(safe) || (IsTextSafe(text) && safe != text)) FAIL("value " << value);
  }
}

}  // namespace
}  // namespace tlparse

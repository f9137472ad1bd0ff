#include "store/hash128.h"

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

TEST_CASE("A hash's hex form can be read back, and nothing else", "[hash128]") {
  const Hash128 hash = HashBytes("text");
  CHECK(FromHex(ToHex(hash)) == hash);
  CHECK(ToHex(Hash128{1, 2}) == "00000000000000020000000000000001");
  CHECK_FALSE(FromHex(""));
  CHECK_FALSE(FromHex(ToHex(hash).substr(1)));
  CHECK_FALSE(FromHex("0000000000000002000000000000000G"));
  CHECK_FALSE(FromHex("0000000000000002000000000000000A"));
}

TEST_CASE("The hash of a sequence tells its parts apart", "[hash128]") {
  const auto of = [](auto... parts) {
    SequenceHash hash;
    (hash.Add(parts), ...);
    return hash.Digest();
  };
  using View = std::string_view;
  CHECK(of(View("ab"), View("c")) == of(View("ab"), View("c")));
  CHECK(of(View("ab"), View("c")) != of(View("a"), View("bc")));
  CHECK(of(View("abc")) != of(View("abc"), View("")));
  CHECK(of(std::int64_t{1}, std::int64_t{2}) != of(std::int64_t{2}, std::int64_t{1}));
}

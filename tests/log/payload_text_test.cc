#include "log/payload_text.h"

#include <random>
#include <string>

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

namespace {

std::string Naive(std::string_view raw, bool remove_cr) {
  std::string text;
  for (std::size_t at = 0; at < raw.size(); ++at) {
    if (raw[at] == '\t' && (at == 0 || raw[at - 1] == '\n')) continue;
    const bool ends_line = at + 1 == raw.size() || raw[at + 1] == '\n';
    if (remove_cr && raw[at] == '\r' && ends_line) continue;
    text += raw[at];
  }
  return text;
}

std::string WithoutTabs(std::string_view raw, bool remove_cr) {
  // Behind the text 16 readable bytes, as windows and arenas have; LFs there must not matter.
  const std::string padded = std::string(raw) + std::string(16, '\n');
  std::string text(raw.size() + kRemoveTabsSlack, '!');
  text.resize(RemoveTabs({padded.data(), raw.size()}, remove_cr, text.data()));
  return text;
}

}  // namespace

TEST_CASE("RemoveTabs writes what a byte-by-byte copy writes, whatever the length",
          "[payload_text]") {
  std::mt19937 random(20261121);  // NOLINT: the same inputs every time
  for (const std::string alphabet :
       {"\n\tx", "\n\r", "\n\t\rxxxxxxx", "\n\txxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}) {
    for (std::size_t size = 0; size <= 200; ++size) {
      for (int round = 0; round < 20; ++round) {
        std::string raw;
        while (raw.size() < size) {
          raw += raw.empty() || raw.back() == '\n' ? '\t' : alphabet[random() % alphabet.size()];
        }
        for (const bool remove_cr : {false, true}) {
          CAPTURE(raw, remove_cr);
          REQUIRE(WithoutTabs(raw, remove_cr) == Naive(raw, remove_cr));
        }
      }
    }
  }
}

TEST_CASE("RemoveTabs takes one TAB a line and one CR a line end", "[payload_text]") {
  CHECK(WithoutTabs("\t\ta\r\r\n\t\n\tb\r", true) == "\ta\r\n\nb");
  CHECK(WithoutTabs("\t\ta\r\r\n\t\n\tb\r", false) == "\ta\r\r\n\nb\r");
  CHECK(WithoutTabs("", true).empty());
  CHECK(WithoutTabs("\t", false).empty());
}

TEST_CASE("EveryLineEndsInCr is asked of every line, the last included", "[payload_text]") {
  CHECK(EveryLineEndsInCr("\ta\r\n\tb\r"));
  CHECK(EveryLineEndsInCr("\r"));
  CHECK_FALSE(EveryLineEndsInCr(""));
  CHECK_FALSE(EveryLineEndsInCr("\ta\r\n\tb"));
  CHECK_FALSE(EveryLineEndsInCr("\ta\n\tb\r"));
  CHECK_FALSE(EveryLineEndsInCr("\n\r"));
}

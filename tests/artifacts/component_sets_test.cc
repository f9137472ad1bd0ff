#include "artifacts/common/component_sets.h"

#include <string>
#include <vector>

#include "tests/catch2.h"

namespace {

using tlparse::Component;

const std::string kHash(51, 'a');

std::string Line(const std::string& rest) { return "[" + kHash + "] " + rest; }

// A hash of its own for every number.
std::string HashOf(int number) {
  std::string hash = kHash;
  for (std::size_t at = 0; number > 0; ++at, number /= 26) hash[at] = static_cast<char>('a' + number % 26);
  return hash;
}

struct Stored {
  tlparse::TableSet tables;
  tlparse::TextPool texts{tables};
  tlparse::ComponentSets sets{tables};
  tlparse::RowBatch rows{tables};

  std::size_t RowCount(std::string_view table, std::size_t columns) { return rows.cells(tables.Use(table, columns)).size() / columns; }
  std::int64_t Intern(const std::vector<std::string>& names, const std::vector<std::string>& hashes) {
    std::vector<Component> components;
    for (std::size_t index = 0; index < names.size(); ++index) components.push_back({names[index], hashes[index], "v"});
    return sets.Intern(rows, texts, components);
  }
};

}  // namespace

TEST_CASE("ParseComponent reads hash, name and text", "[component_sets]") {
  const std::string line = Line("inductor_config[a]: [b]: c");
  const auto component = tlparse::ParseComponent(line);
  REQUIRE(component);
  CHECK(component->hash == kHash);
  CHECK(component->name == "inductor_config[a]");
  CHECK(component->value == "[b]: c");
  CHECK(tlparse::ParseComponent(Line("gm: "))->value.empty());
  CHECK(tlparse::ParseComponent("flags: -O2", false)->name == "flags");
}

TEST_CASE("ParseComponent refuses what continues the line before", "[component_sets]") {
  for (const std::string& line : {std::string(), std::string("    return x"), std::string("[0] x: y"), Line(""), Line("a b: c"),
                                  Line("config[a: c"), "[" + std::string(51, 'A') + "] gm: x", "flags: -O2" + std::string()}) {
    INFO(line);
    CHECK_FALSE(tlparse::ParseComponent(line));
  }
}

TEST_CASE("ComponentSets stores of a set what earlier sets lack", "[component_sets]") {
  Stored stored;
  std::vector<std::string> names = {"gm", "example_inputs[0]"};
  std::vector<std::string> hashes = {HashOf(1), HashOf(2)};
  for (int index = 0; index < 200; ++index) {
    names.push_back("inductor_config[" + std::to_string(index) + "]");
    hashes.push_back(HashOf(100 + index));
  }
  const std::int64_t first = stored.Intern(names, hashes);
  CHECK(stored.RowCount("component_list_row", 3) == 202);
  CHECK(stored.RowCount("component_run", 5) == 1);

  SECTION("the same set again is the same row") {
    CHECK(stored.Intern(names, hashes) == first);
    CHECK(stored.RowCount("component_set", 3) == 1);
  }
  SECTION("one other hash costs its block of 64 and two more runs") {
    hashes[2 + 64 + 5] = HashOf(9999);
    CHECK(stored.Intern(names, hashes) != first);
    CHECK(stored.RowCount("component_list_row", 3) == 202 + 64);
    CHECK(stored.RowCount("component", 4) == 203);
    CHECK(stored.RowCount("component_run", 5) == 1 + 3);
  }
  SECTION("another graph costs one row and two runs") {
    hashes[0] = HashOf(7777);
    stored.Intern(names, hashes);
    CHECK(stored.RowCount("component_list_row", 3) == 203);
    CHECK(stored.RowCount("component_run", 5) == 1 + 2);
  }
}

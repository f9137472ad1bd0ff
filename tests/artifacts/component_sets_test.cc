#include "artifacts/common/cache/component_sets.h"

#include <string>
#include <vector>

#include "rows/cache_event.h"
#include "tests/catch2.h"

namespace {

using tlparse::Component;

const std::string kHash(51, 'a');

std::string Line(const std::string& rest) { return "[" + kHash + "] " + rest; }

// A hash of its own for every number.
std::string HashOf(int number) {
  std::string hash = kHash;
  for (std::size_t at = 0; number > 0; ++at, number /= 26)
    hash[at] = static_cast<char>('a' + number % 26);
  return hash;
}

struct Stored {
  tlparse::TableSet tables;
  tlparse::TextPool texts{tables};
  tlparse::ComponentSets sets{tables};
  tlparse::RowBatch rows{tables};

  template <typename Row>
  std::size_t RowCount() {
    return rows.cells(tables.Find<Row>()).size() / Row::kColumns.size();
  }
  std::int64_t Intern(const std::vector<std::string>& names,
                      const std::vector<std::string>& hashes) {
    std::vector<Component> components;
    for (std::size_t index = 0; index < names.size(); ++index)
      components.push_back({names[index], hashes[index], "v"});
    return sets.Intern(rows, texts, components, true).set_id;
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
  for (const std::string& line :
       {std::string(), std::string("    return x"), std::string("[0] x: y"), Line(""),
        Line("a b: c"), Line("config[a: c"), "[" + std::string(51, 'A') + "] gm: x",
        "flags: -O2" + std::string()}) {
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
  CHECK(stored.RowCount<tlparse::ComponentListRow>() == 202);
  CHECK(stored.RowCount<tlparse::ComponentRunRow>() == 1);

  SECTION("the same set again is the same row") {
    CHECK(stored.Intern(names, hashes) == first);
    CHECK(stored.RowCount<tlparse::ComponentSetRow>() == 1);
  }
  SECTION("one other hash costs its block of 64 and two more runs") {
    hashes[2 + 64 + 5] = HashOf(9999);
    CHECK(stored.Intern(names, hashes) != first);
    CHECK(stored.RowCount<tlparse::ComponentListRow>() == 202 + 64);
    CHECK(stored.RowCount<tlparse::ComponentRow>() == 203);
    CHECK(stored.RowCount<tlparse::ComponentRunRow>() == 1 + 3);
  }
  SECTION("another graph costs one row and two runs") {
    hashes[0] = HashOf(7777);
    stored.Intern(names, hashes);
    CHECK(stored.RowCount<tlparse::ComponentListRow>() == 203);
    CHECK(stored.RowCount<tlparse::ComponentRunRow>() == 1 + 2);
  }
}

TEST_CASE("ComponentSets stores what names a device once for all device indexes",
          "[component_sets]") {
  Stored stored;
  // As rank `device` has it: a graph, an input, an option; hashes of their own where the device is
  // named.
  const auto intern = [&](int device, const std::string& graph = "x", bool has_key = true) {
    const std::string index = std::to_string(device);
    const std::vector<std::string> texts = {"f32[8]cuda:" + index + " " + graph,
                                            "device(type='cuda', index=" + index + ")", index,
                                            "True"};
    const std::vector<std::string> hashes = {HashOf(1000 + device + (graph == "x" ? 0 : 500)),
                                             HashOf(2000 + device), HashOf(3000 + device),
                                             HashOf(4)};
    return stored.sets.Intern(stored.rows, stored.texts,
                              {{"gm", hashes[0], texts[0]},
                               {"example_inputs[0]", hashes[1], texts[1]},
                               {"default_cuda_device_index", hashes[2], texts[2]},
                               {"inductor_config[a]", hashes[3], texts[3]}},
                              has_key);
  };
  const tlparse::KeySet first = intern(0);
  CHECK(first.device_index == 0);
  for (int device = 1; device < 100; ++device) {
    const tlparse::KeySet other = intern(device);
    CHECK(other.set_id == first.set_id);
    CHECK(other.device_index == device);
  }
  CHECK(intern(7) == tlparse::KeySet{first.set_id, 7});
  CHECK(stored.RowCount<tlparse::ComponentRow>() == 4);
  CHECK(stored.RowCount<tlparse::ComponentSetRow>() == 1);
  CHECK(stored.RowCount<tlparse::ComponentListRow>() == 4);
  CHECK(stored.RowCount<tlparse::ComponentRunRow>() == 1);
  CHECK(stored.RowCount<tlparse::ComponentHashRow>() == 300);

  SECTION("another graph on one device is another set") {
    const tlparse::KeySet other = intern(3, "y");
    CHECK(other.set_id != first.set_id);
    CHECK(other.device_index == 3);
    CHECK(stored.RowCount<tlparse::ComponentRow>() == 5);
  }
  SECTION("without a key to keep the device index, texts stay as they are") {
    const tlparse::KeySet other = intern(3, "x", false);
    CHECK(other.set_id != first.set_id);
    CHECK_FALSE(other.device_index);
    CHECK(stored.RowCount<tlparse::ComponentRow>() == 4 + 3);
  }
}

TEST_CASE("ComponentSets keeps the same text with another hash apart", "[component_sets]") {
  Stored stored;
  const auto intern = [&](int hash) {
    return stored.sets.Intern(stored.rows, stored.texts, {{"gm", HashOf(hash), "cuda:1"}}, true);
  };
  const tlparse::KeySet first = intern(5), second = intern(6);
  CHECK(first.set_id != second.set_id);
  CHECK(second.device_index == 1);
  CHECK(stored.RowCount<tlparse::ComponentHashRow>() == 2);
}

TEST_CASE("ComponentSets takes one device index of a set and keeps others as they are",
          "[component_sets]") {
  Stored stored;
  const auto intern = [&](const std::string& a, const std::string& b) {
    return stored.sets.Intern(
        stored.rows, stored.texts,
        {{"gm", HashOf(10 + a.back()), a}, {"example_inputs[0]", HashOf(500 + b.back()), b}}, true);
  };
  CHECK(intern("cuda:1", "cuda:2").device_index == 1);
  CHECK(stored.RowCount<tlparse::ComponentHashRow>() == 1);
  // The second one is known as it is, and known again where its index is the set's.
  CHECK(intern("cuda:2", "cuda:2").device_index == 2);
  CHECK(intern("cuda:1", "cuda:2") != intern("cuda:2", "cuda:2"));
}

#include "import/log_state.h"

#include <vector>

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

TEST_CASE("Payloads of a log that is set aside are loaded again, and count as before",
          "[log_state]") {
  std::vector<std::int64_t> loaded;
  const KeptPayloads::Load load = [&](std::int64_t id) {
    loaded.push_back(id);
    return "text of " + std::to_string(id);
  };
  KeptPayloads kept;
  kept.Add(1, "text of 1");
  CHECK(kept.Find(1, load) == "text of 1");
  CHECK(loaded.empty());
  kept.SetAside();
  CHECK(kept.Has(1));
  CHECK(kept.Find(1, load) == "text of 1");
  CHECK(kept.Find(1, load) == "text of 1");
  CHECK(loaded == std::vector<std::int64_t>{1});
  CHECK(kept.Find(2, load).empty());
  kept.Release(1);
  CHECK_FALSE(kept.Has(1));
  // The oldest are dropped, whether their texts are in memory or not.
  for (std::int64_t id = 10; id < 20; ++id) {
    kept.Add(id, std::string(1 << 20, 'x'));
    kept.SetAside();
  }
  CHECK_FALSE(kept.Has(15));
  CHECK(kept.Has(16));
  CHECK(kept.Has(19));
}

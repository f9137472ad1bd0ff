#include "import/router.h"

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

namespace {

struct Routes {
  TableSet tables;
  Router router{tables};
  TextId next_name = 1;
  Ingestor* Find(std::string_view kind, std::string_view name = "") {
    return router.Find(kind, name, next_name++);
  }
};

}  // namespace

TEST_CASE("Every key of every artifact reaches its own ingestor", "[router]") {
  Routes routes;
  const auto artifacts = AllArtifacts();
  REQUIRE(routes.router.ingestors().size() == artifacts.size());
  for (std::size_t index = 0; index < artifacts.size(); ++index) {
    for (const auto& [key, traits] : artifacts[index]->keys) {
      CAPTURE(key);
      if (key.find('*') != key.npos) continue;
      const bool is_artifact = key.starts_with("artifact/");
      Ingestor* found = is_artifact ? routes.Find("artifact", key.substr(9)) : routes.Find(key);
      CHECK(found == routes.router.ingestors()[index].get());
    }
  }
}

TEST_CASE("Patterns match the rest of a name, and exact keys come first", "[router]") {
  Routes routes;
  Ingestor* cache = routes.Find("artifact", "fx_graph_cache_miss");
  REQUIRE(cache != nullptr);
  CHECK(routes.Find("artifact", "something_new_cache_hit") == cache);
  CHECK(routes.Find("artifact", "_cache_hit") == cache);
  CHECK(routes.Find("artifact", "cache_hit") != cache);
  CHECK(routes.Find("artifact", "fx_graph_cache_hit_more") != cache);
  CHECK(routes.Find("artifact", "aotautograd_cache_hash") == cache);
}

TEST_CASE("Kinds and artifact names are different names", "[router]") {
  Routes routes;
  CHECK(routes.Find("chromium_event") != nullptr);
  CHECK(routes.Find("artifact", "chromium_event") == nullptr);
  CHECK(routes.Find("fx_graph_cache_hit") == nullptr);
  CHECK(routes.Find("artifact") == nullptr);
  CHECK(routes.Find("") == nullptr);
  CHECK(routes.Find("never_heard_of") == nullptr);
  CHECK(routes.Find("artifact", "never_heard_of") == nullptr);
}

TEST_CASE("An answer is remembered by the name's id", "[router]") {
  Routes routes;
  Ingestor* cache = routes.router.Find("artifact", "fx_graph_cache_hit", 100);
  CHECK(routes.router.Find("artifact", "fx_graph_cache_hit", 100) == cache);
  CHECK(routes.router.Find("artifact", "never_heard_of", 101) == nullptr);
  CHECK(routes.router.Find("artifact", "never_heard_of", 101) == nullptr);
}

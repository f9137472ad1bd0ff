// Which ranks are meant to do equal work.
#include "facts/job/roles.h"

#include <fmt/format.h>

#include "tests/catch2.h"

namespace tlparse {
namespace {

using Functions = std::set<std::string>;

// `graphs`: by slot, from 0; 0: none.
RoleMember Member(std::int64_t rank, Functions functions, std::vector<std::int64_t> graphs = {},
                  std::string caller = "main train.py") {
  RoleMember member;
  member.index = static_cast<RankIndex>(rank);
  member.rank = rank;
  member.functions = std::move(functions);
  member.callers = {std::move(caller)};
  for (std::size_t slot = 0; slot < graphs.size(); ++slot) {
    if (graphs[slot] != 0) member.graphs[static_cast<std::int32_t>(slot)] = graphs[slot];
  }
  return member;
}

// "pipeline part 1 of 2: 0,2; …", with "?" behind a role that is not sure.
std::string Text(const std::vector<RoleMember>& members, const RoleEvidence& evidence = {}) {
  std::string text;
  for (const Role& role : FindRoles(members, evidence)) {
    text += fmt::format("{}{}{}:", text.empty() ? "" : "; ", role.name, role.is_sure ? "" : "?");
    for (const RankIndex member : role.members) text += fmt::format(" {}", member);
  }
  return text;
}

const Functions kBlock = {"block model.py:3"},
                kBlockAndLoss = {"block model.py:3", "loss model.py:9"};

TEST_CASE("roles: ranks that compile the same are replicas, an odd one among them too") {
  CHECK(Text({}) == "");
  CHECK(Text({Member(0, kBlock, {1}), Member(1, kBlock, {1})}) == "replicas or shards: 0 1");
  CHECK(Text({Member(0, kBlock, {1}), Member(1, kBlock, {1}), Member(2, kBlock, {2})}) ==
        "replicas or shards: 0 1 2");
  CHECK(Text({Member(0, kBlock, {1}), Member(1, kBlock, {2})}) == "replicas or shards: 0 1");
  // Rank 0 also evaluates.
  const std::vector<RoleMember> evaluates = {Member(0, kBlockAndLoss, {1, 2}),
                                             Member(1, kBlock, {1}), Member(2, kBlock, {1})};
  CHECK(Text(evaluates) == "replicas or shards: 0 1 2");
  CHECK(FindRoles(evaluates, {}).front().evidence ==
        "each compiles a function that another one compiles too");
  CHECK(FindRoles({evaluates[1], evaluates[2]}, {}).front().evidence ==
        "they compile the same functions");
}

TEST_CASE("roles: parts of a model are no replicas, whether they are known or not") {
  // Two pairs: shards where they are process groups, else not known.
  const std::vector<RoleMember> pairs = {Member(0, kBlock, {1}), Member(1, kBlock, {2}),
                                         Member(2, kBlock, {1}), Member(3, kBlock, {2})};
  CHECK(Text(pairs) == "unknown?: 0 1 2 3");
  CHECK(Text(pairs, {.has_sends = false, .groups = {{0, 2}, {1, 3}, {0, 1}}}) ==
        "shard 1 of 2: 0 2; shard 2 of 2: 1 3");
  // Three kinds without a majority, one with a loss of its own: stages of a pipeline written by hand.
  CHECK(Text({Member(0, kBlock, {1, 4}), Member(1, kBlock, {1, 5}), Member(2, kBlock, {1, 5}),
              Member(3, kBlockAndLoss, {1, 6})}) == "unknown?: 0 1 2 3");
  // A pipeline that sends.
  CHECK(Text({Member(0, kBlock, {1}), Member(1, kBlock, {2})}, {.has_sends = true, .groups = {}}) ==
        "pipeline part 1 of 2: 0; pipeline part 2 of 2: 1");
}

TEST_CASE("roles: functions of several files that have one name are told apart by their places") {
  const Functions first = {"forward stage_0.py:12"}, second = {"forward stage_1.py:12"};
  CHECK(Text({Member(0, first, {1}), Member(1, first, {1}), Member(2, second, {2}),
              Member(3, second, {2})}) ==
        "forward at stage_0.py:12: 0 1; forward at stage_1.py:12: 2 3");
}

TEST_CASE("roles: programs without a common function are apart, unless one function called them") {
  const Functions server = {"serve server.py:3"};
  CHECK(Text({Member(0, server, {1}, "serve server.py"), Member(1, kBlock, {2}),
              Member(2, kBlock, {2})}) == "serve: 0; block: 1 2");
  CHECK(Text({Member(0, server, {1}), Member(1, kBlock, {2}), Member(2, kBlock, {2})}) ==
        "unknown?: 0 1 2");
}

TEST_CASE(
    "roles: a rank that compiles another function than the others may be a learner among actors") {
  const Functions learner = {"forward a.py:3", "loss a.py:9"},
                  actor = {"forward a.py:3", "play a.py:14"};
  const std::vector<RoleMember> members = {Member(0, learner), Member(1, actor), Member(2, actor)};
  CHECK(Text(members) == "unknown?: 0 1 2");
  // Not where collectives in that function pair it with the others, nor where its file has another text.
  CHECK(Text(members, {.has_sends = false, .groups = {}, .with_collectives = {"loss a.py:9"}}) ==
        "replicas or shards: 0 1 2");
  CHECK(Text({Member(0, {"forward a.py:3", "play a.py:16"}), Member(1, actor), Member(2, actor)}) ==
        "replicas or shards: 0 1 2");
}

TEST_CASE("roles: ranks may be a slice of a mesh") {
  const auto slice = [](std::int64_t count, const std::set<std::int64_t>& of) {
    std::map<std::int64_t, bool> is_one;
    for (std::int64_t rank = 0; rank < count; ++rank) is_one[rank] = of.contains(rank);
    return SliceOfMesh(is_one);
  };
  CHECK(slice(4, {0, 1}) == 0U);
  CHECK(slice(4, {0, 2}) == 0U);
  CHECK(slice(4, {1, 3}) == 1U);
  CHECK(slice(6, {4, 5}) == 2U);
  CHECK(slice(8, {2, 3, 6, 7}) == 1U);  // the middle one of three dimensions
  CHECK_FALSE(slice(4, {0, 3}));
  CHECK_FALSE(slice(4, {0, 1, 2}));
  CHECK_FALSE(slice(4, {}));
  CHECK_FALSE(slice(2, {0, 1}));
}

}  // namespace
}  // namespace tlparse

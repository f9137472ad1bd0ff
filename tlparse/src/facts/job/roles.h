// Roles: which ranks of a job are meant to do equal work. Data-parallel replicas have one role; each
// stage of a pipeline, each shard, a server beside trainers has its own. Ranks are compared within a
// role; across roles only in what must be equal, versions and configuration.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "facts/job/job.h"

namespace tlparse {

struct RoleMember {
  RankIndex index = 0;
  std::int64_t rank = 0;
  std::set<std::string> functions;  // "block model.py:12": what it compiled
  std::set<std::string> callers;    // "train main.py": functions of the user that called compiles
  // Dynamo's graph by slot, without unknown ones; equal ones differ in numbers at most.
  std::map<std::int32_t, std::int64_t> graphs;
  bool ends_early = false;  // what it would have compiled further is not known
};

// What the inputs show of how ranks work together.
struct RoleEvidence {
  // Ranks send to each other: calls in dumps or profiles, or compiles below torch.distributed.pipelining.
  bool has_sends = false;
  std::vector<std::set<std::int64_t>> groups = {};  // ranks of process groups
  std::set<std::string> with_collectives = {};      // functions whose code pairs ranks
};

// Ranks of one role, all of the job. Equal code does not tell replicas from shards of one mesh.
inline constexpr char kEqualRanks[] = "replicas or shards";

struct Role {
  // kEqualRanks, "pipeline part 1 of 2" (one stage or several), "shard 2 of 2", or the first function it
  // compiles
  std::string name;
  std::vector<RankIndex> members;  // ascending
  std::string evidence;            // a clause
  // Otherwise what sets its members apart may be a difference of roles.
  bool is_sure = true;
};

// By their lowest rank. Never empty unless `members` is. Unless all roles are sure there is one role.
std::vector<Role> FindRoles(const std::vector<RoleMember>& members, const RoleEvidence& evidence);

// Which slice of one dimension of a mesh these ranks are: 0 of ranks 0 and 1 of four, and of ranks 0
// and 2; 1 of ranks 2, 3, 6 and 7 of eight. By rank: whether it is one of them. Nothing: they are none.
std::optional<std::size_t> SliceOfMesh(const std::map<std::int64_t, bool>& is_one);

}  // namespace tlparse

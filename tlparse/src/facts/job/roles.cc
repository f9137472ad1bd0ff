#include "facts/job/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tlparse {
namespace {

using Members = std::vector<const RoleMember*>;

// Members with the same value, in the order of their first member. Mostly they have that of the one
// before.
template <typename KeyOf>
std::vector<Members> ClassesBy(const Members& members, const KeyOf& key_of) {
  using Key = std::decay_t<decltype(key_of(*members.front()))>;
  std::vector<Members> classes;
  std::map<Key, std::size_t> index;
  auto last = index.end();
  for (const RoleMember* const one : members) {
    decltype(auto) key = key_of(*one);
    if (last == index.end() || !(last->first == key)) {
      bool is_new = false;
      std::tie(last, is_new) = index.try_emplace(key, classes.size());
      if (is_new) classes.emplace_back();
    }
    classes[last->second].push_back(one);
  }
  return classes;
}

const std::set<std::string>& FunctionsOfOne(const RoleMember& one) { return one.functions; }

bool IsSubset(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::includes(b.begin(), b.end(), a.begin(), a.end());
}

bool HaveCommon(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& one) { return b.contains(one); });
}

std::set<std::string> FunctionsOf(const Members& members) {
  std::set<std::string> all;
  for (const RoleMember* const one : members)
    all.insert(one->functions.begin(), one->functions.end());
  return all;
}

// Members that compiled a function in common, directly or through others.
std::vector<Members> Connected(const Members& members) {
  std::vector<Members> parts;
  for (const Members& own : ClassesBy(members, FunctionsOfOne)) {
    const std::set<std::string> functions = FunctionsOf(own);
    Members joined = own;
    std::erase_if(parts, [&](const Members& part) {
      if (!HaveCommon(FunctionsOf(part), functions)) return false;
      joined.insert(joined.end(), part.begin(), part.end());
      return true;
    });
    parts.push_back(std::move(joined));
  }
  for (Members& part : parts)
    std::sort(part.begin(), part.end(),
              [](const RoleMember* a, const RoleMember* b) { return a->rank < b->rank; });
  return parts;
}

// Whether of each two classes one compiled all that the other did: a log that ends early, or a rank
// that also evaluates.
bool IsChain(const std::vector<Members>& classes) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    for (std::size_t j = i + 1; j < classes.size(); ++j) {
      const auto &a = classes[i].front()->functions, &b = classes[j].front()->functions;
      if (!IsSubset(a, b) && !IsSubset(b, a)) return false;
    }
  }
  return true;
}

bool AreOfOneSize(const std::vector<Members>& classes, std::size_t least) {
  return classes.size() > 1 && std::all_of(classes.begin(), classes.end(), [&](const Members& one) {
           return one.size() == classes.front().size() && one.size() >= least;
         });
}

// "block model.py:12" → "block model.py:"
std::string WithoutLine(const std::string& function) {
  return function.substr(0, function.rfind(':') + 1);
}

class RoleFinder {
 public:
  RoleFinder(const RoleEvidence& evidence, const Members& all) : evidence_(evidence) {
    const RoleMember* last = nullptr;
    for (const RoleMember* const one : all) {
      if (last != nullptr && one->functions == last->functions) continue;
      last = one;
      for (auto at = one->functions.begin(); at != one->functions.end(); ++at) {
        const auto next = std::next(at);
        if (next != one->functions.end() && WithoutLine(*next) == WithoutLine(*at))
          several_.insert(WithoutLine(*at));
      }
    }
  }

  // The roles of all members; nothing: whether they have one or several is not known.
  std::optional<std::vector<Role>> Find(const Members& members) const;

 private:
  std::optional<std::vector<Role>> Split(const Members& part, bool is_whole) const;
  std::optional<std::vector<Role>> SplitByGraphs(const Members& part, bool is_whole) const;
  std::optional<std::vector<Role>> Stages(const Members& part) const;
  bool HasOdd(const Members& members, const std::set<std::int32_t>& slots) const;
  std::vector<Role> Numbered(const std::vector<Members>& classes, std::string_view evidence) const;
  std::optional<std::vector<Role>> Kinds(std::vector<Members> classes) const;
  bool AreGroups(const std::vector<Members>& classes) const;
  bool HasOwnFunction(const Members& one, const Members& other) const;

  const RoleEvidence& evidence_;
  std::set<std::string>
      several_;  // "forward model.py:": functions that one rank compiled several of
};

Role RoleOf(const Members& members, std::string name, std::string_view evidence) {
  Role role{.name = std::move(name), .members = {}, .evidence = std::string(evidence)};
  for (const RoleMember* const one : members) role.members.push_back(one->index);
  std::sort(role.members.begin(), role.members.end());
  return role;
}

// "block model.py:12" → "block", "block at model.py:12"
std::string FirstFunction(const Members& members, bool with_place = false) {
  const std::set<std::string> functions = FunctionsOf(members);
  if (functions.empty()) return "without compiles";
  const std::string& first = *functions.begin();
  const std::size_t space = first.find(' ');
  const std::string name = first.substr(0, space);
  return with_place && space != std::string::npos ? name + " at " + first.substr(space + 1) : name;
}

// Functions of several files may have one name.
void TellApart(const std::vector<Members>& parts, std::vector<std::vector<Role>>& roles_of_part) {
  std::map<std::string, std::size_t> counts;
  for (const std::vector<Role>& roles : roles_of_part)
    for (const Role& role : roles) ++counts[role.name];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string whole = FirstFunction(parts[i], true);
    for (Role& role : roles_of_part[i]) {
      if (counts[role.name] < 2) continue;
      role.name = role.name == FirstFunction(parts[i]) ? whole : role.name + " of " + whole;
    }
  }
}

std::vector<Role> RoleFinder::Numbered(const std::vector<Members>& classes,
                                       std::string_view evidence) const {
  std::vector<Role> roles;
  for (std::size_t i = 0; i < classes.size(); ++i)
    roles.push_back(
        RoleOf(classes[i],
               fmt::format("{} {} of {}", evidence_.has_sends ? "pipeline part" : "shard", i + 1,
                           classes.size()),
               evidence));
  return roles;
}

// Whether each class is a process group.
bool RoleFinder::AreGroups(const std::vector<Members>& classes) const {
  return std::all_of(classes.begin(), classes.end(), [&](const Members& one) {
    std::set<std::int64_t> ranks;
    for (const RoleMember* const member : one) ranks.insert(member->rank);
    return ranks.size() > 1 && std::find(evidence_.groups.begin(), evidence_.groups.end(), ranks) !=
                                   evidence_.groups.end();
  });
}

// Groups of ranks that each compile functions which the others do not, as trainers and samplers. A
// rank that compiled a part of what one kind did ended before the rest.
std::optional<std::vector<Role>> RoleFinder::Kinds(std::vector<Members> classes) const {
  std::stable_sort(classes.begin(), classes.end(), [](const Members& a, const Members& b) {
    return a.front()->functions.size() > b.front()->functions.size();
  });
  std::vector<Members> kinds;
  for (Members& own : classes) {
    std::vector<Members*> wholes;
    for (Members& kind : kinds)
      if (IsSubset(own.front()->functions, kind.front()->functions)) wholes.push_back(&kind);
    if (wholes.size() > 1) return std::nullopt;
    if (wholes.empty())
      kinds.push_back(std::move(own));
    else
      wholes.front()->insert(wholes.front()->end(), own.begin(), own.end());
  }
  std::vector<Role> roles;
  for (const Members& kind : kinds) {
    RoleMember own = *kind.front();
    for (const Members& other : kinds) {
      if (&other == &kind) continue;
      if (kind.size() < 2 || !HasOwnFunction(kind, other)) return std::nullopt;
      std::erase_if(own.functions,
                    [&](const std::string& one) { return other.front()->functions.contains(one); });
    }
    if (own.functions.empty()) return std::nullopt;
    roles.push_back(RoleOf(kind, FirstFunction({&own}),
                           kinds.size() == 1 ? "they compile the same functions, or a part of them"
                                             : "they compile functions that the others do not"));
  }
  return roles;
}

// Ranks that compiled the same functions: stages and shards differ in graphs.
std::optional<std::vector<Role>> RoleFinder::SplitByGraphs(const Members& part,
                                                           bool is_whole) const {
  const bool are_equal = ClassesBy(part, FunctionsOfOne).size() == 1;
  std::vector<Role> one_role = {
      RoleOf(part, is_whole ? kEqualRanks : FirstFunction(part),
             are_equal ? "they compile the same functions"
                       : "each compiles a function that another one compiles too")};
  Members known = part;
  std::erase_if(known, [](const RoleMember* one) { return one->ends_early; });
  if (known.size() < 2) return one_role;
  std::set<std::int32_t> common;
  for (const auto& [slot, graph] : known.front()->graphs) {
    if (std::all_of(known.begin(), known.end(),
                    [slot = slot](const RoleMember* one) { return one->graphs.contains(slot); }))
      common.insert(slot);
  }
  std::vector<Members> classes = ClassesBy(known, [&](const RoleMember& one) {
    std::vector<std::int64_t> graphs;
    for (const std::int32_t slot : common) graphs.push_back(one.graphs.at(slot));
    return graphs;
  });
  if (classes.size() == 1) return one_role;
  if (evidence_.has_sends || AreOfOneSize(classes, 2)) {
    if (known.size() < part.size()) return std::nullopt;
    return AreGroups(classes) ? std::optional(Numbered(
                                    classes, "they compile equal graphs, and are a process group"))
                              : Stages(part);
  }
  return HasOdd(known, common) ? std::optional(one_role) : std::nullopt;
}

// Whether one compiled a function that the other did not: none that may be another text of the file,
// that is left of a function after a graph break, or whose collectives pair it with others.
bool RoleFinder::HasOwnFunction(const Members& one, const Members& other) const {
  const std::set<std::string>& others = other.front()->functions;
  return std::any_of(one.front()->functions.begin(), one.front()->functions.end(),
                     [&](const std::string& function) {
                       const std::string name = WithoutLine(function);
                       const auto alike = others.lower_bound(name);
                       const bool may_be_alike =
                           alike != others.end() && alike->starts_with(name) &&
                           (!several_.contains(name) || others.contains(function));
                       return !name.starts_with("torch_dynamo_resume_in_") &&
                              !evidence_.with_collectives.contains(function) && !may_be_alike;
                     });
}

// The stages of a pipeline compile different graphs, or different functions.
std::optional<std::vector<Role>> RoleFinder::Stages(const Members& part) const {
  const std::vector<Members> classes =
      ClassesBy(part, [](const RoleMember& one) { return std::pair(one.functions, one.graphs); });
  if (!evidence_.has_sends || !AreOfOneSize(classes, 1)) return std::nullopt;
  return Numbered(classes, "they compile the same, in a job whose ranks send to each other");
}

// Whether most ranks agree in a graph in which some differ, or there are two kinds of ranks alone:
// parts of a model are of three kinds or more without a majority.
bool RoleFinder::HasOdd(const Members& members, const std::set<std::int32_t>& slots) const {
  return std::any_of(slots.begin(), slots.end(), [&](std::int32_t slot) {
    const std::vector<Members> classes =
        ClassesBy(members, [slot](const RoleMember& one) { return one.graphs.at(slot); });
    return classes.size() == 2 ||
           (classes.size() > 2 &&
            std::any_of(classes.begin(), classes.end(),
                        [&](const Members& one) { return 2 * one.size() > members.size(); }));
  });
}

// Ranks that have functions in common.
std::optional<std::vector<Role>> RoleFinder::Split(const Members& part, bool is_whole) const {
  const std::vector<Members> classes = ClassesBy(part, FunctionsOfOne);
  if (IsChain(classes) && (!evidence_.has_sends || classes.size() == 1))
    return SplitByGraphs(part, is_whole);
  const bool ends_early =
      std::any_of(part.begin(), part.end(), [](const RoleMember* one) { return one->ends_early; });
  if (evidence_.has_sends) return ends_early ? std::nullopt : Stages(part);
  if (AreOfOneSize(classes, 2) && AreGroups(classes))
    return Numbered(classes, "they compile the same functions, and are a process group");
  if (auto kinds = Kinds(classes)) return kinds;
  // One rank that differs from several equal ones has their role, unless each side has a function of
  // its own: it may be a learner among actors, or have taken another branch.
  const auto largest =
      std::max_element(classes.begin(), classes.end(),
                       [](const Members& a, const Members& b) { return a.size() < b.size(); });
  const bool has_odd = classes.size() == 2 && 2 * largest->size() > part.size();
  if (!has_odd ||
      (HasOwnFunction(classes[0], classes[1]) && HasOwnFunction(classes[1], classes[0])))
    return std::nullopt;
  return SplitByGraphs(part, is_whole);
}

std::optional<std::vector<Role>> RoleFinder::Find(const Members& members) const {
  const std::vector<Members> parts = Connected(members);
  if (parts.size() == 1) return Split(members, true);
  // Parts that called their compiles from the same function may be one rank that took another branch.
  std::vector<std::vector<Role>> roles_of_part;
  for (const Members& part : parts) {
    const bool is_apart =
        part.size() > 1 || std::none_of(members.begin(), members.end(), [&](const RoleMember* one) {
          return one != part.front() && HaveCommon(one->callers, part.front()->callers);
        });
    if (!is_apart) return std::nullopt;
    std::optional<std::vector<Role>> own = Split(part, false);
    if (!own) return std::nullopt;
    if (own->size() == 1)
      own->front().evidence = part.size() == 1
                                  ? "it compiles no function that other ranks compile"
                                  : "they compile no function that other ranks compile";
    roles_of_part.push_back(std::move(*own));
  }
  TellApart(parts, roles_of_part);
  std::vector<Role> roles;
  for (std::vector<Role>& own : roles_of_part)
    std::move(own.begin(), own.end(), std::back_inserter(roles));
  return roles;
}

}  // namespace

std::vector<Role> FindRoles(const std::vector<RoleMember>& members, const RoleEvidence& evidence) {
  if (members.empty()) return {};
  Members all;
  for (const RoleMember& one : members) all.push_back(&one);
  std::optional<std::vector<Role>> roles = RoleFinder(evidence, all).Find(all);
  if (!roles) {
    Role role = RoleOf(all, "unknown", "whether they are meant to do equal work is not known");
    role.is_sure = false;
    return {std::move(role)};
  }
  std::sort(roles->begin(), roles->end(),
            [](const Role& a, const Role& b) { return a.members.front() < b.members.front(); });
  return std::move(*roles);
}

std::optional<std::size_t> SliceOfMesh(const std::map<std::int64_t, bool>& is_one) {
  std::vector<bool> row;
  for (const auto& [rank, is_among] : is_one) row.push_back(is_among);
  const auto count = static_cast<std::size_t>(std::count(row.begin(), row.end(), true));
  if (count == 0 || count == row.size() || row.size() % count != 0) return std::nullopt;
  const std::size_t slices = row.size() / count;
  const auto first =
      static_cast<std::size_t>(std::find(row.begin(), row.end(), true) - row.begin());
  // As many neighbours are in one slice as later dimensions of the mesh have ranks.
  for (std::size_t block = 1; block <= count; ++block) {
    if (count % block != 0) continue;
    std::size_t at = 0;
    if (std::all_of(row.begin(), row.end(), [&](bool is_among) {
          return is_among == (at++ / block % slices == first / block);
        }))
      return first / block;
  }
  return std::nullopt;
}

}  // namespace tlparse

// Fields that answers about several ranks share.
#pragma once

#include <string>
#include <vector>

#include "cli/finding_fields.h"
#include "cli/only_field.h"
#include "facts/job/job.h"
#include "facts/job/job_tree.h"
#include "facts/job/status.h"

namespace tlparse {

template <>
struct LastOf<RankState> {
  static constexpr RankState value = RankState::kFailed;
};

// What functions of fields get beside the owner.
template <class Answer>
struct WithFindings {
  const Answer& answer;
  const Job& job;
  const std::vector<Finding>& findings;
  const std::string& only;  // empty: all ranks
};
template <class Answer>
const std::vector<Finding>& FindingsOf(const Answer&, const WithFindings<Answer>& in) {
  return in.findings;
}

inline constexpr auto kOnlyOf = [](const auto&, const auto& in) {
  return in.only.empty() ? std::nullopt : std::optional(in.only);
};

struct RankList {
  std::size_t count = 0;
  std::string ranks;
};

template <class Owner>
struct Participants {
  std::vector<RankIndex> Owner::*member;
  template <class Context>
  RankList operator()(const Owner& owner, const Context& in) const {
    return {(owner.*member).size(), in.job.FormatRanks(owner.*member)};
  }
};
template <class Owner>
Participants(std::vector<RankIndex> Owner::*) -> Participants<Owner>;

inline constexpr auto kNameOfRank = [](const auto& of, const auto& in) {
  return in.job.participants()[static_cast<std::size_t>(of.rank)].name;
};
inline constexpr auto kGraphTitle = [](const auto& of, const auto& in) {
  return in.answer.graphs.Title(in.job, of.graph_slot);
};

template <>
struct FieldsOf<RankList> {
  static constexpr std::string_view name = "ranks";
  static constexpr std::string_view description = "a set of participants";
  static constexpr FieldList list{
      Field{"count", &RankList::count, "how many participants"},
      Field{"ranks", &RankList::ranks,
            "\"0-3,6\"; participants without a rank by name (log:<stem>)"},
  };
};

template <>
struct FieldsOf<Job> {
  static constexpr FieldList list{
      Field{"run", &Job::run_name},
      Field{"launch", AtLeast<0>(&Job::launch)},
      Field{"launch_count", AtLeast<0>(&Job::launch_count)},
      Field{"participants", [](const Job& job) { return job.participants().size(); }},
  };
};

inline constexpr std::string_view kRolesDescription =
    "ranks that are meant to do equal work, by their lowest rank: they are compared within a role; "
    "empty: no process has a rank";

template <>
struct FieldsOf<TreeRole> {
  using Of = TreeRole;
  static constexpr FieldList list{
      Field{"name", &Of::name,
            "replicas or shards, pipeline part 1 of 2, shard 2 of 2, or the first function that "
            "only its "
            "members "
            "compile; unknown"},
      Field{"evidence", &Of::evidence, "what its members share"},
      Field{"is_sure", &Of::is_sure,
            "false: what sets its members apart may be a difference of roles"},
      Field{"count", [](const Of& of) { return of.ranks.size(); }},
      Field{"ranks", [](const Of& of) { return FormatRankRanges(of.ranks); }, "0-3,6"},
  };
};

}  // namespace tlparse

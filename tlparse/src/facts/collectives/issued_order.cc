// The order of collectives across groups.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "facts/collectives/issued_group.h"
#include "inputs/common/collective_op.h"

namespace tlparse {

void FindOrder(const IssuedJob& job, const std::set<std::size_t>& waiting,
               std::vector<CollectiveFinding>& findings) {
  struct At {
    std::size_t group;
    std::int64_t sequence;
    const IssuedCollective* one;
  };
  std::vector<std::vector<At>> order(job.ranks.size());
  for (std::size_t g = 0; g < job.groups.size(); ++g) {
    const IssuedGroup& group = job.groups[g];
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      for (const IssuedCollective& one : group.issued[i])
        order[group.ranks[i]].push_back({g, one.sequence, &one});
    }
  }
  for (std::vector<At>& one : order) {
    std::stable_sort(one.begin(), one.end(),
                     [](const At& a, const At& b) { return a.one->start_ns < b.one->start_ns; });
  }
  // Neighbours in a group; those of two groups are the ones that may differ.
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t i = 0; i + 1 < group.ranks.size(); ++i)
      pairs.emplace(group.ranks[i], group.ranks[i + 1]);
  }
  for (const auto& pair : pairs) {
    const std::size_t a = pair.first, b = pair.second;
    std::map<std::pair<std::size_t, std::int64_t>, std::size_t> place;
    for (std::size_t i = 0; i < order[a].size(); ++i)
      place.try_emplace({order[a][i].group, order[a][i].sequence}, i);
    const At* before = nullptr;
    std::size_t before_place = 0;
    for (const At& now : order[b]) {
      const auto found = place.find({now.group, now.sequence});
      // Another call of the same number is a finding of its group.
      if (found == place.end() || !order[a][found->second].one->MayBeCallOf(*now.one)) continue;
      if (before != nullptr && before->group != now.group && found->second < before_place &&
          before->one->thread == now.one->thread &&
          order[a][found->second].one->thread == order[a][before_place].one->thread) {
        const bool is_nccl =
            BackendOf(now.one->op) == "nccl" || BackendOf(before->one->op) == "nccl";
        const bool is_gloo =
            BackendOf(now.one->op) == "gloo" && BackendOf(before->one->op) == "gloo";
        CollectiveFinding finding;
        finding.kind = FindingKind::kCollectiveDivergence;
        const IssuedCollective* const calls[] = {order[a][found->second].one,
                                                 order[a][before_place].one, now.one, before->one};
        const bool are_open = std::all_of(std::begin(calls), std::end(calls),
                                          [](const auto* one) { return one->IsOnDevice(); });
        const bool is_stuck = are_open || (waiting.count(a) > 0 && waiting.count(b) > 0);
        finding.severity = is_stuck  ? FindingSeverity::kError
                           : is_nccl ? FindingSeverity::kWarning
                                     : FindingSeverity::kNote;
        const std::string first =
            fmt::format("#{} of {}", now.sequence, job.groups[now.group].Title());
        const std::string second =
            fmt::format("#{} of {}", before->sequence, job.groups[before->group].Title());
        finding.title = fmt::format("rank {} issued {} before {}, rank {} the other way round{}",
                                    job.ranks[a].name, first, second, job.ranks[b].name,
                                    are_open ? "; neither has ended on either rank" : "");
        finding.detail = fmt::format(
            "rank {}: {}, then {}; rank {}: {}, then {}. {}", job.ranks[a].name, calls[0]->Title(),
            calls[1]->Title(), job.ranks[b].name, calls[3]->Title(), calls[2]->Title(),
            is_nccl   ? "With NCCL this can be a deadlock"
            : is_gloo ? "Legal with this backend; with NCCL it can be a deadlock"
                      : "The backend is not recorded: with NCCL this can be a "
                        "deadlock");
        finding.ranks = {a, b};
        finding.group = job.groups[now.group].name;
        finding.sequence = now.sequence;
        finding.label = now.one->label;
        finding.function = now.one->function;
        finding.file = now.one->file;
        finding.line = now.one->line;
        finding.since_us = now.one->start_ns / 1000;
        finding.cause = "collectives of different groups are issued in different orders";
        finding.advice = "issue collectives of overlapping groups in one order on all ranks";
        findings.push_back(std::move(finding));
        return;  // one cause, said once
      }
      if (before == nullptr || found->second > before_place) {
        before = &now;
        before_place = found->second;
      }
    }
  }
}

}  // namespace tlparse

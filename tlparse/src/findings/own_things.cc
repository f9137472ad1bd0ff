// Differences that every rank, or each of several groups of ranks, has: parts of a model, or a
// constant computed from the rank. No rank is reported as the odd one.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "facts/cache/cause.h"
#include "facts/ranks/rank_votes.h"
#include "findings/divergences.h"

namespace tlparse {

bool IsOfConfiguration(const RankAspect& aspect) {
  return aspect.area == AspectArea::kBuild || aspect.area == AspectArea::kOptions ||
         aspect.cause == CauseKind::kBuild || aspect.cause == CauseKind::kConfig ||
         aspect.cause == CauseKind::kSetting;
}

namespace {

bool IsOfCompiles(const RankAspect& aspect) {
  return aspect.area == AspectArea::kCompiles && aspect.cause == CauseKind::kMissingCompile;
}

// Ranks with equal ones differ from the reference alike.
std::string GroupOf(const RankAspect& aspect) { return aspect.text + '\n' + aspect.group; }

std::string TextOfAspects(const RankClass& one) {
  std::string text;
  for (const RankAspect& aspect : one.aspects)
    text += fmt::format("{}:{}\n", Name(aspect.area), aspect.text);
  return text;
}

}  // namespace

// Takes these aspects out of the classes, reports them once, and joins classes that differ in
// nothing else.
void DivergenceFinder::TakeOutOwnThings() {
  // What a class has of a thing may be several differences.
  std::map<Thing, std::set<std::string>> texts;
  for (const RankClass& one : classes_) {
    std::map<Thing, std::string> own;
    for (const RankAspect& aspect : one.aspects) {
      if (IsVote(aspect) && !one.is_damaged) own[ThingOf(aspect)] += GroupOf(aspect) + '\n';
    }
    for (auto& [thing, text] : own) texts[thing].insert(std::move(text));
  }
  // The reference and two others.
  const auto is_own = [&](const RankAspect& aspect) {
    if (!IsVote(aspect) || IsOfConfiguration(aspect) || aspect.cause == CauseKind::kProcessGroup ||
        texts[ThingOf(aspect)].size() < 2)
      return false;
    return !aspect.has_majority || (aspect.area == AspectArea::kCompiles && !IsOfCompiles(aspect));
  };
  std::vector<RankAspect> own;
  bool has_parts = false;  // of a model
  for (const RankClass& one : classes_) {
    for (const RankAspect& aspect : one.aspects) {
      if (!is_own(aspect)) continue;
      has_parts = has_parts ||
                  ((aspect.area == AspectArea::kGraphs || aspect.area == AspectArea::kCompiles) &&
                   !aspect.is_of_numbers);
      own.push_back(aspect);
    }
  }
  if (own.empty()) return;
  std::map<std::string, std::size_t> known;
  std::vector<RankClass> joined;
  for (RankClass& one : classes_) {
    std::erase_if(one.aspects, [&](const RankAspect& aspect) {
      return is_own(aspect) || (has_parts && IsOfCompiles(aspect));
    });
    const auto [found, is_new] = known.try_emplace(TextOfAspects(one), joined.size());
    if (is_new) {
      joined.push_back(std::move(one));
      continue;
    }
    std::vector<RankIndex>& ranks = joined[found->second].ranks;
    ranks.insert(ranks.end(), one.ranks.begin(), one.ranks.end());
    std::sort(ranks.begin(), ranks.end());
  }
  classes_ = std::move(joined);
  std::size_t groups = 0;
  for (const RankAspect& one : own) groups = std::max(groups, texts[ThingOf(one)].size() + 1);
  TellOwnThings(own, groups);
}

// Where no side has the majority, a difference that several classes share is reported once.
void DivergenceFinder::JoinAlike() {
  std::map<std::pair<Thing, std::string>, std::set<std::size_t>> who;
  const auto key_of = [](const RankAspect& one) { return std::pair(ThingOf(one), GroupOf(one)); };
  for (std::size_t i = 1; i < classes_.size(); ++i) {
    for (const RankAspect& aspect : classes_[i].aspects) {
      if (IsVote(aspect) && !aspect.has_majority && !classes_[i].is_damaged)
        who[key_of(aspect)].insert(i);
    }
  }
  std::map<std::set<std::size_t>, RankClass> joint;
  for (std::size_t i = 1; i < classes_.size(); ++i) {
    std::erase_if(classes_[i].aspects, [&](const RankAspect& aspect) {
      const auto found = who.find(key_of(aspect));
      if (found == who.end() || found->second.size() < 2 || !found->second.contains(i))
        return false;
      RankClass& all = joint[found->second];
      if (*found->second.begin() == i) all.aspects.push_back(aspect);
      return true;
    });
  }
  for (auto& [indices, all] : joint) {
    for (const std::size_t i : indices)
      all.ranks.insert(all.ranks.end(), classes_[i].ranks.begin(), classes_[i].ranks.end());
    std::sort(all.ranks.begin(), all.ranks.end());
    classes_.push_back(std::move(all));
  }
}

void DivergenceFinder::TellOwnThings(const std::vector<RankAspect>& own, std::size_t groups) {
  std::set<std::int32_t> slots;
  for (const RankAspect& one : own) slots.insert(one.slots.begin(), one.slots.end());
  Finding& finding = context_.Add(FindingKind::kGraphDivergence, FindingSeverity::kNote);
  context_.SetRanks(finding, context_.All());
  std::vector<std::int32_t> ordered(slots.begin(), slots.end());
  std::sort(ordered.begin(), ordered.end(), [&](std::int32_t a, std::int32_t b) {
    return job_.SlotPosition(a) < job_.SlotPosition(b);
  });
  const std::string where = context_.SetCompiles(finding, ordered, context_.All());
  const std::size_t count = job_.participants().size();
  const RankAspect& first = own.front();
  const bool is_of_inputs = first.cause == CauseKind::kInputs || first.is_of_sizes;
  const std::string in = where.empty() ? std::string() : (is_of_inputs ? " of " : " in ") + where;
  finding.title = groups >= count
                      ? fmt::format("Each of the {} ranks has {} of its own{}", count,
                                    is_of_inputs                        ? "inputs"
                                    : first.area == AspectArea::kGraphs ? "a graph"
                                                                        : "a version",
                                    in)
                      : fmt::format("The {} ranks have {} different {}{}", count, groups,
                                    is_of_inputs                        ? "inputs"
                                    : first.area == AspectArea::kGraphs ? "graphs"
                                                                        : "versions",
                                    in);
  finding.cause = "ranks fall into groups";
  if (!first.file.empty()) finding.place = FindingPlace{first.file, first.line, {}};
  finding.detail = fmt::format(
      "The first that differs: {}. {} 'tlparse ranks' has the groups and what sets them apart.",
      first.text,
      first.is_of_sizes     ? "As where the ranks get data of other sizes."
      : first.is_of_numbers ? "As where the rank is part of a computation."
                            : "As in a job whose ranks hold parts of a model each.");
  finding.query = "SELECT * FROM rank_summary WHERE " + context_.OfLaunch();
}

}  // namespace tlparse

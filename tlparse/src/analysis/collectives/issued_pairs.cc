// Collectives of one number that are not one call: on every rank the same number should be the same
// collective.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "analysis/collectives/issued_group.h"
#include "analysis/diff/sequence_diff.h"

namespace tlparse {
namespace {

using IssuedCalls = std::vector<const IssuedCollective*>;

// Tensors of these must be of one size on all ranks; others may legally differ.
bool NeedsEqualSizes(std::string_view plain_op) {
  return plain_op == "allreduce" || plain_op == "broadcast" || plain_op == "reduce";
}

std::int64_t Elements(std::string_view shapes) {
  double elements = 0;
  std::size_t at = 0;
  while ((at = shapes.find('[', at + 1)) != shapes.npos) {
    double product = 1;
    double number = 0;
    bool has_digit = false;
    for (++at; at < shapes.size(); ++at) {
      const char c = shapes[at];
      if (c >= '0' && c <= '9') {
        number = number * 10 + (c - '0');
        has_digit = true;
      } else {
        if (has_digit) product *= number;
        number = 0;
        has_digit = false;
        if (c == ']') break;
      }
    }
    elements += product;
  }
  return elements < 9e18 ? static_cast<std::int64_t>(elements) : -1;
}

// What must be alike on all ranks.
std::string Signature(const IssuedCalls& all) {
  std::string signature;
  for (const IssuedCollective* one : all) {
    signature += one->plain_op;
    if (NeedsEqualSizes(one->plain_op))
      signature +=
          fmt::format("({} {})", one->shapes.empty() ? -1 : Elements(one->shapes), one->dtype);
    signature += ';';
  }
  return signature;
}

// What distinguishes calls of the program: op, line, function and reduction.
std::string Identity(const IssuedCollective& one) {
  return fmt::format("{}|{}|{}|{}", one.plain_op, one.Place(), one.function, one.reduce_op);
}

// Those from the number `first` on.
IssuedCalls FromNumber(const std::vector<IssuedCollective>& all, std::int64_t first) {
  IssuedCalls list;
  for (const IssuedCollective& one : all) {
    if (one.sequence >= first) list.push_back(&one);
  }
  return list;
}

// Of the calls from `at` on: how many agree at the same place, and how many in order.
std::pair<std::size_t, std::size_t> CountAgreeing(const IssuedCalls& a, const IssuedCalls& b,
                                                  std::size_t at) {
  constexpr std::size_t kMost = 512;
  const std::size_t count_a = std::min(a.size() - at, kMost),
                    count_b = std::min(b.size() - at, kMost);
  const auto agree = [&](std::size_t x, std::size_t y) {
    return Identity(*a[at + x]) == Identity(*b[at + y]);
  };
  std::size_t in_place = 0, in_order = 0;
  for (std::size_t k = 0; k < std::min(count_a, count_b); ++k) in_place += agree(k, k);
  for (const EditStep& step : AlignSequences(count_a, count_b, agree))
    in_order += step.kind == EditStep::Kind::kKeep;
  return {in_place, in_order};
}

// What to look at where two ranks issued different things under one number.
std::string CompareAdvice(const IssuedCollective& odd, const IssuedCollective& usual) {
  constexpr std::string_view kBranch = "look for a branch that depends on the rank or on data";
  if (odd.file.empty() && usual.file.empty()) return std::string(kBranch);
  if (odd.file != usual.file || odd.line != usual.line)
    return fmt::format("compare {} with {}: {}", odd.file.empty() ? "the call" : odd.Place(),
                       usual.file.empty() ? "that of the others" : usual.Place(), kBranch);
  if (odd.plain_op != usual.plain_op)
    return fmt::format(
        "both calls are at {}: look at what is called there on each rank, and at "
        "the calls before it",
        odd.Place());
  if (odd.reduce_op != usual.reduce_op)
    return fmt::format("both calls are at {}: look at the reduction that it is given on each rank",
                       odd.Place());
  return fmt::format(
      "both calls are at {}: look at the size and type of what it is given on each "
      "rank",
      odd.Place());
}

}  // namespace

std::vector<Positions> GroupFinder::Classes(std::int64_t sequence) const {
  std::map<std::string, Positions> by_key;
  for (const std::size_t position : Holders(sequence))
    by_key[Signature(group_.At(position, sequence))].push_back(position);
  std::vector<Positions> classes;
  for (auto& [text, positions] : by_key) classes.push_back(std::move(positions));
  // The largest is what the others are compared with; of equal ones that with the lowest rank.
  std::sort(classes.begin(), classes.end(), [](const Positions& a, const Positions& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front() < b.front();
  });
  return classes;
}

// Another op, size or type under one number.
bool GroupFinder::FindOther(std::int64_t sequence) {
  const std::vector<Positions> classes = Classes(sequence);
  if (classes.size() < 2) return false;
  const IssuedCollective& usual = *group_.At(classes[0].front(), sequence).front();
  const IssuedCollective& odd = *group_.At(classes[1].front(), sequence).front();
  CollectiveFinding finding;
  finding.kind = FindingKind::kCollectiveDivergence;
  finding.severity = FindingSeverity::kError;
  const bool same_op = usual.plain_op == odd.plain_op;
  const auto name = [](const IssuedCollective& one) {
    return one.op.substr(one.op.rfind(':') + 1);
  };
  finding.title =
      same_op
          ? fmt::format("{}: {} #{} of {} has another size or type than on {}", Ranks(classes[1]),
                        name(odd), sequence, group_.Title(), Ranks(classes[0]))
          : fmt::format("{} issued {} where {} issued {}: #{} of {}", Ranks(classes[1]), name(odd),
                        Ranks(classes[0]), name(usual), sequence, group_.Title());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const IssuedCollective& one = *group_.At(classes[i].front(), sequence).front();
    finding.detail += fmt::format("{}{}: {}", i == 0 ? "" : "; ", Ranks(classes[i]), one.Title());
    if (i > 0)
      for (const std::size_t position : classes[i]) finding.ranks.push_back(group_.ranks[position]);
  }
  Positions waiting;
  for (const std::size_t position : Holders(sequence)) {
    const IssuedCollective& one = *group_.At(position, sequence).front();
    if (one.IsOpen()) waiting.push_back(position);
  }
  if (!waiting.empty())
    finding.detail +=
        fmt::format(". {} had not finished it when the recorder was dumped", Ranks(waiting));
  SetPlace(finding, odd);
  finding.cause = "the ranks of a group must issue the same collectives in the same order";
  finding.advice = CompareAdvice(odd, usual);
  std::sort(finding.ranks.begin(), finding.ranks.end());
  findings_.push_back(std::move(finding));
  return true;
}

// The rank to compare with: one whose collectives most others issued too; without such a class, the one that issued most.
std::size_t GroupFinder::Reference() const {
  std::size_t reference = 0;
  for (std::size_t i = 1; i < group_.ranks.size(); ++i) {
    if (group_.issued[i].size() > group_.issued[reference].size()) reference = i;
  }
  std::map<std::string, Positions> by_sequence;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    std::string all;
    for (const IssuedCollective& one : group_.issued[i])
      all += fmt::format("{}:{};", one.sequence, Identity(one));
    by_sequence[all].push_back(i);
  }
  std::size_t most = 1;
  for (const auto& [text, positions] : by_sequence) {
    if (positions.size() <= most) continue;
    most = positions.size();
    reference = positions.front();
  }
  return reference;
}

// The same op and size under one number, but not the same call of the program: the numbers of one
// rank are shifted, or the reduction is another one.
bool GroupFinder::FindMispaired() {
  const std::size_t reference = Reference();
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    if (i != reference && FindMispairedWith(reference, i)) return true;
  }
  return false;
}

bool GroupFinder::FindMispairedWith(std::size_t reference, std::size_t position) {
  const std::int64_t first = std::max(First(reference), First(position));
  const IssuedCalls usual_list = FromNumber(group_.issued[reference], first);
  const IssuedCalls odd_list = FromNumber(group_.issued[position], first);
  std::size_t at = 0;
  while (at < odd_list.size() && at < usual_list.size() &&
         Identity(*odd_list[at]) == Identity(*usual_list[at]))
    ++at;
  if (at >= odd_list.size() || at >= usual_list.size() ||
      odd_list[at]->sequence != usual_list[at]->sequence)
    return false;
  const IssuedCollective& odd = *odd_list[at];
  const IssuedCollective& usual = *usual_list[at];
  const bool other_reduction =
      !odd.reduce_op.empty() && !usual.reduce_op.empty() && odd.reduce_op != usual.reduce_op;
  // Lines may legally differ by rank ("if rank == 0: broadcast(…) else: broadcast(…)"). Numbers
  // are shifted only if more calls agree at other numbers than at the same ones.
  const auto [in_place, in_order] = CountAgreeing(usual_list, odd_list, at);
  const bool is_shifted = !odd.file.empty() && !usual.file.empty() && in_order > in_place;
  if (!other_reduction && !is_shifted) return false;
  Positions odd_ranks, usual_ranks;
  for (const std::size_t other : Holders(odd.sequence)) {
    const std::string identity = Identity(*group_.At(other, odd.sequence).front());
    if (identity == Identity(odd)) odd_ranks.push_back(other);
    if (identity == Identity(usual)) usual_ranks.push_back(other);
  }
  CollectiveFinding finding;
  finding.kind = FindingKind::kCollectiveDivergence;
  finding.severity = FindingSeverity::kError;
  finding.title =
      usual_ranks.size() > odd_ranks.size()
          ? fmt::format("{} silently paired another call with that of {}: #{} of {}",
                        Ranks(odd_ranks), Ranks(usual_ranks), odd.sequence, group_.Title())
          : fmt::format("{} and {} silently paired different calls: #{} of {}", Ranks(usual_ranks),
                        Ranks(odd_ranks), odd.sequence, group_.Title());
  finding.detail = fmt::format(
      "{}: {}; {}: {}. Op and size agree, so the collective completes with wrong numbers",
      Ranks(odd_ranks), odd.Title(), Ranks(usual_ranks), usual.Title());
  if (is_shifted)
    finding.detail += fmt::format("; {} of the next calls agree at other numbers, {} at the same",
                                  in_order, in_place);
  SetPlace(finding, odd);
  for (const std::size_t other : odd_ranks) finding.ranks.push_back(group_.ranks[other]);
  finding.cause =
      other_reduction ? "the reduction differs" : "a collective was left out or added on one side";
  finding.advice = CompareAdvice(odd, usual);
  findings_.push_back(std::move(finding));
  return true;
}

}  // namespace tlparse

// Collectives of one number that are not one call: on every rank the same number should be the same
// collective.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "facts/collectives/issued_batches.h"
#include "facts/collectives/issued_callers.h"
#include "facts/collectives/issued_group.h"
#include "facts/collectives/issued_lines.h"
#include "facts/text/sequence_diff.h"

namespace tlparse {
namespace {

using IssuedCalls = std::vector<const IssuedCollective*>;

// Tensors of these must be of one size on all ranks; others may legally differ. All-gathers and
// reduce-scatters of lists may be uneven, those of one tensor may not.
bool NeedsEqualSizes(const IssuedCollective& one) {
  if (one.plain_op == "allreduce" || one.plain_op == "broadcast" || one.plain_op == "reduce" ||
      one.plain_op == "gather")
    return true;
  const bool is_of_shards = one.plain_op == "allgather" || one.plain_op == "reducescatter";
  return is_of_shards &&
         (one.op.find("_base") != one.op.npos || one.op.find("tensor") != one.op.npos);
}

// The type of these must be one on all ranks; of a scatter most ranks give no tensor.
bool NeedsEqualTypes(std::string_view plain_op) {
  return plain_op == "allgather" || plain_op == "reducescatter" || plain_op == "alltoall";
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
      if (IsDigit(c)) {
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

// What distinguishes calls of the program: op, line, function and reduction.
std::string Identity(const IssuedCollective& one) {
  return fmt::format("{}|{}|{}|{}", one.plain_op, one.Place(), one.function, one.reduce_op);
}

// What must be alike of one call on all ranks.
std::string SignatureOf(const IssuedCollective& one) {
  if (NeedsEqualSizes(one))
    return fmt::format("{}({} {})", one.plain_op, one.shapes.empty() ? -1 : Elements(one.shapes),
                       one.dtype);
  return NeedsEqualTypes(one.plain_op) ? fmt::format("{}({})", one.plain_op, one.dtype)
                                       : one.plain_op;
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
    return a[at + x]->MayBeCallOf(*b[at + y]);
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

bool IssuesFrom(const IssuedCalls& list, const IssuedCollective& call) {
  return std::any_of(list.begin(), list.end(), [&](const IssuedCollective* one) {
    return one->file == call.file && one->line == call.line;
  });
}

// Before two ranks issued other calls under one number, one issued some from a line from which the other
// issues nothing, while that one's were from a line that both have: they were added.
void TellAdded(const IssuedGroup& group, std::int64_t first, const std::vector<std::string>& who,
               CollectiveFinding& finding) {
  const IssuedCalls a = FromNumber(group.issued[0], first), b = FromNumber(group.issued[1], first);
  const std::size_t count = std::min(a.size(), b.size());
  std::size_t at = 0;
  while (at < count && a[at]->MayBeCallOf(*b[at])) ++at;
  if (at >= count || a[at]->sequence != b[at]->sequence || a[at]->sequence >= finding.sequence ||
      a[at]->file.empty() || b[at]->file.empty())
    return;
  const bool is_of_a = !IssuesFrom(b, *a[at]), is_of_b = !IssuesFrom(a, *b[at]);
  const auto [in_place, in_order] = CountAgreeing(a, b, at);
  if (is_of_a == is_of_b || in_order <= in_place) return;
  const IssuedCollective& added = is_of_a ? *a[at] : *b[at];
  finding.title =
      fmt::format("{} issued {} #{} at {}, from where {} issues nothing; then {}", who[is_of_b],
                  added.PrintedOp(), added.sequence, added.Place(), who[is_of_a], finding.title);
  finding.detail += fmt::format(". Before #{} their calls agree", added.sequence);
  finding.ranks = {group.ranks[is_of_b]};
  SetPlace(finding, group, added);
  finding.advice = fmt::format("look for what calls {} on {} alone", added.Place(), who[is_of_b]);
}

}  // namespace

std::string IssuedSignature(const IssuedCalls& all) {
  std::string signature;
  for (const IssuedCollective* one : all) signature += SignatureOf(*one) + ';';
  return signature;
}

// The first member in which two classes differ, of a call that is a batch; 0 of a single call.
std::size_t GroupFinder::OddMember(const std::vector<Positions>& classes,
                                   std::int64_t sequence) const {
  const IssuedCalls usual = group_.At(classes[0].front(), sequence);
  const IssuedCalls odd = group_.At(classes[1].front(), sequence);
  std::size_t member = 0;
  while (member + 1 < std::min(usual.size(), odd.size()) &&
         SignatureOf(*usual[member]) == SignatureOf(*odd[member]))
    ++member;
  return member;
}

// Whether the second class has only begun to record the batch of the first, or the other way round.
bool GroupFinder::IsBegun(const std::vector<Positions>& classes, std::int64_t sequence) const {
  IssuedCalls fewer = group_.At(classes[0].front(), sequence);
  IssuedCalls more = group_.At(classes[1].front(), sequence);
  if (fewer.size() > more.size()) std::swap(fewer, more);
  return classes.size() == 2 && fewer.size() < more.size() && IsEndOfBatch(*more.back()) &&
         !IsEndOfBatch(*fewer.back()) && IssuedSignature(more).starts_with(IssuedSignature(fewer));
}

// That member of the rank at a position; the last one, if its batch has fewer.
const IssuedCollective& GroupFinder::Member(std::size_t position, std::int64_t sequence,
                                            std::size_t member) const {
  const IssuedCalls all = group_.At(position, sequence);
  return *all[std::min(member, all.size() - 1)];
}

std::vector<Positions> GroupFinder::Classes(std::int64_t sequence) const {
  std::map<std::string, Positions> by_key;
  for (const std::size_t position : Holders(sequence))
    by_key[IssuedSignature(group_.At(position, sequence))].push_back(position);
  std::vector<Positions> classes;
  for (auto& [text, positions] : by_key) classes.push_back(std::move(positions));
  // The largest is what the others are compared with; of equal ones that with the lowest rank.
  std::sort(classes.begin(), classes.end(), [](const Positions& a, const Positions& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front() < b.front();
  });
  return classes;
}

// In what calls of one op differ: "size", "type", "size and type".
std::string GroupFinder::DifferingParts(const std::vector<Positions>& classes,
                                        std::int64_t sequence, std::size_t member) const {
  const IssuedCollective& usual = Member(classes[0].front(), sequence, member);
  bool has_size = false, has_type = false;
  for (const Positions& one : classes) {
    const IssuedCollective& call = Member(one.front(), sequence, member);
    has_size = has_size || Elements(call.shapes) != Elements(usual.shapes);
    has_type = has_type || call.dtype != usual.dtype;
  }
  return has_size && has_type ? "size and type" : has_type ? "type" : "size";
}

// "rank 2 issued barrier where ranks 0,1,3 issued all_reduce"
std::string GroupFinder::DifferenceTitle(const std::vector<Positions>& classes,
                                         std::int64_t sequence, std::size_t member) const {
  const auto name = [&](const Positions& one) {
    return Member(one.front(), sequence, member).PrintedOp();
  };
  const auto plain = [&](const Positions& one) {
    return Member(one.front(), sequence, member).plain_op;
  };
  const bool is_even = classes[0].size() == classes[1].size();
  if (!is_even) {
    return plain(classes[0]) == plain(classes[1])
               ? fmt::format(
                     "{} issued {} with another {} than {}", Ranks(classes[1]), name(classes[1]),
                     DifferingParts({classes[0], classes[1]}, sequence, member), Ranks(classes[0]))
               : fmt::format("{} issued {} where {} issued {}", Ranks(classes[1]), name(classes[1]),
                             Ranks(classes[0]), name(classes[0]));
  }
  Positions all;
  std::string each;
  bool is_one_op = true;
  for (const Positions& one : classes) {
    all.insert(all.end(), one.begin(), one.end());
    each += each.empty() ? fmt::format("{} issued {}", Ranks(one), name(one))
                         : fmt::format(", {} {}", Ranks(one), name(one));
    is_one_op &= plain(one) == plain(classes[0]);
  }
  std::sort(all.begin(), all.end());
  const std::string part = DifferingParts(classes, sequence, member);
  return is_one_op ? fmt::format("{} issued {} with different {}", Ranks(all), name(classes[0]),
                                 part == "size"   ? "sizes"
                                 : part == "type" ? "types"
                                                  : "sizes and types")
                   : each;
}

// Another op, size or type under one number.
Result<bool> GroupFinder::FindOther(std::int64_t sequence) {
  const std::vector<Positions> classes = Classes(sequence);
  if (classes.size() < 2 || IsBegun(classes, sequence)) return false;
  ASSIGN_OR_RETURN(const bool is_of_threads, FindThreads(classes, sequence));
  if (is_of_threads) return true;
  const std::size_t member = OddMember(classes, sequence);
  const bool is_batch = group_.At(classes[0].front(), sequence).size() > 1;
  const IssuedCollective& usual = Member(classes[0].front(), sequence, member);
  const IssuedCollective& odd = Member(classes[1].front(), sequence, member);
  CollectiveFinding finding;
  finding.kind = FindingKind::kCollectiveDivergence;
  finding.severity = FindingSeverity::kError;
  // Where no side is the largest, none is the odd one.
  const bool is_even = classes[0].size() == classes[1].size();
  const std::size_t usual_members = MembersOfBatch(group_.At(classes[0].front(), sequence));
  const std::size_t odd_members = MembersOfBatch(group_.At(classes[1].front(), sequence));
  const bool is_shorter =
      usual_members != odd_members && member >= std::min(usual_members, odd_members);
  finding.title =
      is_shorter
          ? fmt::format("{} issued a batch of {} calls, {} one of {}: #{} of {}", Ranks(classes[1]),
                        odd_members, Ranks(classes[0]), usual_members, sequence, group_.Title())
          : fmt::format(
                "{}: {}#{} of {}", DifferenceTitle(classes, sequence, member),
                is_batch ? fmt::format("member {} of the batch ", member + 1) : std::string(),
                sequence, group_.Title());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const IssuedCollective& one = Member(classes[i].front(), sequence, member);
    finding.detail +=
        fmt::format("{}{}: {}", i == 0 ? "" : "; ", Ranks(classes[i]),
                    is_shorter ? BatchTitle(group_.At(classes[i].front(), sequence)) : one.Title());
    if (i > 0 || is_even)
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
  // Where neither is the odd one: the call that is new, else the line of the user's.
  const bool is_of_usual = is_even && !IsUserFile(odd.UserFile()) && IsUserFile(usual.UserFile());
  const IssuedCollective* const fresh = is_even ? NewCall(group_, odd, usual) : nullptr;
  SetPlace(finding, group_, fresh != nullptr ? *fresh : is_of_usual ? usual : odd);
  if (fresh != nullptr)
    finding.detail += fmt::format(". No rank had issued this {} before", fresh->PrintedOp());
  finding.cause = "the ranks of a group must issue the same collectives in the same order";
  finding.advice = CompareAdvice(odd, usual);
  if (!is_even && !TellShift(classes, sequence, finding)) TellLeftOut(classes, sequence, finding);
  if (group_.ranks.size() == 2)
    TellAdded(group_, std::max(First(0), First(1)), {Ranks({0}), Ranks({1})}, finding);
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
  const auto differ = [&](std::size_t at) { return !odd_list[at]->MayBeCallOf(*usual_list[at]); };
  const auto other_reduction_at = [&](std::size_t at) {
    return !odd_list[at]->reduce_op.empty() && !usual_list[at]->reduce_op.empty() &&
           odd_list[at]->reduce_op != usual_list[at]->reduce_op;
  };
  const std::size_t count = std::min(odd_list.size(), usual_list.size());
  std::size_t at = 0;
  while (at < count && !differ(at)) ++at;
  if (at >= count) return false;
  // Lines may legally differ by rank ("if rank == 0: broadcast(…) else: broadcast(…)"). Numbers
  // are shifted only if more calls agree at other numbers than at the same ones.
  const auto [in_place, in_order] = CountAgreeing(usual_list, odd_list, at);
  const bool is_shifted =
      !odd_list[at]->file.empty() && !usual_list[at]->file.empty() && in_order > in_place;
  while (!is_shifted && at < count && !other_reduction_at(at)) ++at;
  if (at >= count || odd_list[at]->sequence != usual_list[at]->sequence) return false;
  const IssuedCollective& odd = *odd_list[at];
  const IssuedCollective* usual = usual_list[at];
  Positions odd_ranks, usual_ranks;
  for (const std::size_t other : Holders(odd.sequence)) {
    const IssuedCollective& one = *group_.At(other, odd.sequence).front();
    const bool may_be_odd = one.MayBeCallOf(odd), may_be_usual = one.MayBeCallOf(*usual_list[at]);
    if (may_be_odd && !may_be_usual) odd_ranks.push_back(other);
    if (!may_be_usual || may_be_odd) continue;
    usual_ranks.push_back(other);
    if (usual->file.empty() && !one.file.empty()) usual = &one;
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
      Ranks(odd_ranks), odd.Title(), Ranks(usual_ranks), usual->Title());
  if (is_shifted)
    finding.detail += fmt::format("; {} of the next calls agree at other numbers, {} at the same",
                                  in_order, in_place);
  SetPlace(finding, group_, odd);
  if (odd_ranks.size() >= usual_ranks.size())
    odd_ranks.insert(odd_ranks.end(), usual_ranks.begin(), usual_ranks.end());
  std::sort(odd_ranks.begin(), odd_ranks.end());
  for (const std::size_t other : odd_ranks) finding.ranks.push_back(group_.ranks[other]);
  finding.cause = other_reduction_at(at) ? "the reduction differs"
                                         : "a collective was left out or added on one side";
  finding.advice = CompareAdvice(odd, *usual);
  findings_.push_back(std::move(finding));
  return true;
}

}  // namespace tlparse

// Calls of one rank that pair with others' from some number on, since it issued one more or one less.
#include <fmt/format.h>

#include <algorithm>

#include "facts/collectives/issued_group.h"

namespace tlparse {
namespace {

bool MayBeOne(const IssuedCollective& a, const IssuedCollective& b) {
  return !a.file.empty() && !b.file.empty() && a.MayBeCallOf(b);
}

}  // namespace

const IssuedCollective* GroupFinder::Single(std::size_t position, std::int64_t number) const {
  const std::vector<const IssuedCollective*> own = group_.At(position, number);
  return own.size() == 1 ? own.front() : nullptr;
}

// What a rank issued before where the calls had been the same for longest as those before `number`; null:
// none were.
const IssuedCollective* GroupFinder::ExpectedAt(std::size_t position, std::int64_t number) const {
  constexpr std::int64_t kMost = 64;
  const IssuedCollective* expected = nullptr;
  std::int64_t longest = 0;
  for (std::int64_t at = First(position) + 1; at < number; ++at) {
    std::int64_t length = 0;
    while (length < kMost) {
      const IssuedCollective* const then = Single(position, at - 1 - length);
      const IssuedCollective* const now = Single(position, number - 1 - length);
      if (then == nullptr || now == nullptr || !MayBeOne(*then, *now)) break;
      ++length;
    }
    const IssuedCollective* const next = Single(position, at);
    if (next == nullptr || length == 0 || length < longest) continue;
    longest = length;
    expected = next;
  }
  return expected;
}

bool GroupFinder::TellLeftOut(const std::vector<Positions>& classes, std::int64_t sequence,
                              CollectiveFinding& finding) const {
  const std::size_t usual = classes[0].front(), odd = classes[1].front();
  // Back to the first of the calls before it that are other ones.
  std::int64_t first = sequence;
  for (; first > 0; --first) {
    const IssuedCollective *const a = Single(usual, first - 1), *const b = Single(odd, first - 1);
    if (a == nullptr || b == nullptr || a->file.empty() || b->file.empty() || a->MayBeCallOf(*b))
      break;
  }
  if (first == sequence || Single(usual, sequence) == nullptr || Single(odd, sequence) == nullptr)
    return false;
  const IssuedCollective &own = *Single(odd, first), &others = *Single(usual, first);
  // Ranks may always issue one call from lines of their own.
  for (std::int64_t at = std::max(First(usual), First(odd)); at < first; ++at) {
    const IssuedCollective *const a = Single(usual, at), *const b = Single(odd, at);
    if (a != nullptr && b != nullptr && MayBeOne(*a, others) && MayBeOne(*b, own)) return false;
  }
  // What it issued itself after the same calls before.
  const IssuedCollective* const expected = ExpectedAt(odd, first);
  if (expected == nullptr || !MayBeOne(*expected, others) || MayBeOne(*expected, own)) return false;
  finding.title = fmt::format(
      "{} left out what {} issued from #{} of {} on: {} at {}; {} went on to {} at {}",
      Ranks(classes[1]), Ranks(classes[0]), first, group_.Title(), others.PrintedOp(),
      others.Place(), classes[1].size() > 1 ? "they" : "it", own.PrintedOp(), own.Place());
  finding.detail.insert(
      0, fmt::format("From there on its calls pair with other ones, as far as #{}: ", sequence));
  SetPlace(finding, group_, others);
  finding.advice = fmt::format(
      "compare {} with {}: look for a branch that depends on the rank or on data, such as one that "
      "skips a step",
      own.Place(), others.Place());
  return true;
}

bool GroupFinder::TellShift(const std::vector<Positions>& classes, std::int64_t sequence,
                            CollectiveFinding& finding) const {
  const std::size_t usual = classes[0].front(), odd = classes[1].front();
  const auto at = [&](std::size_t position, std::int64_t number) {
    return Single(position, number);
  };
  // Back to the first of the calls before it that are other ones on both sides.
  std::int64_t first = sequence;
  bool is_more = true, is_less = true;
  for (; first > 0; --first) {
    const IssuedCollective *const a = at(usual, first - 1), *const b = at(odd, first - 1);
    const IssuedCollective *const next_a = at(usual, first), *const next_b = at(odd, first);
    if (a == nullptr || b == nullptr || next_a == nullptr || next_b == nullptr || MayBeOne(*a, *b))
      break;
    is_more = is_more && MayBeOne(*a, *next_b);
    is_less = is_less && MayBeOne(*b, *next_a);
    if (!is_more && !is_less) return false;
  }
  if (first == sequence || is_more == is_less) return false;
  const IssuedCollective &own = *at(odd, first), &others = *at(usual, first);
  const std::string who = Ranks(classes[1]), rest = Ranks(classes[0]);
  finding.title =
      is_more ? fmt::format(
                    "{} issued one call more than {}: {} at {}, #{} of {}, where the others "
                    "issued {} at {}",
                    who, rest, own.PrintedOp(), own.Place(), first, group_.Title(),
                    others.PrintedOp(), others.Place())
              : fmt::format("{} left out a call that {} issued: {} at {}, #{} of {}", who, rest,
                            others.PrintedOp(), others.Place(), first, group_.Title());
  finding.detail.insert(
      0, fmt::format("From there on its calls pair with other ones, as far as #{}: ", sequence));
  SetPlace(finding, group_, is_more ? own : others);
  finding.advice = fmt::format(
      "see on which ranks {} is called: every rank of the group has to call it as often as the "
      "others",
      is_more ? own.Place() : others.Place());
  return true;
}

}  // namespace tlparse

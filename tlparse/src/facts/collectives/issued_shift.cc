// Calls of one rank that pair with others' from some number on, since it issued one more or one less.
#include <fmt/format.h>

#include "facts/collectives/issued_group.h"

namespace tlparse {
namespace {

bool MayBeOne(const IssuedCollective& a, const IssuedCollective& b) {
  return !a.file.empty() && !b.file.empty() && a.MayBeCallOf(b);
}

}  // namespace

bool GroupFinder::TellShift(const std::vector<Positions>& classes, std::int64_t sequence,
                            CollectiveFinding& finding) const {
  const std::size_t usual = classes[0].front(), odd = classes[1].front();
  const auto at = [&](std::size_t position, std::int64_t number) -> const IssuedCollective* {
    const std::vector<const IssuedCollective*> own = group_.At(position, number);
    return own.size() == 1 ? own.front() : nullptr;
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

#include "cli/diff_digests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/rank_output.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

// "output 0 of 0/0 f, graph backward: differs in 2 of 4 calls, first in call 2; ranks 1"
std::string Sentence(const DigestChange& change) {
  std::string text = change.kind + " " + Shorten(change.name, 80);
  if (!change.label.empty()) text += " of " + change.label;
  if (!change.function.empty()) text += " " + change.function;
  if (!change.graph.empty()) text += ", graph " + change.graph;
  text += change.is_only_a ? ": only in a" : change.is_only_b ? ": only in b" : ": differs";
  text += fmt::format(" in {} of {}", change.call_count,
                      Count(static_cast<std::size_t>(change.compared_count), "call"));
  if (change.first_call) text += fmt::format(", first in call {}", *change.first_call);
  text += "; ranks " + change.ranks;
  if (change.a_value != change.b_value) {
    text += fmt::format(": {} → {}", Shorten(change.a_value, 80), Shorten(change.b_value, 80));
  } else if (!change.a_value.empty()) {
    text += ": " + Shorten(change.a_value, 80);
  }
  return text;
}

bool HasKind(const DigestDifference& digests, std::string_view kind) {
  return std::any_of(digests.changes.begin(), digests.changes.end(),
                     [&](const DigestChange& change) { return change.kind == kind; });
}

}  // namespace

void PrintDigests(const DigestDifference& digests, bool all) {
  std::fputc('\n', stdout);
  const auto count_of = [](std::int64_t count, std::string_view what) {
    return Count(static_cast<std::size_t>(count), what);
  };
  PrintHeading(fmt::format(
      "{} hashed on both sides: {}, {}, {}", count_of(digests.call_count, "graph run"),
      count_of(digests.output_count, "output"), count_of(digests.kernel_count, "kernel"),
      count_of(digests.choice_count, "autotuning choice")));
  constexpr std::size_t kMost = 10;
  std::size_t count = 0;
  for (const DigestChange& change : digests.changes) {
    if (!all && count == kMost) break;
    ++count;
    PrintWrapped(Sentence(change), 2, 4);
  }
  if (count < digests.changes.size())
    PrintWrapped(fmt::format("and {} more (--all)", digests.changes.size() - count), 2, 4);
  if (digests.changes.empty() && digests.call_count > 0) PrintWrapped("all are equal", 2, 4);
  if (HasKind(digests, "output") && digests.kernel_count > 0 && !HasKind(digests, "kernel"))
    PrintWrapped("outputs differ, the code of the kernels does not", 2, 4);
  for (const bool is_b : {false, true}) {
    const std::int64_t only = is_b ? digests.only_b_call_count : digests.only_a_call_count;
    if (only > 0)
      PrintWrapped(
          fmt::format("{} hashed in {} only", count_of(only, "graph run"), is_b ? "b" : "a"), 2, 4);
  }
}

}  // namespace tlparse

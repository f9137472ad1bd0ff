#include "cli/cache_closest.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "cli/rank_output.h"
#include "cli/terminal.h"

namespace tlparse {

void PrintClosest(const CacheAnswer& answer) {
  if (answer.closest_keys.empty()) return;
  std::fputc('\n', stdout);
  PrintHeading("what changed since the closest earlier key");
  for (const ClosestKey& closest : answer.closest_keys) {
    const JobLookup& lookup = answer.lookups.lookups()[static_cast<std::size_t>(closest.lookup)];
    PrintWrapped(fmt::format("{}: {}", answer.lookups.Title(answer.job, lookup.lookup_slot),
                             Name(lookup.state)),
                 0, 2);
    if (lookup.state == CacheState::kGuardMiss) {
      PrintWrapped(
          closest.earlier_title.empty()
              ? std::string("an entry has this key")
              : fmt::format("an entry has this key, which {}{} looked up", closest.earlier_title,
                            closest.earlier_run.empty() ? "" : " of run " + closest.earlier_run),
          4, 6);
      for (const Cause& cause : closest.causes)
        PrintWrapped(
            fmt::format("{}{}{}", Title(cause.kind), cause.text.empty() ? "" : ": ", cause.text), 4,
            6);
      continue;
    }
    PrintWrapped(
        fmt::format(
            "closest: {}{}, {}", closest.earlier_title,
            closest.earlier_run.empty() ? "" : fmt::format(" of run {}", closest.earlier_run),
            closest.difference_count == 0
                ? "the same key: its entry was not in this store"
                : Count(closest.difference_count, "component") +
                      (closest.difference_count == 1 ? " differs" : " differ")),
        4, 6);
    for (const Cause& cause : closest.causes)
      PrintWrapped(fmt::format("{}: {}", Title(cause.kind), cause.text), 4, 6);
  }
}

}  // namespace tlparse

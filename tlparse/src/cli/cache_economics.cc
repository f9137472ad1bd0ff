#include "cli/cache_economics.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "cli/rank_output.h"
#include "cli/terminal.h"
#include "facts/cache/cause.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

std::string DurationOfNs(std::int64_t ns) { return HumanDuration(static_cast<double>(ns) / 1e9); }

}  // namespace

void PrintEconomics(const CacheAnswer& answer) {
  if (answer.economics.empty()) return;
  std::fputc('\n', stdout);
  PrintHeading("what the caches were worth");
  using Align = Table::Align;
  Table table({{"layer"},
               {"hits", Align::kRight},
               {"misses", Align::kRight},
               {"guard misses", Align::kRight},
               {"remote errors", Align::kRight},
               {"bypasses", Align::kRight},
               {"saved", Align::kRight},
               {"spent in misses", Align::kRight},
               {"waited", Align::kRight}});
  const auto seconds = [](const std::optional<std::int64_t>& ns) {
    return ns ? DurationOfNs(*ns) : std::string("–");
  };
  for (const CacheEconomics& sums : answer.economics) {
    table.Add({sums.layer, std::to_string(sums.hits), std::to_string(sums.misses),
               std::to_string(sums.guard_misses), std::to_string(sums.remote_errors),
               std::to_string(sums.bypasses + sums.disabled), seconds(sums.time_saved_ns),
               seconds(sums.time_taken_ns), DurationOfNs(sums.waited_ns)});
  }
  table.Print();
  for (const CacheEconomics& sums : answer.economics) {
    for (const auto& [outer, within] : sums.within) {
      for (const auto& [ns, what] :
           {std::pair(within.saved_ns, "saved"), std::pair(within.taken_ns, "spent in misses")}) {
        if (ns > 0)
          PrintWrapped(fmt::format("{} {} by {} is in the time of {} as well: do not add the two",
                                   DurationOfNs(ns), what, sums.layer, outer),
                       0, 2);
      }
    }
  }
  for (const CacheEconomics& sums : answer.economics) {
    if (sums.waits_given_up > 0)
      PrintWrapped(
          fmt::format("{}: {} compiled a key although another thread or process was "
                      "compiling it",
                      sums.layer, Count(static_cast<std::size_t>(sums.waits_given_up), "lookup")),
          0, 2);
    for (const CacheEconomics::Reason& reason : sums.bypass_reasons) {
      const std::string text = Shorten(reason.text, 200);
      PrintWrapped(fmt::format("{} bypassed {}×: {}", sums.layer, reason.count, text), 0, 2);
    }
  }
}

}  // namespace tlparse

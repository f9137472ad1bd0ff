#include "cli/cache_precompiled.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "cli/rank_output.h"
#include "cli/terminal.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostGuards = 3, kMostOfArtifact = 12;

std::string PlaceOf(const std::string& function, const std::string& file, std::int64_t line) {
  const std::string name = file.substr(file.rfind('/') + 1);
  return name.empty() ? function : fmt::format("{} ({}:{})", function, name, line);
}

std::string OnRanks(const Job& job, const std::vector<RankIndex>& ranks) {
  return job.HasSeveral() ? " on " + RanksText(job, ranks) : std::string();
}

void PrintEntries(const CacheAnswer& answer) {
  if (answer.precompiled.entries.empty()) return;
  using Align = Table::Align;
  Table table({{"saved entry"},
               {"function"},
               {"codes", Align::kRight},
               {"graphs", Align::kRight},
               {"device"},
               {"ranks"},
               {"remarks"}});
  for (const SavedEntry& one : answer.precompiled.entries) {
    std::string remarks =
        one.error.empty() ? std::string() : "not saved: " + Shorten(one.error, 80);
    if (one.missing_backends > 0)
      remarks += fmt::format("{}{} not held: the code that calls them is not saved",
                             remarks.empty() ? "" : "; ", Count(one.missing_backends, "graph"));
    table.Add({one.key.substr(0, 12), fmt::format("{}:{}", one.function, one.line),
               one.codes ? std::to_string(*one.codes) : "", std::to_string(one.backends),
               one.device_type,
               answer.job.HasSeveral() ? answer.job.FormatRanks(one.ranks) : std::string(),
               std::move(remarks)});
  }
  table.Print();
}

void PrintVerdict(const Job& job, const ArtifactOfRank& one, std::string_view what,
                  std::string_view need) {
  if (one.of < 0) {
    PrintWrapped(fmt::format("{}: the logs have no {}", what, need), 0, 2);
    return;
  }
  const std::string of = RanksText(job, {one.of});
  PrintWrapped(one.others.empty()
                   ? fmt::format("{}: yes, by their {}: that of {}", what, need, of)
                   : fmt::format("{}: no, by their {}: that of {} serves {}, not {}", what, need,
                                 of, RanksText(job, one.served), RanksText(job, one.others)),
               0, 2);
}

}  // namespace

void PrintPrecompiled(const CacheAnswer& answer) {
  const PrecompiledCode& code = answer.precompiled;
  if (code.empty()) return;
  std::fputc('\n', stdout);
  PrintHeading(fmt::format("precompiled code: {} loaded", Count(code.loaded, "compile")));
  for (const CompiledAgain& one : code.again) {
    const std::string took = one.seconds ? ", " + HumanDuration(*one.seconds) : std::string();
    PrintWrapped(fmt::format("{}: loaded in {}, compiled again in {}{}{}",
                             PlaceOf(one.function, one.file, one.line), one.loaded, one.compiled,
                             OnRanks(answer.job, one.ranks), took),
                 0, 2);
    PrintWrapped(one.changes.empty()
                     ? std::string("the guards of both are equal: the log does not show why")
                     : ChangesText(one.changes, "the loaded code", "the new code", kMostGuards),
                 4, 6);
  }
  PrintEntries(answer);
  for (const DifferentEntry& one : code.different) {
    PrintWrapped(fmt::format("{} and {} saved different code of {}:{} under one key: a store that "
                             "they share keeps that of the last one to write",
                             RanksText(answer.job, one.ranks),
                             RanksText(answer.job, one.other_ranks), one.function, one.line),
                 0, 2);
    PrintWrapped(ChangesText(one.changes, "the code of " + RanksText(answer.job, one.ranks),
                             "that of " + RanksText(answer.job, one.other_ranks), kMostGuards),
                 4, 6);
  }
}

void PrintOneArtifact(const CacheAnswer& answer) {
  if (!answer.one_artifact) return;
  const OneArtifact& one = *answer.one_artifact;
  const Job& job = answer.job;
  PrintHeading("would the artifact of one rank serve all?");
  if (!job.HasSeveral()) {
    PrintWrapped("one participant: there is nothing to compare", 0, 2);
    return;
  }
  PrintVerdict(job, one.caches, "compile caches", "keys");
  for (std::size_t i = 0; i < one.keys.size() && i < kMostOfArtifact; ++i) {
    const OtherKeys& keys = one.keys[i];
    PrintWrapped(
        fmt::format("{} of {}: {}{}{}", Count(keys.lookups, "lookup"), RanksText(job, keys.ranks),
                    Title(keys.kind), keys.text.empty() ? "" : ": ", keys.text),
        4, 6);
  }
  if (one.bypassed > 0)
    PrintWrapped(fmt::format("{} bypassed the cache: nothing of them is kept",
                             Count(one.bypassed, "lookup")),
                 4, 6);
  if (one.of_named_graphs > 0)
    PrintWrapped(
        fmt::format("{} of aotautograd left out: with caching_precompile the key holds the "
                    "graph's name, which each process makes anew",
                    Count(one.of_named_graphs, "lookup")),
        4, 6);
  PrintVerdict(job, one.code, "precompiled code (caching_precompile)", "guards");
  for (std::size_t i = 0; i < one.guards.size() && i < kMostOfArtifact; ++i) {
    const OtherGuards& guards = one.guards[i];
    const std::string of = RanksText(job, {one.code.of}), who = RanksText(job, guards.ranks);
    PrintWrapped(
        fmt::format("{}: {}", PlaceOf(guards.function, guards.file, guards.line),
                    guards.is_absent ? fmt::format("{} did not compile it, {} did", of, who)
                                     : ChangesText(guards.changes, "the code of " + of,
                                                   "that of " + who, kMostGuards)),
        4, 6);
  }
  std::fputc('\n', stdout);
}

}  // namespace tlparse

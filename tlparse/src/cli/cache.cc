// tlparse cache <db>: what the compile caches answered, where ranks differ, and why.
#include "facts/cache/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/cache_economics.h"
#include "cli/commands.h"
#include "cli/finding_output.h"
#include "cli/rank_answer.h"
#include "cli/rank_output.h"
#include "facts/contents/graph_difference.h"

namespace tlparse {
namespace {

std::string CompileTitle(const Job& job, std::int32_t slot) {
  return job.slots()[static_cast<std::size_t>(slot)].Title();
}

std::string CompileList(const Job& job, const std::vector<std::int32_t>& slots) {
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t i = 0; i < slots.size() && i < kMost; ++i)
    text += (i == 0 ? "" : ", ") + CompileTitle(job, slots[i]);
  if (slots.size() > kMost) text += fmt::format(" and {} more", slots.size() - kMost);
  return text;
}

void PrintDifferences(const char* heading, const std::vector<ComponentDifference>& differences) {
  if (differences.empty()) return;
  PrintWrapped(heading, 4, 4);
  for (const ComponentDifference& difference : differences)
    PrintWrapped(difference.name + ": " + DescribeChange(difference), 6, 8);
}

void PrintFinding(const CacheAnswer& answer, const CacheFinding& finding, bool all) {
  const Job& job = answer.job;
  const Cause& cause = finding.cause;
  std::string who = RanksText(job, finding.ranks);
  if (cause.kind != CauseKind::kMissingCompile && !finding.against.empty()) {
    who += fmt::format(" {} {}{}", finding.has_majority ? "≠" : "against",
                       RanksText(job, finding.against),
                       finding.has_majority ? "" : " (there is no majority)");
  }
  const bool is_missing = cause.kind == CauseKind::kMissingCompile;
  PrintWrapped(fmt::format("{}: {}", who, is_missing ? cause.text : std::string(Title(cause.kind))),
               0, 2);
  if (!is_missing && !cause.text.empty()) PrintWrapped(cause.text, 4, 6);
  if (const std::string damage = DamageText(job, answer.damage, finding.ranks, finding.against);
      !damage.empty() && !IsExpected(cause.kind))
    PrintWrapped(damage + ": this may be due to that", 4, 6);
  if (!finding.node.empty() || !finding.against_node.empty()) {
    PrintWrapped("first differing node: " + NodeChange(finding.against_node, finding.node), 4, 6);
    if (!finding.source.empty()) PrintWrapped("at " + finding.source, 4, 6);
  }
  if (!cause.explained.empty() && !all) {
    PrintWrapped(fmt::format("explains {} (--all lists them)",
                             Count(cause.explained.size(), "more component")),
                 4, 6);
  }
  std::string where = finding.lookup_slots.empty()
                          ? "in "
                          : fmt::format("{} in ", Count(finding.lookup_slots.size(), "lookup"));
  where += CompileList(job, finding.compile_slots);
  if (!finding.lookup_slots.empty()) {
    where += finding.state == finding.against_state
                 ? fmt::format("; {} on both sides", finding.state)
                 : fmt::format("; {} here, {} there", finding.state, finding.against_state);
  }
  PrintWrapped(where, 4, 6);
  if (!finding.fallback.empty()) PrintWrapped(finding.fallback, 4, 6);
  if (!all) return;
  PrintDifferences("components:", cause.differences);
  PrintDifferences("explained by it:", cause.explained);
}

std::string ClassesText(const CacheAnswer& answer, const CacheLookupAnswer& lookup) {
  std::string text;
  for (std::size_t i = 0; i < lookup.classes.size(); ++i) {
    const CacheClass& one = lookup.classes[i];
    text += fmt::format("{}{}: {}", i == 0 ? "" : " · ", answer.job.FormatRanks(one.ranks),
                        Name(one.state));
    if (i > 0 && one.state == lookup.classes[0].state) text += " (other key)";
  }
  const auto add = [&](const std::vector<RankIndex>& ranks, const char* what) {
    if (!ranks.empty()) text += fmt::format(" · {}: {}", answer.job.FormatRanks(ranks), what);
  };
  add(lookup.without_lookup, "no lookup");
  std::vector<RankIndex> failed, unfinished, ended;
  const LookupSlot& slot = answer.lookups.slots()[static_cast<std::size_t>(lookup.lookup_slot)];
  for (const RankIndex rank : lookup.unfinished) {
    const std::int32_t index = answer.job.CompileOf(rank, slot.slot);
    const JobCompile& compile = answer.job.compiles()[static_cast<std::size_t>(index)];
    (compile.status == CompileStatus::kFailed       ? failed
     : compile.status == CompileStatus::kUnfinished ? unfinished
                                                    : ended)
        .push_back(rank);
  }
  add(failed, "not in log (failed)");
  add(unfinished, "not in log (unfinished)");
  add(ended, "not in log (it ends early)");
  return text;
}

void PrintLookups(const CacheAnswer& answer, bool all) {
  Table table({{"compile"}, {"layer"}, {"direction"}, {"ranks"}});
  // Lookups that all ranks share in one class, by what they say
  std::map<std::string, std::size_t> alike;
  for (const CacheLookupAnswer& lookup : answer.lookup_answers) {
    const LookupSlot& slot = answer.lookups.slots()[static_cast<std::size_t>(lookup.lookup_slot)];
    const std::string text = ClassesText(answer, lookup);
    const bool is_alike =
        lookup.classes.size() == 1 && lookup.without_lookup.empty() && lookup.unfinished.empty();
    if (!all && is_alike && answer.lookup_answers.size() > 12) {
      ++alike[text];
      continue;
    }
    std::string direction(Name(slot.direction));
    if (slot.ordinal > 0) direction += fmt::format(" {}", slot.ordinal + 1);
    table.Add({CompileTitle(answer.job, slot.slot), answer.lookups.LayerName(slot.layer_id),
               direction, text});
  }
  if (!table.empty()) table.Print();
  for (const auto& [text, count] : alike)
    PrintWrapped(fmt::format("{} alike: {}", Count(count, "lookup"), text), 0, 2);
}

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

void PrintCache(const CacheAnswer& answer, bool all) {
  const Job& job = answer.job;
  PrintHeading(fmt::format("{}: {}, {}", job.Title(),
                           Count(job.participants().size(), "participant"),
                           Count(answer.lookups.lookups().size(), "cache lookup")));
  for (const SameKeyCode& odd : answer.same_key_codes) {
    PrintWrapped(
        fmt::format("one key, two generated codes: {} ({} and {}{}{}); --json has the whole diff",
                    odd.key, RanksText(job, odd.ranks), RanksText(job, odd.other_ranks),
                    odd.target.empty() ? "" : " ", odd.target),
        0, 2);
    constexpr std::size_t kMostShown = 2000;
    const bool is_long = odd.diff.size() > kMostShown;
    const std::string diff = Printable(
        odd.diff.substr(0, is_long ? odd.diff.rfind('\n', kMostShown) : std::string::npos), true);
    std::fwrite(diff.data(), 1, diff.size(), stdout);
    std::fputs(is_long ? "\n…\n" : "\n", stdout);
  }
  std::size_t unexplained = 0;
  bool has_expected = false;
  for (const CacheFinding& finding : answer.findings) {
    if (finding.cause.kind == CauseKind::kUnlogged) {
      unexplained += finding.lookup_slots.size();
    } else if (finding.cause.kind != CauseKind::kStorage) {
      has_expected = true;
    }
  }
  const bool has_damage =
      std::any_of(answer.findings.begin(), answer.findings.end(), [&](const CacheFinding& finding) {
        return !IsExpected(finding.cause.kind) && answer.MayBeDamage(finding);
      });
  if (!answer.HasDivergence() && job.HasSeveral())
    PrintWrapped(has_damage ? "no cache key differs but where a log is damaged or cut off"
                 : unexplained > 0
                     ? fmt::format("the keys of {} differ, the log does not show why{}",
                                   Count(unexplained, "lookup"),
                                   has_expected ? "; others differ in expected ways only" : "")
                 : has_expected ? "cache keys differ in expected ways only"
                                : "no cache key differs between the participants",
                 0, 2);
  for (const bool is_expected : {false, true}) {
    bool has_heading = !is_expected;
    for (const CacheFinding& finding : answer.findings) {
      if (IsExpected(finding.cause.kind) != is_expected) continue;
      if (!has_heading) {
        std::fputc('\n', stdout);
        PrintHeading(
            "notes (expected differences, what the log does not explain, the state of the store)");
      }
      has_heading = true;
      PrintFinding(answer, finding, all);
    }
  }
  if (!answer.lookup_answers.empty()) std::fputc('\n', stdout);
  PrintLookups(answer, all);
  PrintClosest(answer);
  PrintEconomics(answer);
}

void WriteFinding(JsonWriter& json, const CacheAnswer& answer, const CacheFinding& finding) {
  std::vector<std::string> lookups, compiles;
  for (const std::int32_t slot : finding.lookup_slots)
    lookups.push_back(answer.lookups.Title(answer.job, slot));
  for (const std::int32_t slot : finding.compile_slots)
    compiles.push_back(CompileTitle(answer.job, slot));
  json.BeginObject();
  WriteCause(json, finding.cause);
  json.Key("ranks");
  WriteRanks(json, answer.job, finding.ranks);
  json.Key("against");
  WriteRanks(json, answer.job, finding.against);
  json.Key("has_majority").Bool(finding.has_majority);
  json.Key("state").String(finding.state).Key("against_state").String(finding.against_state);
  json.Key("lookups");
  WriteStrings(json, lookups);
  json.Key("compiles");
  WriteStrings(json, compiles);
  json.Key("fallback").OptionalString(NonEmpty(finding.fallback));
  json.Key("node")
      .OptionalString(NonEmpty(finding.node))
      .Key("against_node")
      .OptionalString(NonEmpty(finding.against_node));
  json.Key("source").OptionalString(NonEmpty(finding.source));
  json.Key("may_be_damage").Bool(answer.MayBeDamage(finding)).EndObject();
}

void WriteLookup(JsonWriter& json, const CacheAnswer& answer, const CacheLookupAnswer& lookup) {
  const LookupSlot& slot = answer.lookups.slots()[static_cast<std::size_t>(lookup.lookup_slot)];
  json.BeginObject()
      .Key("compile")
      .String(CompileTitle(answer.job, slot.slot))
      .Key("layer")
      .String(answer.lookups.LayerName(slot.layer_id));
  json.Key("direction")
      .OptionalString(NonEmpty(std::string(Name(slot.direction))))
      .Key("ordinal")
      .Int(slot.ordinal);
  json.Key("has_majority").Bool(lookup.has_majority).Key("classes").BeginArray();
  for (const CacheClass& one : lookup.classes) {
    json.BeginObject().Key("state").String(Name(one.state)).Key("ranks");
    WriteRanks(json, answer.job, one.ranks);
    json.Key("distinct_keys")
        .Int(static_cast<std::int64_t>(one.distinct_keys))
        .Key("key")
        .OptionalString(NonEmpty(one.key));
    json.Key("bypass_reason")
        .OptionalString(NonEmpty(one.bypass_reason))
        .Key("guard")
        .OptionalString(NonEmpty(one.guard))
        .Key("remote_error")
        .OptionalString(NonEmpty(one.remote_error))
        .EndObject();
  }
  json.EndArray().Key("without_lookup");
  WriteRanks(json, answer.job, lookup.without_lookup);
  json.Key("unfinished");
  WriteRanks(json, answer.job, lookup.unfinished);
  json.EndObject();
}

// Kinds of findings whose subject is a cache.
constexpr FindingKind kOfCaches[] = {FindingKind::kColdCache, FindingKind::kCacheBypassed,
                                     FindingKind::kRemoteCacheError, FindingKind::kOneKeyTwoCodes};

JsonWriter CacheToJson(const CacheAnswer& answer, const std::vector<Finding>& findings) {
  JsonWriter json;
  json.BeginObject();
  WriteJob(json, answer.job);
  json.Key("participants").Int(static_cast<std::int64_t>(answer.job.participants().size()));
  json.Key("has_divergence").Bool(answer.HasDivergence()).Key("findings").BeginArray();
  for (const CacheFinding& finding : answer.findings) WriteFinding(json, answer, finding);
  json.EndArray().Key("same_key_codes").BeginArray();
  for (const SameKeyCode& odd : answer.same_key_codes) {
    json.BeginObject().Key("key").String(odd.key).Key("ranks");
    WriteRanks(json, answer.job, odd.ranks);
    json.Key("other_ranks");
    WriteRanks(json, answer.job, odd.other_ranks);
    json.Key("record_id").Int(odd.record_id).Key("other_record_id").Int(odd.other_record_id);
    json.Key("diff").String(odd.diff).EndObject();
  }
  json.EndArray().Key("lookups").BeginArray();
  for (const CacheLookupAnswer& lookup : answer.lookup_answers) WriteLookup(json, answer, lookup);
  json.EndArray().Key("closest_keys").BeginArray();
  for (const ClosestKey& closest : answer.closest_keys) {
    const JobLookup& lookup = answer.lookups.lookups()[static_cast<std::size_t>(closest.lookup)];
    json.BeginObject()
        .Key("lookup")
        .String(answer.lookups.Title(answer.job, lookup.lookup_slot))
        .Key("state")
        .String(Name(lookup.state));
    json.Key("earlier").String(closest.earlier_title).Key("earlier_run");
    json.OptionalString(NonEmpty(closest.earlier_run));
    json.Key("difference_count")
        .Int(static_cast<std::int64_t>(closest.difference_count))
        .Key("causes")
        .BeginArray();
    for (const Cause& cause : closest.causes) {
      json.BeginObject();
      WriteCause(json, cause);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().Key("economics").BeginArray();
  for (const CacheEconomics& sums : answer.economics) WriteEconomics(json, sums);
  json.EndArray().Key("engine_findings");
  WriteFindings(json, findings);
  json.EndObject();
  return json;
}

}  // namespace

int RunCache(std::span<const std::string> arguments) {
  Arguments app(
      "Hits and misses of the compile caches, the components in which the keys of ranks differ and "
      "why, and the time that the caches saved.",
      "cache");
  CacheOptions options;
  app.Add("--rank", options.rank,
          "show the closest earlier keys of this rank's lookups (default: the only participant, if "
          "there is one)");
  return RunSubjectAnswer(
      app, arguments, "every lookup and every component, also those that another cause explains",
      options, kOfCaches, AnalyzeCache, CacheToJson, PrintCache);
}

}  // namespace tlparse

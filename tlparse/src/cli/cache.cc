// tlparse cache <db>: what the compile caches answered, where ranks differ, and why.
#include "facts/cache/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/cache_closest.h"
#include "cli/cache_economics.h"
#include "cli/cache_precompiled.h"
#include "cli/cause_fields.h"
#include "cli/commands.h"
#include "cli/rank_answer.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"
#include "facts/contents/graph_difference.h"

namespace tlparse {
namespace {

std::string CompileTitle(const Job& job, std::int32_t slot,
                         const std::vector<RankIndex>& who = {}) {
  return job.SlotOf(slot, who).Title();
}

std::string CompileList(const Job& job, const CacheFinding& finding) {
  const std::vector<std::int32_t>& slots = finding.compile_slots;
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t i = 0; i < slots.size() && i < kMost; ++i)
    text += (i == 0 ? "" : ", ") + CompileTitle(job, slots[i], finding.Sides());
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
  where += CompileList(job, finding);
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
  if (!answer.lookup_answers.empty()) std::fputc('\n', stdout);
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

// What is said where no key differs without being expected to.
void PrintWithoutDivergence(const CacheAnswer& answer, std::size_t unexplained, bool has_expected) {
  if (answer.HasDivergence() || !answer.job.HasSeveral()) return;
  const bool has_damage =
      std::any_of(answer.findings.begin(), answer.findings.end(), [&](const CacheFinding& finding) {
        return !IsExpected(finding.cause.kind) && answer.MayBeDamage(finding);
      });
  PrintWrapped(has_damage ? "no cache key differs but where a log is damaged or cut off"
               : unexplained > 0
                   ? fmt::format("the keys of {} differ, the log does not show why{}",
                                 Count(unexplained, "lookup"),
                                 has_expected ? "; others differ in expected ways only" : "")
               : has_expected ? "cache keys differ in expected ways only"
                              : "no cache key differs between the participants",
               0, 2);
}

void PrintCache(const CacheAnswer& answer, bool all, const AskedPart& part) {
  if (answer.one_artifact && !all) return PrintOneArtifact(answer);
  const Job& job = answer.job;
  PrintHeading(
      fmt::format("{}: {}, {}", job.Title(), Count(job.participants().size(), "participant"),
                  Count(answer.lookups.lookups().size(), "cache lookup")),
      part);
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
  PrintWithoutDivergence(answer, unexplained, has_expected);
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
  PrintLookups(answer, all);
  PrintClosest(answer);
  PrintEconomics(answer);
  PrintPrecompiled(answer);
  PrintOneArtifact(answer);
  if (!answer.not_counted.empty()) PrintWrapped("not counted: " + answer.not_counted, 0, 2);
  if (!answer.not_written.empty()) PrintWrapped("note: " + answer.not_written, 0, 2);
}

// Kinds of findings whose subject is a cache.
constexpr FindingKind kOfCaches[] = {
    FindingKind::kColdCache,      FindingKind::kCacheBypassed,    FindingKind::kRemoteCacheError,
    FindingKind::kOneKeyTwoCodes, FindingKind::kPrecompiledAgain, FindingKind::kPrecompiledDiffers};

using InCache = WithFindings<CacheAnswer>;

const LookupSlot& SlotOf(const CacheLookupAnswer& of, const InCache& in) {
  return in.answer.lookups.slots()[static_cast<std::size_t>(of.lookup_slot)];
}

const JobLookup& LookupOf(const ClosestKey& of, const InCache& in) {
  return in.answer.lookups.lookups()[static_cast<std::size_t>(of.lookup)];
}

std::vector<std::string> LookupTitles(const CacheFinding& of, const InCache& in) {
  std::vector<std::string> titles;
  for (const std::int32_t slot : of.lookup_slots)
    titles.push_back(in.answer.lookups.Title(in.job, slot));
  return titles;
}

std::vector<std::string> CompileTitles(const CacheFinding& of, const InCache& in) {
  std::vector<std::string> titles;
  for (const std::int32_t slot : of.compile_slots)
    titles.push_back(CompileTitle(in.job, slot, of.Sides()));
  return titles;
}

std::optional<Direction> DirectionOf(const CacheLookupAnswer& of, const InCache& in) {
  const Direction direction = SlotOf(of, in).direction;
  return direction == Direction::kUnknown ? std::nullopt : std::optional(direction);
}

}  // namespace

template <>
struct LastOf<CacheState> {
  static constexpr CacheState value = CacheState::kRemoteError;
};
template <>
struct LastOf<Direction> {  // kUnknown is null
  static constexpr Direction value = Direction::kJoint;
};

template <>
struct FieldsOf<CacheFinding> {
  using Of = CacheFinding;
  static constexpr FieldList list{
      Inlined{&Of::cause},
      Field{"ranks", Participants{&Of::ranks}},
      Field{"against", Participants{&Of::against}},
      Field{"has_majority", &Of::has_majority},
      Field{"state", &Of::state, "what the ranks got"},
      Field{"against_state", &Of::against_state, "what the others got"},
      Field{"lookups", &LookupTitles},
      Field{"compiles", &CompileTitles},
      Field{"fallback", OrNull{&Of::fallback}, "what was compared where the log has no components"},
      Field{"node", OrNull{&Of::node}, "first node of the graph that differs"},
      Field{"against_node", OrNull{&Of::against_node}},
      Field{"source", OrNull{&Of::source}, "file:line in function: code"},
      Field{"may_be_damage",
            [](const Of& of, const InCache& in) { return in.answer.MayBeDamage(of); },
            "damage of the logs may be why: no divergence"},
  };
};

template <>
struct FieldsOf<SameKeyCode> {
  using Of = SameKeyCode;
  static constexpr FieldList list{
      Field{"key", &Of::key},
      Field{"ranks", Participants{&Of::ranks}},
      Field{"other_ranks", Participants{&Of::other_ranks}},
      Field{"record_id", &Of::record_id},
      Field{"other_record_id", &Of::other_record_id},
      Field{"diff", &Of::diff, "unified, of the normalised codes"},
  };
};

template <>
struct FieldsOf<CacheClass> {
  using Of = CacheClass;
  static constexpr FieldList list{
      Field{"state", &Of::state},
      Field{"ranks", Participants{&Of::ranks}},
      Field{"distinct_keys", &Of::distinct_keys},
      Field{"key", OrNull{&Of::key}},
      Field{"bypass_reason", OrNull{&Of::bypass_reason}},
      Field{"guard", OrNull{&Of::guard}},
      Field{"remote_error", OrNull{&Of::remote_error}},
  };
};

template <>
struct FieldsOf<CacheLookupAnswer> {
  using Of = CacheLookupAnswer;
  static constexpr FieldList list{
      Field{"compile", [](const Of& of,
                          const InCache& in) { return CompileTitle(in.job, SlotOf(of, in).slot); }},
      Field{"layer",
            [](const Of& of, const InCache& in) {
              return in.answer.lookups.LayerName(SlotOf(of, in).layer_id);
            }},
      Field{"direction", &DirectionOf},
      Field{"ordinal", [](const Of& of, const InCache& in) { return SlotOf(of, in).ordinal; }},
      Field{"has_majority", &Of::has_majority},
      Field{"classes", &Of::classes, "the reference first"},
      Field{"without_lookup", Participants{&Of::without_lookup},
            "have this compile, finished, without the lookup"},
      Field{"unfinished", Participants{&Of::unfinished},
            "failed in this compile, or their log ends inside it: the lookup, whose record is "
            "written after it, is not in the log"},
  };
};

template <>
struct FieldsOf<ClosestKey> {
  using Of = ClosestKey;
  static constexpr FieldList list{
      Field{"lookup",
            [](const Of& of, const InCache& in) {
              return in.answer.lookups.Title(in.job, LookupOf(of, in).lookup_slot);
            }},
      Field{"state", [](const Of& of, const InCache& in) { return LookupOf(of, in).state; }},
      Field{"earlier", &Of::earlier_title},
      Field{"earlier_run", OrNull{&Of::earlier_run}},
      Field{"difference_count", &Of::difference_count},
      Field{"causes", &Of::causes},
  };
};

template <>
struct FieldsOf<CacheAnswer> {
  using Of = CacheAnswer;
  static constexpr FieldList list{
      Inlined{&Of::job},
      Missable{"only", kOnlyOf, kOnly},
      Field{"has_divergence", &Of::HasDivergence, "a finding that is no note, or same_key_codes"},
      Field{"findings", &Of::findings, "divergences first, most telling first, then notes"},
      Field{"same_key_codes", &Of::same_key_codes,
            "one key, two generated codes: an error of the cache"},
      Field{"lookups", &Of::lookup_answers},
      Field{"closest_keys", &Of::closest_keys, "for lookups of one participant that did not hit"},
      Field{"economics", &Of::economics},
      Field{"precompiled", &Of::precompiled},
      Field{"one_artifact", &Of::one_artifact, "null: --one-artifact was not given"},
      Field{"not_counted", OrNull{&Of::not_counted}, "lookups of the launch that are not in this"},
      Field{"not_written", OrNull{&Of::not_written},
            "no lookup is of AOTAutograd's cache: since when PyTorch writes these"},
      Field{"engine_findings", &FindingsOf<Of>,
            "of what tlparse findings lists: those of kind cold_cache, cache_bypassed, "
            "remote_cache_error, one_key_two_codes, precompiled_again or precompiled_differs, or "
            "with one of these among their evidence; "
            "the member findings holds differences between keys instead"},
  };
};

std::string CacheSchema() { return SchemaOf<CacheAnswer, InCache>("tlparse cache --json"); }

int RunCache(std::span<const std::string> arguments) {
  Arguments app(
      "Hits and misses of the compile caches, the components in which the keys of ranks differ and "
      "why, and the time that the caches saved. Of one rank also its closest "
      "earlier keys.",
      "cache");
  CacheOptions options;
  app.Flag("--one-artifact", options.with_one_artifact,
           "would what one rank saves for other processes serve all ranks, and what differs");
  return RunSubjectAnswer(
      app, arguments, "every lookup and every component, also those that another cause explains",
      options, kOfCaches, AnalyzeCache, TakeCache, PrintCache);
}

}  // namespace tlparse

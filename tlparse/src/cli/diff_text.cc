#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cli/diff_digests.h"
#include "cli/diff_measured.h"
#include "cli/diff_memory.h"
#include "cli/diff_output.h"
#include "cli/rank_output.h"
#include "cli/terminal.h"
#include "cli/vllm_start_output.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

std::string Microseconds(const std::optional<std::int64_t>& us) {
  return us ? HumanDuration(static_cast<double>(*us) / 1e6) : "–";
}

std::string PhaseChangeText(const PhaseChange& phase) {
  if (!phase.a_us || !phase.b_us || *phase.a_us == 0) return "";
  return fmt::format("{:+.0f} %", 100.0 * static_cast<double>(*phase.b_us - *phase.a_us) /
                                      static_cast<double>(*phase.a_us));
}

void PrintTexts(const char* heading, const std::vector<std::string>& texts, std::size_t most) {
  std::vector<std::string_view> shown;
  std::map<std::string_view, std::size_t> counts;  // of those that are shown alike
  for (const std::string& text : texts)
    if (++counts[text] == 1) shown.push_back(text);
  for (std::size_t i = 0; i < shown.size() && i < most; ++i) {
    const std::size_t count = counts[shown[i]];
    PrintWrapped(fmt::format("{}: {}{}", heading, Shorten(shown[i], 240),
                             count == 1 ? "" : fmt::format(" (×{})", count)),
                 4, 6);
  }
  if (shown.size() > most)
    PrintWrapped(fmt::format("{}: and {} more (--all)", heading, shown.size() - most), 4, 6);
}

// A cause of different cache keys, printed once if several lookups share it.
struct SharedCause {
  std::size_t lookup_count = 0, explained_count = 0;
  std::set<std::string> compiles;
};
using CauseCounts = std::map<std::string, SharedCause>;

std::string CauseText(const Cause& cause) {
  return fmt::format("{}: {}", Title(cause.kind), cause.text);
}

std::string ExplainedText(std::size_t count, std::string_view before) {
  return count == 0 ? "" : fmt::format("; explains {}{}", before, Count(count, "more component"));
}

// By text, of causes that several lookups have.
CauseCounts SharedCauses(const DiffAnswer& answer) {
  CauseCounts counts;
  for (const CompileChange& change : answer.compiles) {
    for (const CacheChange& cache : change.caches) {
      for (const Cause& cause : cache.causes) {
        SharedCause& shared = counts[CauseText(cause)];
        ++shared.lookup_count;
        shared.explained_count = std::max(shared.explained_count, cause.explained.size());
        shared.compiles.insert(change.a_label);
      }
    }
  }
  std::erase_if(counts, [](const auto& entry) { return entry.second.lookup_count < 2; });
  return counts;
}

bool IsShared(const CauseCounts& shared, const Cause& cause) {
  return shared.count(CauseText(cause)) > 0;
}

// Whether all that remains to be printed of a lookup is a cause that is printed once for several.
bool IsOnlyShared(const CauseCounts& shared, const CacheChange& cache) {
  return cache.a_state == cache.b_state && !cache.causes.empty() &&
         std::all_of(cache.causes.begin(), cache.causes.end(),
                     [&](const Cause& cause) { return IsShared(shared, cause); });
}

// A lookup's record is written after its compile: that of one that did not end well may be missing.
std::string LookupState(const std::string& state, CompileStatus status) {
  if (!state.empty()) return state;
  if (status == CompileStatus::kFailed) return "not in the log (the compile failed)";
  if (status == CompileStatus::kUnfinished) return "not in the log (the compile is unfinished)";
  return "no lookup";
}

void PrintCache(const CauseCounts& shared, const CompileChange& change, const CacheChange& cache) {
  if (IsOnlyShared(shared, cache)) return;
  const bool has_both = !cache.a_state.empty() && !cache.b_state.empty();
  const char* key = !has_both            ? ""
                    : cache.has_same_key ? " under the same key"
                                         : " under another key";
  PrintWrapped(
      cache.a_state == cache.b_state
          ? fmt::format("{}: {} on both sides{}", cache.title, cache.a_state, key)
          : fmt::format("{}: {} → {}{}", cache.title, LookupState(cache.a_state, change.a_status),
                        LookupState(cache.b_state, change.b_status), key),
      4, 6);
  bool has_cause = false;
  for (const Cause& cause : cache.causes) {
    if (IsShared(shared, cause)) continue;
    PrintWrapped(CauseText(cause) + ExplainedText(cause.explained.size(), ""), 6, 8);
    has_cause = true;
  }
  if (cache.fallback.empty() || (!has_cause && !cache.causes.empty())) return;
  PrintWrapped(has_cause ? cache.fallback : "why the keys differ is not in the log", 6, 8);
}

// "102 guards, 4 kernels"
std::string LackedBy(std::int64_t guards, std::int64_t kernels) {
  std::string text;
  for (const auto& [count, what] : {std::pair(guards, "guard"), std::pair(kernels, "kernel")}) {
    if (count > 0)
      text += (text.empty() ? "" : ", ") + Count(static_cast<std::size_t>(count), what);
  }
  return text;
}

void PrintGuardsAndKernels(const CompileChange& change, bool has_other_torch, bool all) {
  const std::size_t most = all ? 100000 : 3;
  const auto lacks = [](std::int64_t own, std::int64_t other) { return own == 0 ? other : 0; };
  const std::string only_b = LackedBy(lacks(change.a_guard_count, change.b_guard_count),
                                      lacks(change.a_kernel_count, change.b_kernel_count));
  const std::string only_a = LackedBy(lacks(change.b_guard_count, change.a_guard_count),
                                      lacks(change.b_kernel_count, change.a_kernel_count));
  if (!only_a.empty()) PrintWrapped("in the log of a only: " + only_a, 4, 6);
  if (!only_b.empty()) PrintWrapped("in the log of b only: " + only_b, 4, 6);
  const bool has_guards = !change.new_guards.empty() || !change.vanished_guards.empty() ||
                          !change.changed_guards.empty();
  if (has_guards && has_other_torch && !all) {
    PrintWrapped(fmt::format("guards: {} → {}; versions of PyTorch write guards differently "
                             "(--all lists those that differ)",
                             change.a_guard_count, change.b_guard_count),
                 4, 6);
  } else {
    PrintTexts("guard changed", change.changed_guards, most);
    if (change.alike_guard_count > 0)
      PrintWrapped(fmt::format("guard changed: {} in names of generated code only",
                               change.alike_guard_count),
                   4, 6);
    PrintTexts("new guard", change.new_guards, most);
    PrintTexts("guard gone", change.vanished_guards, most);
  }
  PrintTexts("new kernel", change.new_kernels, most);
  PrintTexts("kernel gone", change.vanished_kernels, most);
}

std::string TitleOf(const CompileChange& change) {
  return fmt::format("{}{} {}", change.a_label,
                     change.a_label == change.b_label ? "" : " → " + change.b_label,
                     change.function);
}

void PrintCompile(const CompileChange& change, const CauseCounts& shared, bool has_other_torch,
                  bool all) {
  const std::size_t most = all ? 100000 : 3;
  PrintWrapped(TitleOf(change), 0, 2);
  if (change.HasOtherFile())
    PrintWrapped(
        fmt::format("paired by name; the files differ: {} → {}", change.a_file, change.b_file), 4,
        6);
  if (change.a_status != change.b_status)
    PrintWrapped(fmt::format("status: {} → {}", Name(change.a_status), Name(change.b_status)), 4,
                 6);
  if (!change.has_same_graph)
    PrintWrapped(
        change.has_other_comments_only ? std::string("the Dynamo graph differs in comments only")
        : change.graph_difference.empty()
            ? std::string(
                  "the Dynamo graph differs in shapes, types or comments, not in its operations")
            : "the Dynamo graph differs: " + change.graph_difference,
        4, 6);
  PrintTexts("new recompile", change.new_recompiles, most);
  PrintTexts("recompile gone", change.vanished_recompiles, most);
  PrintTexts("new graph break", change.new_graph_breaks, most);
  PrintTexts("graph break gone", change.vanished_graph_breaks, most);
  PrintTexts("graph break with another cause", change.changed_graph_breaks, most);
  if (!change.a_cuda_graphs.IsAlike(change.b_cuda_graphs))
    PrintWrapped(fmt::format("CUDA graphs: {} → {}", CudaGraphText(change.a_cuda_graphs),
                             CudaGraphText(change.b_cuda_graphs)),
                 4, 6);
  for (const CacheChange& cache : change.caches) PrintCache(shared, change, cache);
  PrintGuardsAndKernels(change, has_other_torch, all);
  for (const CodeChange& code : change.codes) {
    PrintWrapped(
        fmt::format("generated code differs{}", code.title.empty() ? "" : ": " + code.title), 4, 6);
    if (code.diff.empty()) continue;
    const std::string text = Printable(code.diff, true);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
}

// Whether only the cache keys differ, for causes that are printed once for several compiles.
bool HasOnlySharedCauses(const CompileChange& change, const CauseCounts& shared) {
  CompileChange rest = change;
  std::erase_if(rest.caches, [&](const CacheChange& cache) { return IsOnlyShared(shared, cache); });
  return rest.IsEqual();
}

Whose WhoseTimes(const RankComparison& one) {
  if (one.count < 2) return {};
  const auto who = [](const std::string& name) {
    const bool is_rank = name.find_first_not_of("0123456789#") == std::string::npos;
    return fmt::format(" ({}{})", is_rank ? "rank " : "", name);
  };
  return {who(one.diff.a_rank), who(one.diff.b_rank)};
}

// PyTorch 2.6 does not log its version.
void PrintVersions(std::string_view what, const std::string& a, const std::string& b) {
  if (a == b) return;
  const auto text = [](const std::string& version) {
    return version.empty() ? std::string("(not in the log)") : Shorten(version, 40);
  };
  PrintWrapped(fmt::format("{} {} → {}", what, text(a), text(b)), 0, 2);
}

void PrintPhases(const DiffAnswer& answer, const Whose& whose) {
  const auto count = static_cast<std::size_t>(answer.timed_count);
  const std::size_t all =
      answer.compiles.size() + std::max(answer.only_a.size(), answer.only_b.size());
  const auto finished = static_cast<std::size_t>(
      std::count_if(answer.compiles.begin(), answer.compiles.end(),
                    [](const CompileChange& one) { return one.IsFinished(); }));
  if (count == 0) {
    PrintWrapped(finished == 0
                     ? "no compile was finished on both sides: there are no times to compare"
                     : "no compile has its time in both logs",
                 0, 2);
    return;
  }
  if (count < all)
    PrintWrapped(fmt::format("times of the {} that both sides finished{}", Count(count, "compile"),
                             count < finished ? " and both logs have the times of" : ""),
                 0, 2);
  using Align = Table::Align;
  Table table({{"phase"},
               {"a" + whose.a, Align::kRight},
               {"b" + whose.b, Align::kRight},
               {"change", Align::kRight}});
  for (const PhaseChange& phase : answer.phases)
    table.Add(
        {phase.phase, Microseconds(phase.a_us), Microseconds(phase.b_us), PhaseChangeText(phase)});
  table.Print();
}

void Print(const DiffAnswer& answer, const Whose& whose, bool all) {
  PrintHeading(fmt::format("a: {}", answer.a_title));
  PrintHeading(fmt::format("b: {}", answer.b_title));
  if (!answer.HasLogs()) {
    PrintWrapped(fmt::format("{} no log: only what was measured is compared",
                             answer.a_has_log   ? "b has"
                             : answer.b_has_log ? "a has"
                                                : "a and b have"),
                 0, 2);
    if (answer.measured) PrintMeasured(*answer.measured, whose, all);
    return;
  }
  PrintVersions("torch", answer.a_torch_version, answer.b_torch_version);
  PrintVersions("Python", answer.a_python_version, answer.b_python_version);
  PrintPhases(answer, whose);
  const CauseCounts shared = SharedCauses(answer);
  for (const auto& [text, cause] : shared)
    PrintWrapped(fmt::format("cache keys, {} in {}: {}{}", Count(cause.lookup_count, "lookup"),
                             Count(cause.compiles.size(), "compile"), text,
                             ExplainedText(cause.explained_count, "up to ")),
                 0, 2);
  std::size_t equal = 0, equal_but_keys = 0;
  for (const CompileChange& change : answer.compiles) {
    if (change.HasOtherFile()) {
      PrintCompile(change, shared, answer.HasOtherTorch(), all);
    } else if (change.IsEqual()) {
      ++equal;
    } else if (HasOnlySharedCauses(change, shared)) {
      ++equal_but_keys;
    } else {
      PrintCompile(change, shared, answer.HasOtherTorch(), all);
    }
  }
  for (const bool is_b : {false, true}) {
    for (const UnmatchedCompile& compile : is_b ? answer.only_b : answer.only_a) {
      const std::string time = compile.duration_us == 0
                                   ? "time unknown"
                                   : HumanDuration(static_cast<double>(compile.duration_us) / 1e6) +
                                         (is_b ? whose.b : whose.a);
      PrintWrapped(fmt::format("only in {}: {} {} ({}, {})", is_b ? "b" : "a", compile.label,
                               compile.function, Name(compile.status), time),
                   0, 2);
      PrintTexts("recompiled because", compile.recompile_reasons, 3);
    }
  }
  if (equal_but_keys > 0)
    PrintWrapped(fmt::format("{} equal but for times and these cache keys",
                             Count(equal_but_keys, "compile")),
                 0, 2);
  if (equal > 0) PrintWrapped(fmt::format("{} equal but for times", Count(equal, "compile")), 0, 2);
  if (answer.measured) PrintMeasured(*answer.measured, whose, all);
}

}  // namespace

void PrintDiff(const RunComparison& answer, bool all) {
  for (std::size_t i = 0; i < answer.comparisons.size(); ++i) {
    const RankComparison& one = answer.comparisons[i];
    if (i > 0) std::fputc('\n', stdout);
    if (one.count > 1) {
      const bool is_same = one.a_ranks == one.b_ranks && one.diff.a_rank == one.diff.b_rank;
      PrintHeading(
          is_same
              ? fmt::format("ranks {}: alike within each side but for times, shown by rank {}",
                            one.a_ranks, one.diff.a_rank)
              : fmt::format(
                    "{} of a and {} of b: alike within each side but for times, shown by {} and {}",
                    one.a_ranks, one.b_ranks, one.diff.a_rank, one.diff.b_rank));
    }
    Print(one.diff, WhoseTimes(one), all);
  }
  if (answer.left_out > 0)
    PrintWrapped(fmt::format("and {} not compared: use --rank",
                             Count(answer.left_out, "more pair of classes")),
                 0, 2);
  if (!answer.only_a_ranks.empty()) PrintWrapped("ranks only in a: " + answer.only_a_ranks, 0, 2);
  if (!answer.only_b_ranks.empty()) PrintWrapped("ranks only in b: " + answer.only_b_ranks, 0, 2);
  if (answer.digests) PrintDigests(*answer.digests, all);
  if (answer.memory) PrintMemoryDifference(*answer.memory, all);
  if (answer.starts) PrintVllmStartDifference(answer.starts->a, answer.starts->b);
}

}  // namespace tlparse

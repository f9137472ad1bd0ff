// Precompiled code that was loaded in vain, that ranks saved over each other's, or that was saved in
// part only.
#include "facts/cache/precompiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/plural.h"
#include "facts/text/shorten.h"
#include "findings/context.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostChanges = 3;

// "step at model.py:5"
std::string FunctionAt(const std::string& function, const std::string& file, std::int64_t line) {
  const std::string name = file.substr(file.rfind('/') + 1);
  return name.empty() ? fmt::format("{} (line {})", function, line)
                      : fmt::format("{} at {}:{}", function, name, line);
}

// The function whose graph break the code follows: "step" of "torch_dynamo_resume_in_step_at_7";
// empty: it follows none.
std::string_view ResumedFunction(std::string_view function) {
  constexpr std::string_view kPrefix = "torch_dynamo_resume_in_", kPlace = "_at_";
  const std::size_t end = function.rfind(kPlace);
  if (!function.starts_with(kPrefix) || end == std::string_view::npos || end < kPrefix.size())
    return {};
  return function.substr(kPrefix.size(), end - kPrefix.size());
}

// What follows a graph break of a function that was itself compiled again is made anew with it.
bool IsOfOther(const PrecompiledCode& code, const CompiledAgain& one) {
  const std::string_view resumed = ResumedFunction(one.function);
  return !resumed.empty() &&
         std::any_of(code.again.begin(), code.again.end(), [&](const CompiledAgain& other) {
           return other.function == resumed && other.file == one.file && other.ranks == one.ranks;
         });
}

// Other sizes are a matter of the data: one more compile of them is expected.
bool IsOfSizes(const CompiledAgain& one) {
  static constexpr std::string_view kSize = "size=";
  return !one.changes.empty() &&
         std::all_of(one.changes.begin(), one.changes.end(), [](const GuardChange& change) {
           return change.a.starts_with(kSize) && change.b.starts_with(kSize);
         });
}

void AddAgain(FindingContext& context, const PrecompiledCode& code, const CompiledAgain& one) {
  const bool is_of_sizes = IsOfSizes(one);
  Finding& finding = context.Add(FindingKind::kPrecompiledAgain,
                                 is_of_sizes ? FindingSeverity::kNote : FindingSeverity::kWarning);
  context.SetRanks(finding, one.ranks);
  finding.function = one.function;
  finding.compiles = {one.compiled};
  finding.place = FindingPlace{one.file, one.line, {}};
  finding.cause = one.changes.empty()
                      ? std::string("the guards of both are equal: the log does not show why")
                      : ChangesText(one.changes, "the loaded code", "the new code", kMostChanges);
  finding.title = fmt::format(
      "Precompiled code of {} was loaded, and compiled again{}: {}",
      FunctionAt(one.function, one.file, one.line),
      context.HasRanks() ? " on " + context.WhoInside(one.ranks) : std::string(), finding.cause);
  finding.detail =
      fmt::format("Loaded in {}, compiled again in {}{}.", one.loaded, one.compiled,
                  one.seconds ? fmt::format(", which took {:.1f} s", *one.seconds) : std::string());
  for (const CompiledAgain& other : code.again) {
    if (ResumedFunction(other.function) == one.function && IsOfOther(code, other))
      finding.detail += fmt::format(" So was {}, in {}.", other.function, other.compiled);
  }
  if (is_of_sizes)
    finding.suggestion =
        "if this size varies, torch._dynamo.mark_dynamic before the call, and save the code again";
  else if (!one.changes.empty())
    finding.suggestion =
        "save the code again from a process that has these values and runs the function with such "
        "inputs; or make what the guards check equal in the process that saves";
  finding.query = fmt::format(
      "SELECT c.label, c.status, g.kind, g.normalized_expression, g.user_file, g.user_line "
      "FROM guard g JOIN compile c ON c.id = g.compile_id "
      "WHERE c.id IN ({}, {}) AND g.kind NOT LIKE '%Manager' "
      "ORDER BY g.record_id, g.ordinal",
      one.loaded_id, one.compiled_id);
}

void AddDifferent(FindingContext& context, const DifferentEntry& one) {
  Finding& finding = context.Add(FindingKind::kPrecompiledDiffers, FindingSeverity::kWarning);
  std::vector<RankIndex> both = one.ranks;
  both.insert(both.end(), one.other_ranks.begin(), one.other_ranks.end());
  context.SetRanks(finding, one.other_ranks);
  finding.function = one.function;
  finding.cause = ChangesText(one.changes, "the code of " + context.WhoInside(one.ranks),
                              "that of " + context.WhoInside(one.other_ranks), kMostChanges);
  finding.title = fmt::format("{} saved other precompiled code of {} under the same key: {}",
                              context.Who(one.other_ranks), FunctionAt(one.function, {}, one.line),
                              finding.cause);
  finding.detail =
      "The key is made of the function's qualified name and first line alone. Of ranks that share "
      "a "
      "store, the last one to write is the one whose code a later start loads; the others compile "
      "again.";
  finding.suggestion =
      "make what the guards check equal on all ranks, or give each of these groups of ranks a "
      "TORCHINDUCTOR_CACHE_DIR of its own";
  finding.query = fmt::format("SELECT * FROM precompile_entry WHERE record_id IN ({}, {})",
                              one.record_id, one.other_record_id);
}

void AddIncomplete(FindingContext& context, const SavedEntry& one) {
  if (one.error.empty() && one.missing_backends == 0) return;
  Finding& finding = context.Add(FindingKind::kCacheBypassed, FindingSeverity::kWarning);
  context.SetRanks(finding, one.ranks);
  finding.function = one.function;
  const std::string function = FunctionAt(one.function, {}, one.line);
  if (!one.error.empty()) {
    finding.cause = Shorten(one.error, 300);
    finding.title =
        fmt::format("Precompiled code of {} was not saved: {}", function, finding.cause);
  } else {
    finding.cause = fmt::format("the process does not hold {} of its {} compiled graph{}",
                                one.missing_backends, one.backends, PluralS(one.backends));
    finding.title = fmt::format(
        "Precompiled code of {} was saved without the code that calls {} of its {} "
        "compiled graph{}",
        function, one.missing_backends, one.backends, PluralS(one.backends));
  }
  finding.detail = "A process that loads the entry compiles this again at each start.";
  if (one.error.empty())
    finding.suggestion =
        "compile with the backend inductor, and see whether AOTAutograd's cache was bypassed: only "
        "what that cache keeps can be saved";
  finding.query = fmt::format("SELECT * FROM precompile_entry WHERE record_id = {}", one.record_id);
}

}  // namespace

void AddPrecompiled(FindingContext& context) {
  const PrecompiledCode& code = context.ranks.cache.precompiled;
  for (const CompiledAgain& one : code.again) {
    if (!IsOfOther(code, one)) AddAgain(context, code, one);
  }
  for (const DifferentEntry& one : code.different) AddDifferent(context, one);
  for (const SavedEntry& one : code.entries) AddIncomplete(context, one);
}

}  // namespace tlparse

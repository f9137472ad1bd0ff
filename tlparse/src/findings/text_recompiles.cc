// Functions that text of TORCH_LOGS, or the warning at the recompile limit, says were compiled again.
#include "findings/text_recompiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "artifacts/common/text/recompile_limit.h"
#include "artifacts/common/text/recompile_origin.h"
#include "base/plural.h"
#include "facts/compiles/recompile_texts.h"
#include "findings/recompile_fold.h"
#include "queries/findings/text_recompiles.h"

namespace tlparse {

// " in each of 2 processes"; empty: there is one.
std::string OnEach(std::int64_t processes, std::int64_t least, std::int64_t most) {
  if (processes < 2) return {};
  return fmt::format(" in {} of {} processes", least == most ? "each" : "one", processes);
}

std::string TextsOf(std::string_view path, std::int64_t paths) {
  return paths < 2 ? std::string(path)
                   : fmt::format("{} and {} other text{}", path, paths - 1, PluralS(paths - 1));
}

// The ranks that a text names: "0,1".
void SetTextRanks(std::string_view ranks, std::int64_t processes, Finding& finding) {
  while (!ranks.empty()) {
    std::int64_t rank = 0;
    const auto [end, error] = std::from_chars(ranks.data(), ranks.data() + ranks.size(), rank);
    if (error == std::errc()) finding.ranks.push_back(rank);
    ranks.remove_prefix(std::min(ranks.size(), static_cast<std::size_t>(end - ranks.data()) + 1));
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.rank_count = static_cast<std::size_t>(processes);
}

namespace {

// "torch._dynamo hit config.recompile_limit (8)" → "torch._dynamo.config.recompile_limit, 8"
std::string LimitOf(std::string_view message) {
  constexpr std::string_view kBefore = "hit config.";
  const std::size_t at = message.find(kBefore);
  if (at == message.npos) return "torch._dynamo.config.recompile_limit";
  const std::string_view name = message.substr(at + kBefore.size());
  const std::size_t open = name.find(" ("), close = name.find(')');
  if (open == name.npos || close == name.npos || close < open)
    return fmt::format("torch._dynamo.config.{}", name);
  return fmt::format("torch._dynamo.config.{}, {}", name.substr(0, open),
                     name.substr(open + 2, close - open - 2));
}

// Of one process.
struct TextProcess {
  std::vector<Recompile> recompiles;
  std::optional<std::int64_t> rank;
  std::string path;
  std::string limit, last_reason;  // of the warning; empty: the limit was not reached
  bool has_raised = false;         // it was an error: fullgraph=True

  std::int64_t Made() const {
    return std::count_if(recompiles.begin(), recompiles.end(),
                         [](const Recompile& one) { return !one.is_refused; });
  }
};

struct TextFunction {
  std::string name, file;
  std::int64_t line = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, TextProcess> processes;  // by profile and rank
};

// Rows of one recompile come one after the other, each an entry that failed.
void AddRow(const RecompileInText& row, TextFunction& function, bool has_raised) {
  TextProcess& process = function.processes[{row.profile_id, row.rank.value_or(-1)}];
  process.path = row.path;
  process.rank = row.rank;
  process.has_raised = has_raised;
  if (row.is_refused) {
    process.limit = LimitOf(row.message);
    process.last_reason = row.guard;
  }
  const RecompileOrigin origin = OriginOfRecompile(row.reason);
  FailedEntry entry;
  entry.label = row.prior_label.value_or("");
  entry.file = origin.file;
  entry.line = origin.line.value_or(0);
  entry.reason = ParseRecompileReason(row.guard, row.reason, entry.file, entry.line);
  const std::string label(row.label.value_or(""));
  auto found = std::find_if(process.recompiles.begin(), process.recompiles.end(),
                            [&](const Recompile& one) { return one.label == label; });
  if (label.empty() || found == process.recompiles.end()) {
    found = process.recompiles.insert(process.recompiles.end(), Recompile{});
    found->label = label;
    found->is_refused = row.is_refused;
  } else if (row.is_refused) {
    found->is_refused = true;  // its reasons are known
    return;
  }
  found->entries.push_back(std::move(entry));
}

// Processes that all reached the limit, or did not.
using TextProcesses = std::vector<const TextProcess*>;

std::string TitleOf(const TextFunction& function, const TextProcess& first,
                    const TextProcesses& processes) {
  std::int64_t least = INT64_MAX;
  for (const TextProcess* const one : processes) least = std::min(least, one->Made());
  const std::string each = OnEach(static_cast<std::int64_t>(processes.size()), least, first.Made());
  if (first.Made() == 0)
    return fmt::format("{} reached the recompile limit ({}){}; last reason: {}", function.name,
                       first.limit, each, first.last_reason);
  const std::string varied = Varied(first.recompiles);
  return fmt::format(
      "{} was recompiled {}{}{}{}, by the text of TORCH_LOGS", function.name,
      Times(static_cast<std::size_t>(first.Made())), each,
      varied.empty() ? "" : fmt::format(" ({})", varied),
      first.limit.empty() ? "" : fmt::format(" and reached the recompile limit ({})", first.limit));
}

void AddFunction(FindingContext& context, const TextFunction& function,
                 const TextProcesses& processes) {
  if (processes.empty()) return;
  const TextProcess& first = **std::max_element(
      processes.begin(), processes.end(),
      [](const TextProcess* a, const TextProcess* b) { return a->Made() < b->Made(); });
  const std::vector<Recompile>& recompiles = first.recompiles;
  const bool is_limit = !first.limit.empty();
  Finding& finding =
      context.Add(is_limit ? FindingKind::kRecompileLimit : FindingKind::kRecompiles,
                  is_limit || AreRepeated(recompiles, static_cast<std::size_t>(first.Made()))
                      ? FindingSeverity::kWarning
                      : FindingSeverity::kNote);
  finding.title = TitleOf(function, first, processes);
  finding.is_asked_for = std::all_of(recompiles.begin(), recompiles.end(), &IsWanted);
  finding.function = function.name;
  std::set<std::int64_t> ranks;
  std::set<std::string> paths;
  for (const TextProcess* const one : processes) {
    if (one->rank) ranks.insert(*one->rank);
    paths.insert(one->path);
  }
  finding.ranks = {ranks.begin(), ranks.end()};
  finding.rank_count = processes.size();
  if (!function.file.empty()) finding.place = FindingPlace{function.file, function.line, {}};
  if (const FailedEntry* const entry = EntryOfMost(recompiles); entry != nullptr && entry->line > 0)
    finding.place =
        FindingPlace{WholePath(entry->file, function.file), entry->line, entry->reason.code};
  finding.cause = Varied(recompiles);
  if (is_limit)
    finding.detail = first.has_raised
                         ? "With fullgraph=True that is an error, which the program raised. "
                         : "What no earlier compile fits runs without compiled code. ";
  if (const std::string guards = FailedGuards(recompiles); !guards.empty())
    finding.detail += fmt::format("Guards that failed: {}. ", guards);
  finding.detail += fmt::format("From {}; no structured trace of its process is among the input.",
                                TextsOf(*paths.begin(), static_cast<std::int64_t>(paths.size())));
  SetAdvice(recompiles, function.file, finding);
  if (finding.suggestion.empty())
    finding.suggestion = "TORCH_TRACE=<directory> records what each recompile cost";
  finding.query = fmt::format(
      "SELECT t.* FROM torch_log_recompile t JOIN profile p ON p.id = t.profile_id "
      "WHERE p.run_id = {} AND t.function_line IS {}",
      context.job.run_id(), function.line > 0 ? std::to_string(function.line) : "NULL");
}

}  // namespace

Result<void> FindRecompilesInText(FindingContext& context) {
  std::set<std::int64_t> raised;  // profiles
  FOR_EACH_ROW(const RaisedInText& row,
               Query<RaisedInText>(context.database, {.run_id = context.job.run_id()}))
    if (IsHardRecompileLimit(row.type)) raised.insert(row.profile_id);
  std::map<std::tuple<std::string, std::string, std::int64_t>, TextFunction> functions;
  FOR_EACH_ROW(const RecompileInText& row,
               Query<RecompileInText>(context.database, {.run_id = context.job.run_id()})) {
    TextFunction& function =
        functions[{std::string(row.function), std::string(row.file), row.function_line}];
    function.name = row.function;
    function.file = row.file;
    function.line = row.function_line;
    AddRow(row, function, raised.count(row.profile_id) > 0);
  }
  for (auto& [key, function] : functions) {
    TextProcesses limited, others;
    for (auto& [of, process] : function.processes) {
      PutTellingFirst(process.recompiles);
      (process.limit.empty() ? others : limited).push_back(&process);
    }
    AddFunction(context, function, limited);
    AddFunction(context, function, others);
  }
  return {};
}

}  // namespace tlparse

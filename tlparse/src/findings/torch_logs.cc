// What text of processes alone tells: recompiles, the recompile limit, graph breaks; and NCCL's watchdog.
#include "queries/findings/torch_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/plural.h"
#include "facts/compiles/advice.h"
#include "findings/context.h"
#include "findings/watchdog.h"

namespace tlparse {
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

void AddTextRecompiles(FindingContext& context, const TextRecompiles& row) {
  const std::string function(row.function);
  Finding& finding =
      context.Add(row.is_refused ? FindingKind::kRecompileLimit : FindingKind::kRecompiles,
                  row.is_refused ? FindingSeverity::kWarning : FindingSeverity::kNote);
  finding.is_asked_for = false;  // as far as is known
  finding.title = row.is_refused
                      ? fmt::format("{} reached the recompile limit ({}); last reason: {}",
                                    function, LimitOf(row.message), row.guard)
                      : fmt::format("{} was recompiled {}{}, by the text of TORCH_LOGS", function,
                                    Times(static_cast<std::size_t>(row.times)),
                                    OnEach(row.processes, row.least, row.times));
  finding.function = function;
  SetTextRanks(row.ranks.value_or(""), row.processes, finding);
  if (!row.file.empty()) finding.place = FindingPlace{std::string(row.file), row.function_line, {}};
  finding.cause = row.guards == 1 ? std::string(row.guard) : std::string();
  finding.detail =
      fmt::format("{}{}; no structured trace of its process is among the input.",
                  row.is_refused ? "What no earlier compile fits runs without compiled code. From "
                  : row.guards == 1 ? fmt::format("The guard that failed: {}. From ", row.guard)
                                    : fmt::format("{} guards failed. From ", row.guards),
                  TextsOf(row.path, row.paths));
  const Advice advice =
      row.guards == 1 ? AdviceForRecompiles(ParseRecompileReason(row.guard, row.reason, {}, 0),
                                            static_cast<std::size_t>(row.times))
                      : Advice{};
  finding.suggestion =
      advice.text.empty()
          ? "TORCH_TRACE=<directory> records every recompile with its values and the user's line"
          : advice.text;
  finding.query = fmt::format(
      "SELECT t.* FROM torch_log_recompile t JOIN profile p ON p.id = t.profile_id "
      "WHERE p.run_id = {} AND t.is_refused = {}",
      context.job.run_id(), row.is_refused ? 1 : 0);
}

void AddTextBreaks(FindingContext& context, const TextGraphBreaks& row) {
  Finding& finding = context.Add(FindingKind::kGraphBreak, FindingSeverity::kNote);
  const std::string_view reason = row.reason.empty() ? row.message : row.reason;
  std::string at;
  if (!row.file.empty()) {
    finding.place = FindingPlace{std::string(row.file), row.user_line, {}};
    at = fmt::format(" at {}:{}", row.file.substr(row.file.rfind('/') + 1), row.user_line);
  }
  finding.title =
      fmt::format("{} graph break{}{}{}, by the text of TORCH_LOGS: {}",
                  row.times == 1 ? "One" : fmt::format("{}", row.times), PluralS(row.times), at,
                  OnEach(row.processes, row.least, row.times), reason);
  SetTextRanks(row.ranks.value_or(""), row.processes, finding);
  finding.cause = std::string(reason);
  finding.detail = fmt::format("From {}; no structured trace of its process is among the input.",
                               TextsOf(row.path, row.paths));
  finding.suggestion = row.hint.empty() ? "TORCH_TRACE=<directory> records each with PyTorch's hint"
                                        : std::string(row.hint);
  finding.query = fmt::format(
      "SELECT t.* FROM torch_log_graph_break t JOIN profile p ON p.id = t.profile_id "
      "WHERE p.run_id = {}",
      context.job.run_id());
}

}  // namespace

Result<void> FindInTorchLogs(FindingContext& context) {
  const std::int64_t run_id = context.job.run_id();
  FOR_EACH_ROW(const TextRecompiles& row,
               Query<TextRecompiles>(context.database, {.run_id = run_id}))
    AddTextRecompiles(context, row);
  FOR_EACH_ROW(const TextGraphBreaks& row,
               Query<TextGraphBreaks>(context.database, {.run_id = run_id}))
    AddTextBreaks(context, row);
  return FindInWatchdog(context);
}

}  // namespace tlparse

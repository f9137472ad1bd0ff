#include "findings/exit_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "artifacts/common/graph/graph_nodes.h"
#include "artifacts/common/text/python_traceback.h"
#include "facts/text/shorten.h"
#include "queries/facts/job/exits.h"

namespace tlparse {
namespace {

// "At 23:00:43.013 UTC, 1.50 s after the last record of its log, of 4/0 forward".
std::string When(const FindingContext& context, const ProcessExit& exit, std::int64_t time_us) {
  std::string text = "At " + ClockText(time_us);
  for (const RankIndex rank : context.All()) {
    const ProcessStatus& status = context.StatusOf(rank);
    if (!exit.process_id || status.process_id != *exit.process_id || !status.last_record_us)
      continue;
    text += fmt::format(", {} after the last record of its log{}",
                        SecondsText(std::max<std::int64_t>(0, time_us - *status.last_record_us)),
                        status.compile.empty() ? "" : ", of " + status.Title());
  }
  return text;
}

// "embedding" of torch.ops.aten.embedding.default; empty: it takes no index, or is not in the kernel,
// whose name has its operations: "cpp_fused_embedding_sum_0".
std::string IndexOf(std::string_view operation, std::string_view kernel) {
  constexpr std::string_view kAtenOperation = "torch.ops.aten.";
  constexpr std::string_view kOperations[] = {
      "embedding",   "gather",         "index",         "index_add",
      "index_put",   "index_put_",     "index_select",  "scatter",
      "scatter_add", "scatter_reduce", "_unsafe_index", "_unsafe_index_put"};
  if (!operation.starts_with(kAtenOperation)) return {};
  operation.remove_prefix(kAtenOperation.size());
  operation = operation.substr(0, operation.find('.'));
  const bool is_known =
      std::find(std::begin(kOperations), std::end(kOperations), operation) != std::end(kOperations);
  const bool is_inside = kernel.find(fmt::format("_{}_", operation)) != std::string_view::npos;
  return is_known && is_inside ? std::string(operation) : std::string();
}

}  // namespace

Result<void> SayIndex(const FindingContext& context, const std::string& kernel, Finding& finding) {
  if (kernel.empty()) return {};
  std::map<std::pair<std::string, std::int64_t>, std::set<std::string>> lines;
  ParsedGraph graph;
  FOR_EACH_ROW(
      const GraphOfKernel& row,
      Query<GraphOfKernel>(context.database, {.run_id = context.job.run_id(), .name = kernel})) {
    ParseGraphNodes(row.content, graph);
    for (const ParsedGraph::Node& node : graph.nodes) {
      const std::string operation = IndexOf(node.operation, kernel);
      if (operation.empty() || node.source < 0) continue;
      const SourceLine& source = graph.sources[static_cast<std::size_t>(node.source)];
      lines[{std::string(source.file), source.line}].insert(operation);
    }
  }
  if (lines.size() != 1) {
    finding.detail += fmt::format(" The index is of one of the operations of {}.", kernel);
    return {};
  }
  const auto& [place, operations] = *lines.begin();
  finding.place = FindingPlace{place.first, place.second, {}};
  finding.detail += fmt::format(" The index is of {} in {}, at {}.", fmt::join(operations, " or "),
                                kernel, PlaceText(*finding.place));
  return {};
}

std::string HowItEnded(const ProcessExit& exit) {
  return exit.signal ? fmt::format("was ended by {}", SignalName(*exit.signal))
                     : fmt::format("ended with exit code {}", exit.exit_code.value_or(0));
}

std::string WhatCame(const FindingContext& context, const ProcessExit& exit) {
  const std::optional<std::int64_t> raised_us =
      exit.raised ? exit.raised->raised_us : std::optional<std::int64_t>();
  std::string text = When(context, exit, raised_us ? *raised_us : exit.ended_us.value_or(0));
  if (raised_us && (exit.signal || exit.exit_code) && exit.ended_us)
    text += fmt::format("; it {} {} later", HowItEnded(exit),
                        SecondsText(std::max<std::int64_t>(0, *exit.ended_us - *raised_us)));
  return text + " (run.json).";
}

std::string WhoLivedOn(const std::vector<ProcessExit>& exits, const ProcessExit& exit) {
  std::set<std::int64_t> ranks;
  for (const ProcessExit& one : exits) {
    if (exit.IsCommand() && one.rank && one.profile_id == exit.profile_id && !one.ended_us)
      ranks.insert(*one.rank);
  }
  return ranks.empty() ? std::string()
                       : fmt::format(" {} lived on.", RanksFirst({ranks.begin(), ranks.end()}));
}

std::string QueryOf(const FatalException& raised) {
  return fmt::format("SELECT id, rank FROM uncaught_exception WHERE id = {}", raised.id);
}

std::string QueryOf(const ProcessExit& exit) {
  return fmt::format(
      "SELECT profile_id, rank, pid, exit_code, signal, ended_us FROM run_process WHERE profile_id "
      "= {} AND ordinal = {}",
      exit.profile_id, exit.ordinal);
}

std::string Subject(const std::optional<std::int64_t>& rank) {
  return rank ? fmt::format("Rank {}", *rank) : "The command";
}

std::string Subject(const ProcessExit& exit) {
  if (exit.rank || exit.IsCommand()) return Subject(exit.rank);
  return fmt::format("'{}' (pid {})", Shorten(exit.command, 80), exit.pid);
}

void SayReported(Finding& finding, const PrintedFailures::Root& root, const ProcessExit& exit) {
  const std::string who = root.rank         ? Subject(root.rank)
                          : root.is_fault   ? "The program"
                          : root.local_rank ? fmt::format("Local rank {}", *root.local_rank)
                                            : root.process;
  finding.title = fmt::format("{} {}{}", who, HowItEnded(exit),
                              root.is_out_of_memory ? ": its memory ran out" : "");
  finding.cause = exit.signal ? SignalName(*exit.signal) : "exit code";
  finding.suggestion =
      root.is_out_of_memory
          ? "more memory for the job (sbatch --mem), or less in use: loader workers, "
            "pinned memory, copies on the host"
      : exit.signal == SIGKILL ? kLookForMemory
                               : "read what it printed last";
  if (root.is_fault) {
    finding.detail = fmt::format("By what Python's faulthandler printed in {}.", root.path);
    return;
  }
  finding.detail =
      root.rank ? fmt::format("By the report of torchrun in {}: the failure that it saw first.",
                              root.path)
                : fmt::format("By what {} logged in {}", root.launcher, root.path);
  if (root.local_rank) finding.detail += "; on which host is not in it.";
  if (root.launcher == "DeepSpeed")
    finding.detail +=
        "; which rank is not in it: the command that it names is that of the last process which it "
        "started.";
  if (root.launcher == "srun") finding.detail += ": the first that failed.";
  if (root.launcher == "slurmstepd")
    finding.detail += ", for its limit of memory; which task is not in it.";
}

void SetAlike(Finding& finding, const ProcessExit& exit, const std::vector<std::int64_t>& alike,
              const std::set<std::int64_t>& known) {
  const bool are_everyone = std::set(alike.begin(), alike.end()) == known;
  finding.ranks = are_everyone ? std::vector<std::int64_t>() : alike;
  finding.rank_count = alike.size();
  finding.title =
      are_everyone
          ? fmt::format("Each of the {} ranks {}", alike.size(), HowItEnded(exit))
          : fmt::format("{} were ended by {}", RanksFirst(alike), SignalName(*exit.signal));
  finding.detail[0] = 'a';  // "At"
  finding.detail = fmt::format("Rank {} first, {}", *exit.rank, finding.detail);
}

void NameFailedRanks(Finding& finding, const FatalException& raised, std::string who) {
  const std::vector<std::int64_t> failed = raised.FailedRanks();
  const TracebackSummary quoted = QuotedTraceback(raised.message);
  if (failed.empty() || quoted.type.empty()) return;
  finding.ranks = failed;
  finding.rank_count = failed.size();
  finding.cause =
      fmt::format("{}: {}", quoted.type, quoted.message.substr(0, quoted.message.find('\n')));
  who[0] = static_cast<char>(std::tolower(who[0]));
  finding.title = fmt::format("{} raised {}: {} raised {}", RanksFirst(failed), finding.cause, who,
                              raised.type);
}

bool FollowsFromOthers(const ProcessExit& exit) {
  return exit.raised ? exit.raised->IsTimeout() || exit.raised->ComesOfPeer() : !exit.signal;
}

bool HasRankElsewhere(const std::vector<ProcessExit>& exits, const ProcessExit& exit) {
  return std::any_of(exits.begin(), exits.end(), [&](const ProcessExit& one) {
    return one.rank && one.rank != exit.rank && one.RanBeside(exit) && !one.raised &&
           one.WasAsked() && !one.stopped_at.empty();
  });
}

bool WasOfDone(const std::vector<ProcessExit>& exits, const ProcessExit& exit) {
  if (!exit.rank || !exit.ended_us || (exit.signal != SIGKILL && exit.signal != SIGTERM))
    return false;
  return std::any_of(exits.begin(), exits.end(),
                     [&](const ProcessExit& one) {
                       return one.IsCommand() && one.exit_code == 0 && one.ended_us > exit.ended_us;
                     }) &&
         std::none_of(exits.begin(), exits.end(), [&](const ProcessExit& one) {
           return one.rank && !one.signal && one.RanBeside(exit) &&
                  (!one.ended_us || one.ended_us > exit.ended_us);
         });
}

void AddOfDone(FindingContext& context, const std::vector<ProcessExit>& exits,
               const ProcessExit& exit) {
  Finding finding;
  finding.kind = FindingKind::kCrashed;
  finding.severity = FindingSeverity::kNote;
  std::set<std::int64_t> ranks;
  for (const ProcessExit& one : exits) {
    if (one.rank && one.signal == exit.signal && one.RanBeside(exit)) ranks.insert(*one.rank);
  }
  finding.ranks = {ranks.begin(), ranks.end()};
  finding.rank_count = finding.ranks.size();
  finding.title = fmt::format("{} {} ended by {}, and the command then ended with exit code 0",
                              RanksFirst(finding.ranks), ranks.size() == 1 ? "was" : "were",
                              SignalName(*exit.signal));
  finding.cause = SignalName(*exit.signal);
  finding.detail = WhatCame(context, exit);
  finding.since_us = exit.ended_us;
  finding.query = QueryOf(exit);
  context.findings.push_back(std::move(finding));
}

bool LivedOn(const std::vector<ProcessExit>& exits, std::int64_t rank) {
  return std::any_of(exits.begin(), exits.end(), [&](const ProcessExit& one) {
    return one.rank == rank && !one.ended_us && !one.HasFailed();
  });
}

}  // namespace tlparse

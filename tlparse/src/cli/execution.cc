// tlparse execution <db>: in which order ranks ran their graphs, how much estimates differ, where
// output tensors differ.
#include "facts/execution/execution.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/finding_output.h"
#include "cli/rank_answer.h"
#include "cli/rank_output.h"

namespace tlparse {
namespace {

std::string Nanoseconds(double ns) { return HumanDuration(ns / 1e9); }

std::string Joined(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& one : texts) text += (text.empty() ? "" : ", ") + one;
  return text;
}

void PrintOrder(const ExecutionAnswer& answer, bool all) {
  const Job& job = answer.job;
  if (answer.classes.empty()) {
    PrintWrapped(
        fmt::format("no execution order in this run: {}run it in "
                    "torch._inductor.debug.record_and_log_graph_execution_order()",
                    answer.not_written.empty() ? "" : answer.not_written + ". With that version "),
        0, 2);
    return;
  }
  for (std::size_t i = 0; i < answer.classes.size(); ++i) {
    const ExecutionClass& one = answer.classes[i];
    PrintWrapped(
        fmt::format("{}: ran {}{}", RanksText(job, one.ranks), Count(one.executions, "graph"),
                    answer.classes.size() == 1 ? ", in the same order"
                    : i > 0                    ? ""
                    : answer.has_majority
                        ? " (the majority)"
                        : " (there is no majority: the others are compared with this class)"),
        0, 2);
    if (one.unlabelled > 0)
      PrintWrapped(fmt::format("{} of them from the cache, without a compile id: taken to agree",
                               one.unlabelled),
                   2, 4);
    const std::string damage =
        DamageText(job, answer.damage, one.ranks, answer.classes.front().ranks);
    if (i > 0 && !damage.empty()) PrintWrapped(damage + ": what follows may be due to that", 2, 4);
    if (one.is_order_of_threads)
      PrintWrapped(
          "the same graphs equally often, from processes of several threads, which run graphs in "
          "no fixed order: no divergence",
          2, 4);
    const std::size_t most =
        all ? one.differences.size() : std::min<std::size_t>(one.differences.size(), 5);
    for (std::size_t j = 0; j < most; ++j) {
      const OrderDifference& difference = one.differences[j];
      PrintWrapped(
          fmt::format("{}at #{}{}", j == 0 ? "first difference " : "", difference.position + 1,
                      difference.is_moved ? ": the same graphs in another order" : ""),
          2, 4);
      const bool is_both = !difference.ran.empty() && !difference.against_ran.empty();
      if (!difference.ran.empty())
        PrintWrapped((is_both ? "here: " : "only here: ") + Joined(difference.ran), 4, 6);
      if (!difference.against_ran.empty())
        PrintWrapped((is_both ? "there: " : "only there: ") + Joined(difference.against_ran), 4, 6);
    }
    const std::size_t more = one.differences.size() - most + one.left_out;
    if (more > 0) PrintWrapped(fmt::format("and {} more (--all)", more), 2, 4);
  }
  if (!answer.without_order.empty())
    PrintWrapped(fmt::format("{} logged no execution order", RanksText(job, answer.without_order)),
                 0, 2);
}

void PrintOps(const ExecutionAnswer& answer, bool all) {
  for (const TensorDivergence& divergence : answer.tensors) {
    PrintWrapped(
        fmt::format("{} ≠ {}: output tensors differ in {}", RanksText(answer.job, divergence.ranks),
                    RanksText(answer.job, divergence.against),
                    answer.graphs.Title(answer.job, divergence.graph_slot)),
        0, 2);
    const std::string damage =
        DamageText(answer.job, answer.damage, divergence.ranks, divergence.against);
    if (!damage.empty()) PrintWrapped(damage + ": this may be due to that", 4, 6);
    const std::size_t most =
        all ? divergence.ops.size() : std::min<std::size_t>(divergence.ops.size(), 5);
    for (std::size_t i = 0; i < most; ++i) {
      const TensorDivergence::Op& op = divergence.ops[i];
      PrintWrapped(fmt::format("{}: {} → {}", op.name,
                               op.against_text.empty() ? "(no such op)" : op.against_text,
                               op.text.empty() ? "(no such op)" : op.text),
                   4, 6);
    }
    const std::size_t more = divergence.ops.size() - most + divergence.left_out;
    if (more > 0) PrintWrapped(fmt::format("and {} more (--all)", more), 4, 6);
  }
  if (answer.runtimes.empty()) {
    if (answer.graphs_with_estimates > 0) {
      PrintWrapped(fmt::format("estimated runtimes agree in {}",
                               Count(answer.graphs_with_estimates, "graph")),
                   0, 2);
    }
    return;
  }
  std::fputc('\n', stdout);
  PrintHeading("estimated runtime by rank, widest first");
  using Align = Table::Align;
  Table table({{"graph"},
               {"least", Align::kRight},
               {"ranks"},
               {"most", Align::kRight},
               {"ranks"},
               {"widest op"}});
  const std::size_t most =
      all ? answer.runtimes.size() : std::min<std::size_t>(answer.runtimes.size(), 10);
  for (std::size_t i = 0; i < most; ++i) {
    const RuntimeSpread& spread = answer.runtimes[i];
    table.Add({answer.graphs.Title(answer.job, spread.graph_slot), Nanoseconds(spread.lowest_ns),
               answer.job.FormatRanks(spread.lowest_ranks), Nanoseconds(spread.highest_ns),
               answer.job.FormatRanks(spread.highest_ranks),
               spread.ops.empty() ? std::string()
                                  : fmt::format("{}: {} → {}", spread.ops[0].name,
                                                Nanoseconds(spread.ops[0].lowest_ns),
                                                Nanoseconds(spread.ops[0].highest_ns))});
  }
  table.Print();
}

void PrintExecution(const ExecutionAnswer& answer, bool all) {
  PrintHeading(fmt::format("{}: {}", answer.job.Title(),
                           Count(answer.job.participants().size(), "participant")));
  PrintOrder(answer, all);
  PrintOps(answer, all);
}

// Kinds of findings whose subject is the order of execution.
constexpr FindingKind kOfExecution[] = {FindingKind::kExecutionDivergence};

void WriteClass(JsonWriter& json, const ExecutionAnswer& answer, const ExecutionClass& one) {
  json.BeginObject().Key("ranks");
  WriteRanks(json, answer.job, one.ranks);
  json.Key("executions")
      .Int(static_cast<std::int64_t>(one.executions))
      .Key("unlabelled")
      .Int(static_cast<std::int64_t>(one.unlabelled));
  json.Key("differences").BeginArray();
  for (const OrderDifference& difference : one.differences) {
    json.BeginObject()
        .Key("position")
        .Int(difference.position)
        .Key("against_position")
        .Int(difference.against_position)
        .Key("ran");
    WriteStrings(json, difference.ran);
    json.Key("against_ran");
    WriteStrings(json, difference.against_ran);
    json.Key("is_moved").Bool(difference.is_moved).EndObject();
  }
  json.EndArray().Key("left_out").Int(static_cast<std::int64_t>(one.left_out));
  json.Key("is_order_of_threads").Bool(one.is_order_of_threads);
  json.Key("is_divergent").Bool(answer.IsDivergent(one)).EndObject();
}

void WriteRuntimes(JsonWriter& json, const ExecutionAnswer& answer, const RuntimeSpread& spread) {
  json.BeginObject()
      .Key("graph")
      .String(answer.graphs.Title(answer.job, spread.graph_slot))
      .Key("lowest_ns")
      .Real(spread.lowest_ns);
  json.Key("lowest_ranks");
  WriteRanks(json, answer.job, spread.lowest_ranks);
  json.Key("highest_ns").Real(spread.highest_ns).Key("highest_ranks");
  WriteRanks(json, answer.job, spread.highest_ranks);
  json.Key("ops").BeginArray();
  for (const RuntimeSpread::Op& op : spread.ops) {
    json.BeginObject()
        .Key("name")
        .String(op.name)
        .Key("lowest_ns")
        .Real(op.lowest_ns)
        .Key("highest_ns")
        .Real(op.highest_ns)
        .EndObject();
  }
  json.EndArray().EndObject();
}

void WriteTensors(JsonWriter& json, const ExecutionAnswer& answer,
                  const TensorDivergence& divergence) {
  json.BeginObject()
      .Key("graph")
      .String(answer.graphs.Title(answer.job, divergence.graph_slot))
      .Key("ranks");
  WriteRanks(json, answer.job, divergence.ranks);
  json.Key("against");
  WriteRanks(json, answer.job, divergence.against);
  json.Key("has_majority").Bool(divergence.has_majority).Key("ops").BeginArray();
  for (const TensorDivergence::Op& op : divergence.ops) {
    json.BeginObject().Key("name").String(op.name).Key("outputs").OptionalString(NonEmpty(op.text));
    json.Key("against_outputs").OptionalString(NonEmpty(op.against_text)).EndObject();
  }
  json.EndArray().Key("left_out").Int(static_cast<std::int64_t>(divergence.left_out)).EndObject();
}

JsonWriter ExecutionToJson(const ExecutionAnswer& answer, const std::vector<Finding>& findings) {
  JsonWriter json;
  json.BeginObject();
  WriteJob(json, answer.job);
  json.Key("participants").Int(static_cast<std::int64_t>(answer.job.participants().size()));
  json.Key("has_divergence")
      .Bool(answer.HasDivergence())
      .Key("has_majority")
      .Bool(answer.has_majority)
      .Key("classes")
      .BeginArray();
  for (const ExecutionClass& one : answer.classes) WriteClass(json, answer, one);
  json.EndArray().Key("without_order");
  WriteRanks(json, answer.job, answer.without_order);
  json.Key("not_written").OptionalString(NonEmpty(answer.not_written));
  json.Key("runtimes").BeginArray();
  for (const RuntimeSpread& spread : answer.runtimes) WriteRuntimes(json, answer, spread);
  json.EndArray().Key("tensors").BeginArray();
  for (const TensorDivergence& divergence : answer.tensors) WriteTensors(json, answer, divergence);
  json.EndArray().Key("findings");
  WriteFindings(json, findings);
  json.EndObject();
  return json;
}

}  // namespace

int RunExecution(std::span<const std::string> arguments) {
  Arguments app(
      "The order in which ranks ran their graphs, how much estimated runtimes differ, where output "
      "tensors differ.",
      "execution");
  ExecutionOptions options;
  return RunSubjectAnswer(app, arguments, "every difference", options, kOfExecution,
                          AnalyzeExecution, ExecutionToJson, PrintExecution);
}

}  // namespace tlparse

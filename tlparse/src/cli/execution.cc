// tlparse execution <db>: in which order ranks ran their graphs, how much estimates differ, where
// output tensors differ.
#include "facts/execution/execution.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/rank_answer.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"

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

void PrintExecution(const ExecutionAnswer& answer, bool all, const AskedPart& part) {
  PrintHeading(fmt::format("{}: {}", answer.job.Title(),
                           Count(answer.job.participants().size(), "participant")),
               part);
  PrintOrder(answer, all);
  PrintOps(answer, all);
}

// Kinds of findings whose subject is the order of execution.
constexpr FindingKind kOfExecution[] = {FindingKind::kExecutionDivergence};

using InExecution = WithFindings<ExecutionAnswer>;

}  // namespace

template <>
struct FieldsOf<OrderDifference> {
  using Of = OrderDifference;
  static constexpr FieldList list{
      Field{"position", AtLeast<0>(&Of::position)},
      Field{"against_position", AtLeast<0>(&Of::against_position)},
      Field{"ran", &Of::ran},
      Field{"against_ran", &Of::against_ran},
      Field{"is_moved", &Of::is_moved},
  };
};

template <>
struct FieldsOf<ExecutionClass> {
  using Of = ExecutionClass;
  static constexpr FieldList list{
      Field{"ranks", Participants{&Of::ranks}},
      Field{"executions", &Of::executions},
      Field{"unlabelled", &Of::unlabelled},
      Field{"differences", &Of::differences},
      Field{"left_out", &Of::left_out},
      Field{"is_order_of_threads", &Of::is_order_of_threads,
            "the same graphs equally often as the reference, and processes whose events are of "
            "several threads: no divergence"},
      Field{"is_divergent",
            [](const Of& of, const InExecution& in) { return in.answer.IsDivergent(of); },
            "false for the first class, and where damage of the logs or the order of threads may "
            "be why it differs"},
  };
};

template <>
struct FieldsOf<RuntimeSpread::Op> {
  using Of = RuntimeSpread::Op;
  static constexpr FieldList list{
      Field{"name", &Of::name},
      Field{"lowest_ns", &Of::lowest_ns},
      Field{"highest_ns", &Of::highest_ns},
  };
};

template <>
struct FieldsOf<RuntimeSpread> {
  using Of = RuntimeSpread;
  static constexpr FieldList list{
      Field{"graph", kGraphTitle},
      Field{"lowest_ns", &Of::lowest_ns},
      Field{"lowest_ranks", Participants{&Of::lowest_ranks}},
      Field{"highest_ns", &Of::highest_ns},
      Field{"highest_ranks", Participants{&Of::highest_ranks}},
      Field{"ops", &Of::ops},
  };
};

template <>
struct FieldsOf<TensorDivergence::Op> {
  using Of = TensorDivergence::Op;
  static constexpr FieldList list{
      Field{"name", &Of::name},
      Field{"outputs", OrNull{&Of::text}},
      Field{"against_outputs", OrNull{&Of::against_text}},
  };
};

template <>
struct FieldsOf<TensorDivergence> {
  using Of = TensorDivergence;
  static constexpr FieldList list{
      Field{"graph", kGraphTitle},
      Field{"ranks", Participants{&Of::ranks}},
      Field{"against", Participants{&Of::against}},
      Field{"has_majority", &Of::has_majority},
      Field{"ops", &Of::ops},
      Field{"left_out", &Of::left_out},
  };
};

template <>
struct FieldsOf<ExecutionAnswer> {
  using Of = ExecutionAnswer;
  static constexpr FieldList list{
      Inlined{&Of::job},
      Missable{"only", kOnlyOf, kOnly},
      Field{"has_divergence", &Of::HasDivergence},
      Field{"has_majority", &Of::has_majority},
      Field{"classes", &Of::classes},
      Field{"without_order", Participants{&Of::without_order}},
      Field{"not_written", OrNull{&Of::not_written},
            "with no order: the version of the log does not write it, and since when PyTorch does"},
      Field{"runtimes", &Of::runtimes, "graphs whose estimated runtimes differ between ranks"},
      Field{"tensors", &Of::tensors},
      Field{"findings", &FindingsOf<Of>,
            "of what tlparse findings lists: those of kind execution_divergence, or with one among "
            "their evidence"},
  };
};

std::string ExecutionSchema() {
  return SchemaOf<ExecutionAnswer, InExecution>("tlparse execution --json");
}

int RunExecution(std::span<const std::string> arguments) {
  Arguments app(
      "The order in which ranks ran their graphs, how much estimated runtimes differ, where output "
      "tensors differ.",
      "execution");
  ExecutionOptions options;
  return RunSubjectAnswer(app, arguments, "every difference", options, kOfExecution,
                          AnalyzeExecution, TakeExecution, PrintExecution);
}

}  // namespace tlparse

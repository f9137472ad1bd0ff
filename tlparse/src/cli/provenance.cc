// tlparse provenance <db>: from a kernel to its Python line and back.
#include "queries/answers/provenance/provenance.h"

#include <fmt/format.h>

#include <algorithm>

#include "answers/provenance/graph_ranks.h"
#include "answers/source/line_outcomes.h"
#include "base/fields.h"
#include "cli/answer.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/only_field.h"
#include "cli/rank_fields.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"
#include "facts/cost/peak_bytes.h"
#include "facts/job/written_since.h"
#include "facts/text/shorten.h"

namespace tlparse {

namespace {

struct InProvenance {
  const PeakBytes& peak;
  const GraphRanks& graphs;

  std::vector<std::int64_t> RanksOf(std::int64_t graph_id) const {
    const std::set<std::int64_t>& ranks = graphs.at(graph_id);
    return {ranks.begin(), ranks.end()};
  }
};

Result<bool> PrintProvenance(QueryRows<KernelWithSource> kernels, const InProvenance& in,
                             const RunFilter& runs, bool all) {
  const bool has_several = std::any_of(in.graphs.begin(), in.graphs.end(),
                                       [](const auto& one) { return one.second.size() > 1; });
  Table table = runs.MakeTableOfLaunches({{has_several ? "ranks" : "rank"},
                                          {"compile"},
                                          {"graph"},
                                          {"kernel"},
                                          {"measured", Table::Align::kRight},
                                          {"calls", Table::Align::kRight},
                                          {"at peak", Table::Align::kRight, 1},
                                          {"post-grad nodes", Table::Align::kLeft, 2},
                                          {"pre-grad nodes", Table::Align::kLeft, 3},
                                          {"source", Table::Align::kLeft, 0, true},
                                          {"code", Table::Align::kLeft, 1}});
  std::pair<std::int64_t, std::int64_t> latest;  // kernel and graph
  FOR_EACH_ROW(const KernelWithSource& row, std::move(kernels)) {
    std::string kernel(row.kernel);
    if (row.debug_handle) kernel += fmt::format(":{}", *row.debug_handle);
    std::string source;
    if (row.file)
      source = fmt::format("{}:{} {}", *row.file, row.line.value_or(0), row.function.value_or(""));
    // Once for a kernel of several stacks.
    const std::pair one(row.kernel_id, row.graph_id);
    const bool is_first = latest != one;
    latest = one;
    const std::string measured =
        is_first && row.measured_us ? HumanDuration(*row.measured_us / 1e6) : std::string();
    const std::optional<std::int64_t> bytes = in.peak.OfKernel(row.graph_id, row.kernel_id);
    runs.AddOfLaunch(
        table, std::string(row.run), CellText(row.launch),
        {Shorten(FormatRankRanges(in.RanksOf(row.graph_id)), 24), std::string(row.label),
         CellText(row.direction), kernel, measured, is_first ? CellText(row.calls) : std::string(),
         is_first && bytes ? HumanBytes(*bytes) : std::string(), CellText(row.post_grad_nodes),
         CellText(row.pre_grad_nodes), source, CellText(row.code)});
  }
  if (table.empty()) return false;
  PrintBounded(all, "--kernel, --source, --node, or --all", [&] { table.Print(); });
  return true;
}

struct ProvenanceAnswer {
  QueryRows<KernelWithSource>& kernels;
  std::optional<std::int64_t> kernel_count;
  std::string only;  // with --rank or --process
};

struct ProvenanceOptions {
  std::optional<std::string> kernel, source, node;
  std::string sort = "compile";
  AskedParticipant asked;
  std::optional<std::int64_t> skipped, most;
  RunFilter run;
  bool json = false, all = false;
};

}  // namespace

template <>
struct FieldsOf<KernelWithSource> {
  using Of = KernelWithSource;
  static constexpr FieldList list{
      Field{"rank", &Of::rank, "of the graph"},
      Field{"label", &Of::label, "of the compile"},
      Field{"direction", &Of::direction},
      Field{"kernel", &Of::kernel},
      Field{"debug_handle", &Of::debug_handle},
      Field{"code_line", &Of::code_line, "in the generated code"},
      Field{"post_grad_nodes", &Of::post_grad_nodes, "separated by blanks"},
      Field{"pre_grad_nodes", &Of::pre_grad_nodes, "separated by commas"},
      Field{"file", &Of::file},
      Field{"line", &Of::line},
      Field{"function", &Of::function},
      Field{"code", &Of::code},
      Field{"basis", &Of::basis, "how the line is known"},
      Field{"stack_ordinal", &Of::stack_ordinal},
      Field{"kernel_id", &Of::kernel_id},
      Field{"graph_id", &Of::graph_id},
      Field{"compile_id", &Of::compile_id},
      Field{"run", &Of::run},
      Field{"calls", &Of::calls, "in the profiles"},
      Field{"measured_us", &Of::measured_us, "in all"},
      Field{"peak_bytes",
            [](const Of& of, const InProvenance& in) {
              return in.peak.OfKernel(of.graph_id, of.kernel_id);
            },
            "of the blocks made for the kernel, alive at the peak of a recording of the "
            "allocator; of several the most; null: none says that there were any"},
      Field{"launch", &Of::launch},
      Field{"ranks",
            [](const Of& of, const InProvenance& in) {
              const std::vector<std::int64_t> ranks = in.RanksOf(of.graph_id);
              return ranks.empty() ? std::nullopt
                                   : std::optional(RankList{ranks.size(), FormatRankRanges(ranks)});
            },
            "whose graph of this compile has the same kernels, and that no profile or recording "
            "of the allocator tells apart; null: the process has no rank"},
  };
};

template <>
struct FieldsOf<ProvenanceAnswer> {
  static constexpr std::string_view description =
      "Kernels with the nodes and Python lines that they come from: the view kernel_provenance, "
      "with what profiles measured; of ranks whose graphs have the same kernels those of the "
      "first, without --all. null: unknown.";
  static constexpr FieldList list{
      Field{"kernels", [](const ProvenanceAnswer& of) { return EachRow(of.kernels); }},
      Missable{"kernel_count", &ProvenanceAnswer::kernel_count,
               "with --limit or --skip: of all rows"},
      Missable{"only", OrNull{&ProvenanceAnswer::only}, kOnly}};
};

std::string ProvenanceSchema() {
  return SchemaOf<ProvenanceAnswer, InProvenance>("tlparse provenance --json");
}

namespace {

Result<void> AnswerProvenance(Database& database, ProvenanceOptions& options) {
  ASSIGN_OR_RETURN(const RunFilter::Named named, options.run.Find(database));
  RETURN_IF_ERROR(CheckAsked(database, options.asked, named.run_id, named.launch));
  const PlaceInSource place = options.source ? ParsePlace(*options.source) : PlaceInSource{};
  ASSIGN_OR_RETURN(const PeakBytes peak, PeakBytes::Read(database, named.run_id, {}));
  ASSIGN_OR_RETURN(const GraphRanks graphs, LoadGraphRanks(database,
                                                           {.asked = options.asked,
                                                            .run_id = named.run_id,
                                                            .launch = named.launch,
                                                            .each = options.all},
                                                           peak));
  const InProvenance in{peak, graphs};
  const std::string only = options.asked.IsGiven() ? options.asked.Only(0, "") : std::string();
  const std::vector<std::int64_t> ids = IdsOf(graphs);
  KernelWithSource::Parameters parameters = {
      .kernel = options.kernel,
      .file = options.source ? std::optional<std::string_view>(place.file) : std::nullopt,
      .line = place.line,
      .node = options.node,
      .rank = options.asked.rank,
      .run_id = named.run_id,
      .launch = named.launch,
      .by_cost = options.sort == "cost",
      .graphs = ids,
      .skipped = 0,
      .most = std::nullopt};
  if (options.json) {
    std::optional<std::int64_t> count;
    if (options.skipped || options.most) {
      count = 0;
      FOR_EACH_ROW([[maybe_unused]] const KernelWithSource& row,
                   Query<KernelWithSource>(database, parameters))
        ++*count;
      parameters.skipped = options.skipped.value_or(0);
      parameters.most = options.most;
    }
    auto kernels = Query<KernelWithSource>(database, parameters);
    const JsonWriter json = ToJson(ProvenanceAnswer{kernels, count, only}, in);
    RETURN_IF_ERROR(kernels.Ended());
    PrintJson(json);
    return {};
  }
  ASSIGN_OR_RETURN(
      const bool is_printed,
      PrintProvenance(Query<KernelWithSource>(database, parameters), in, options.run, options.all));
  if (!only.empty()) PrintWrapped(only, 0, 2);
  if (is_printed) return {};
  ASSIGN_OR_RETURN(const std::string why,
                   WhyNotWritten(database, named.run_id, VersionedInput::kKernelNodes));
  const bool is_asked = options.kernel || options.source || options.node;
  PrintWrapped((is_asked ? "no kernel matches" : "no kernels in this database") +
                   (why.empty() ? "" : ": " + why),
               0, 2);
  return {};
}

}  // namespace

int RunProvenance(std::span<const std::string> arguments) {
  Arguments app(
      "Which Python lines a kernel comes from, and which kernels a line or node became; with "
      "profiles how long each kernel ran in all; with snapshots of the allocator the bytes at the "
      "peak that were made for it. Ranks whose graphs have the same kernels share a line.",
      "provenance");
  AnswerArguments common;
  ProvenanceOptions options;
  AddAnswerArguments(app, common);
  app.Add("--kernel", options.kernel, "a kernel by name, name:handle or pattern (*)");
  app.Add("--source", options.source,
          "a Python line, FILE:LINE; FILE may be the end of a path; without LINE the whole file");
  app.Add("--node", options.node, "a post-grad or pre-grad graph node");
  AddAsked(app, options.asked);
  app.Add("--sort", options.sort,
          "cost: the kernels that ran longest first; compile: in order of compiles")
      .OneOf({"compile", "cost"})
      .ShowDefault();
  app.Flag("--all", options.all, "every row, and a row for each rank");
  app.Add("--limit", options.most, "with --json: rows at most").Positive();
  app.Add("--skip", options.skipped, "with --json: without so many first ones");
  options.run.AddTo(app);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  options.json = common.json;
  return AnswerFrom(common.database,
                    [&](Database& database) { return AnswerProvenance(database, options); });
}

}  // namespace tlparse

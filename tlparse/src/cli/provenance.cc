// tlparse provenance <db>: from a kernel to its Python line and back.
#include <fmt/format.h>

#include "answers/source/line_outcomes.h"
#include "cli/answer.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/rank_output.h"
#include "facts/job/written_since.h"

namespace tlparse {

namespace {

// Kernels with their nodes and source lines, narrowed down from one of three ends.
constexpr char kSelect[] =
    "WITH measured AS MATERIALIZED (SELECT l.kernel_id, s.graph_id, count(*) AS calls, "
    "sum(r.duration_ns) / 1e3 AS us FROM profile p JOIN kernel_run_row r ON r.profile_id = p.id "
    "JOIN kernel_run_link_row l ON l.kernel_run_id = r.id "
    "JOIN compiled_slice_link_row s ON s.slice_id = l.slice_id "
    "WHERE p.run_id BETWEEN ifnull(?6, 0) AND ifnull(?6, 9223372036854775807) "
    "AND p.overlaps_id IS NULL AND l.kernel_id IS NOT NULL GROUP BY 1, 2) SELECT k.rank, "
    "k.label, k.direction, k.kernel, k.debug_handle, k.code_line, k.post_grad_nodes, "
    "k.pre_grad_nodes, k.file, k.line, k.function, k.code, k.basis, k.stack_ordinal, k.kernel_id, "
    "k.graph_id, k.compile_id, r.name AS run, m.calls, m.us AS measured_us, n.ordinal AS launch "
    "FROM kernel_provenance k LEFT JOIN measured m ON m.kernel_id = k.kernel_id "
    "AND m.graph_id = k.graph_id JOIN compile c ON c.id = k.compile_id "
    "JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id "
    "JOIN run r ON r.id = f.run_id LEFT JOIN launch n ON n.id = p.launch_id WHERE (?1 IS NULL "
    "OR k.kernel = ?1 OR k.kernel || ':' || k.debug_handle = ?1 OR k.kernel GLOB ?1)"
    // A source line matches if any frame of a stack of the kernel is there, not only the innermost.
    " AND (?2 IS NULL OR EXISTS (SELECT 1 "
    "FROM kernel_source s WHERE s.kernel_id = k.kernel_id AND s.stack_ordinal = k.stack_ordinal   "
    "AND (?3 IS NULL OR s.line = ?3) AND (s.file = ?2 OR s.file LIKE '%/' || ?2))) "
    "AND (?4 IS NULL OR EXISTS (SELECT 1 FROM kernel_node_row n "
    "WHERE n.kernel_id = k.kernel_id AND n.post_grad_node = ?4)   OR EXISTS (SELECT 1 "
    "FROM kernel_node_row n JOIN graph g ON g.id = k.graph_id JOIN node_mapping_row m "
    "ON     m.content_id = g.provenance_content_id AND m.post_grad_node = n.post_grad_node     "
    "WHERE n.kernel_id = k.kernel_id AND m.pre_grad_node = ?4)) AND (?5 IS NULL OR k.rank = ?5) "
    "AND (?6 IS NULL OR r.id = ?6) AND (?7 IS NULL OR n.ordinal = ?7) "
    "ORDER BY CASE WHEN ?8 THEN coalesce(m.us, -1) END DESC, "
    "k.compile_id, k.graph_id, k.kernel_id, k.stack_ordinal";

Result<bool> PrintProvenance(Statement statement, const RunFilter& runs, bool all) {
  Table table = runs.MakeTableOfLaunches({{"rank"},
                                          {"compile"},
                                          {"graph"},
                                          {"kernel"},
                                          {"measured", Table::Align::kRight},
                                          {"calls", Table::Align::kRight},
                                          {"post-grad nodes", Table::Align::kLeft, 2},
                                          {"pre-grad nodes", Table::Align::kLeft, 3},
                                          {"source", Table::Align::kLeft, 0, true},
                                          {"code", Table::Align::kLeft, 1}});
  std::pair<std::int64_t, std::int64_t> latest;  // kernel and graph
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(std::move(statement))) {
    std::string kernel = CellText(row, "kernel");
    if (!row.IsNull("debug_handle")) kernel += ":" + CellText(row, "debug_handle");
    std::string source;
    if (!row.IsNull("file"))
      source = fmt::format("{}:{} {}", row.Text("file"), row.Int("line"), row.Text("function"));
    // Once for a kernel of several stacks.
    const std::pair one(row.Int("kernel_id"), row.Int("graph_id"));
    const bool is_first = latest != one;
    latest = one;
    const std::optional<double> us = row.OptionalReal("measured_us");
    const std::string measured = is_first && us ? HumanDuration(*us / 1e6) : std::string();
    runs.AddOfLaunch(table, CellText(row, "run"), CellText(row, "launch"),
                     {CellText(row, "rank"), CellText(row, "label"), CellText(row, "direction"),
                      kernel, measured, is_first ? CellText(row, "calls") : std::string(),
                      CellText(row, "post_grad_nodes"), CellText(row, "pre_grad_nodes"), source,
                      CellText(row, "code")});
  }
  if (table.empty()) return false;
  PrintBounded(all, "--kernel, --source, --node, or --all", [&] { table.Print(); });
  return true;
}

}  // namespace

int RunProvenance(std::span<const std::string> arguments) {
  Arguments app(
      "Which Python lines a kernel comes from, and which kernels a line or node became; with "
      "profiles how long each kernel ran in all.",
      "provenance");
  AnswerArguments common;
  std::optional<std::string> kernel, source, node;
  std::string sort = "compile";
  bool all = false;
  std::optional<std::int64_t> rank;
  RunFilter run;
  AddAnswerArguments(app, common);
  app.Add("--kernel", kernel, "a kernel by name, name:handle or pattern (*)");
  app.Add("--source", source,
          "a Python line, FILE:LINE; FILE may be the end of a path; without LINE the whole file");
  app.Add("--node", node, "a post-grad or pre-grad graph node");
  app.Add("--rank", rank, "only this rank");
  app.Add("--sort", sort, "cost: the kernels that ran longest first; compile: in order of compiles")
      .OneOf({"compile", "cost"})
      .ShowDefault();
  app.Flag("--all", all, "every row");
  run.AddTo(app);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Result<Database> database = OpenAnswerDatabase(common.database);
  if (!database) return ReportError(database.error());
  Result<Statement> statement = database->Prepare(kSelect);
  if (!statement) return ReportError(statement.error());
  const PlaceInSource place = source ? ParsePlace(*source) : PlaceInSource{};
  if (kernel) statement->Bind(1, std::string_view(*kernel));
  if (source) statement->Bind(2, std::string_view(place.file));
  statement->Bind(3, place.line);
  if (node) statement->Bind(4, std::string_view(*node));
  statement->Bind(5, rank);
  statement->Bind(8, std::int64_t{sort == "cost"});
  if (Result<void> bound = run.Bind(*database, 6, *statement); !bound)
    return ReportError(bound.error());
  if (common.json) return PrintRowsAsJson(std::move(*statement), "kernels");
  Result<bool> printed = PrintProvenance(std::move(*statement), run, all);
  if (!printed) return ReportError(printed.error());
  if (*printed) return kExitDone;
  const Result<std::optional<std::int64_t>> run_id = run.RunId(*database);
  if (!run_id) return ReportError(run_id.error());
  const Result<std::string> why = WhyNotWritten(*database, *run_id, VersionedInput::kKernelNodes);
  if (!why) return ReportError(why.error());
  const bool is_asked = kernel || source || node;
  PrintWrapped((is_asked ? "no kernel matches" : "no kernels in this database") +
                   (why->empty() ? "" : ": " + *why),
               0, 2);
  return kExitDone;
}

}  // namespace tlparse

#include "facts/cost/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "facts/cost/cost_profiles.h"
#include "facts/cost/cost_queries.h"
#include "facts/cost/estimates.h"
#include "facts/cost/peak_bytes.h"
#include "facts/job/written_since.h"
#include "store/any_rows.h"

namespace tlparse {
namespace {

Result<std::vector<CostRow>> ReadRows(Database& database, const std::string& sql) {
  std::vector<CostRow> result;
  FOR_EACH_ROW(const AnyRow& from, AnyRows::Of(database, sql)) {
    CostRow row;
    row.name = from.Text("name");
    row.label = from.Text("label");
    row.region = from.Text("region");
    row.generation = from.OptionalInt("generation");
    row.rank = from.OptionalInt("rank");
    row.launch = from.OptionalInt("launch");
    row.key = from.Text("key");
    row.direction = from.Text("direction");
    row.file = from.Text("file");
    row.line = from.OptionalInt("line");
    row.function = from.Text("function");
    row.kernel_id = from.OptionalInt("kernel_id");
    row.graph_id = from.OptionalInt("graph_id");
    row.debug_handle = from.OptionalInt("debug_handle");
    row.lines = from.Text("lines");
    row.grid = from.Text("grid");
    row.block = from.Text("block");
    row.calls = from.Int("calls");
    row.inclusive_us = from.Real("inclusive_us");
    row.share_us = from.Real("share_us");
    row.longest_us = from.OptionalReal("longest_us");
    row.device_us = from.OptionalReal("device_us");
    row.cpu_us = from.OptionalReal("cpu_us");
    row.compile_us = from.OptionalReal("compile_us");
    row.join_note = from.Text("join_note");
    result.push_back(std::move(row));
  }
  return result;
}

CostTime TimeOf(CostBy by, const std::vector<CostRow>& rows) {
  if (by == CostBy::kGraph) return CostTime::kCallsOnCpu;
  const bool has_device_work =
      std::any_of(rows.begin(), rows.end(), [](const CostRow& row) { return !!row.device_us; });
  if (by == CostBy::kModule) return has_device_work ? CostTime::kKernels : CostTime::kModulesOnCpu;
  if (by != CostBy::kOp) return CostTime::kKernels;
  return has_device_work ? CostTime::kOpsOnDevice : CostTime::kOpsOnCpu;
}

// The time of a module with all modules inside it.
void AddInnerModules(std::vector<CostRow>& rows) {
  std::unordered_map<std::string_view, CostRow*> by_path;
  for (CostRow& row : rows) by_path.emplace(row.name, &row);
  for (const CostRow& row : rows) {
    std::string_view path = row.name;
    while (true) {
      const auto found = by_path.find(path);
      if (found != by_path.end()) found->second->inclusive_us += row.share_us;
      const std::size_t slash = path.rfind('/');
      if (slash == path.npos) break;
      path = path.substr(0, slash);
    }
  }
}

Result<bool> HasModuleTable(Database& database) {
  ASSIGN_OR_RETURN(
      const std::int64_t tables,
      database.QueryInt("SELECT count(*) FROM sqlite_schema WHERE name = 'module_link_row'"));
  return tables > 0;
}

Result<void> CheckModules(Database& database, const std::vector<CostProfile>& profiles) {
  for (const CostProfile& profile : profiles) {
    ASSIGN_OR_RETURN(const bool has_modules, HasModules(database, profile.id));
    if (has_modules) return {};
  }
  ASSIGN_OR_RETURN(const bool has_table, HasModuleTable(database));
  return Fail(ErrorCode::kNotFound,
              has_table
                  ? "no profile of this answer names modules (Python frames 'nn.Module: …'): "
                    "torch.profiler.profile(with_stack=True) records them"
                  : "an earlier tlparse wrote this database, without modules: ingest its profiles "
                    "again");
}

std::optional<std::int64_t> BytesOf(const CostRow& row, CostBy by, const PeakBytes& peak) {
  if (by == CostBy::kLine)
    return row.file.empty() ? std::nullopt : peak.OfLine(row.file, row.line.value_or(0));
  if (!row.graph_id) return std::nullopt;
  if (by == CostBy::kGraph) return peak.OfGraph(*row.graph_id);
  if (by == CostBy::kNode) return peak.OfNode(*row.graph_id, row.name);
  return by == CostBy::kKernel && row.kernel_id ? peak.OfKernel(*row.graph_id, *row.kernel_id)
                                                : std::nullopt;
}

// Why kernels of the log have no line or node.
Result<void> NoteMissingNodes(Database& database, const CostOptions& options, CostBy by,
                              CostAnswer& answer) {
  if (by != CostBy::kLine && by != CostBy::kNode) return {};
  const bool lacks_lines =
      std::any_of(answer.rows.begin(), answer.rows.end(), [&](const CostRow& row) {
        return !row.label.empty() && (by == CostBy::kLine ? row.file.empty() : row.name.empty());
      });
  if (!lacks_lines) return {};
  ASSIGN_OR_RETURN(const std::int64_t has_nodes,
                   database.QueryInt("SELECT EXISTS (SELECT 1 FROM kernel_node_row)"));
  if (has_nodes != 0) return {};
  ASSIGN_OR_RETURN(std::string why,
                   WhyNotWritten(database, options.run_id, VersionedInput::kKernelNodes));
  answer.notes.push_back(
      !why.empty() ? why
                   : "the log does not say which graph nodes a kernel was made of: "
                     "INDUCTOR_PROVENANCE=1 makes PyTorch write it, and more kernels have lines");
  return {};
}

Result<void> FillRows(Database& database, const CostOptions& options, CostBy by,
                      const PeakBytes& peak, CostAnswer& answer) {
  if (by == CostBy::kModule) RETURN_IF_ERROR(CheckModules(database, answer.profiles));
  ASSIGN_OR_RETURN(answer.rows, ReadRows(database, CostSql(by, answer.profiles)));
  answer.time = TimeOf(by, answer.rows);
  if (by == CostBy::kModule) AddInnerModules(answer.rows);
  RETURN_IF_ERROR(NoteMissingNodes(database, options, by, answer));
  double total_us = 0;
  for (const CostRow& row : answer.rows) total_us += row.share_us;
  for (CostRow& row : answer.rows) {
    row.share = total_us > 0 ? row.share_us / total_us : 0;
    row.peak_bytes = BytesOf(row, by, peak);
  }
  if (by == CostBy::kKernel) {
    ASSIGN_OR_RETURN(const auto estimates,
                     KernelEstimates(database, options.run_id, options.profile_id));
    for (CostRow& row : answer.rows) {
      if (!row.graph_id || !row.kernel_id) continue;
      const auto found = estimates.find({*row.graph_id, *row.kernel_id});
      if (found != estimates.end()) row.estimated_us = found->second / 1e3;
    }
  }
  return {};
}

}  // namespace

Result<bool> HasModules(Database& database, std::int64_t profile_id) {
  ASSIGN_OR_RETURN(const bool has_table, HasModuleTable(database));
  if (!has_table) return false;
  ASSIGN_OR_RETURN(const std::int64_t has_modules,
                   database.QueryInt(fmt::format("SELECT EXISTS (SELECT 1 FROM python_frame_row y "
                                                 "JOIN module_link_row m ON m.frame_id = y.id "
                                                 "WHERE y.profile_id = {})",
                                                 profile_id)));
  return has_modules != 0;
}

Result<std::vector<CostAnswer>> Costs(Database& database, const CostOptions& options,
                                      std::span<const CostBy> questions) {
  ASSIGN_OR_RETURN(const CostAnswer begun, BeginCost(database, options));
  ASSIGN_OR_RETURN(const PeakBytes peak, PeakBytes::Read(database, options.run_id, begun.profiles));
  std::vector<CostAnswer> answers(questions.size(), begun);
  for (std::size_t i = 0; i < questions.size(); ++i)
    RETURN_IF_ERROR(FillRows(database, options, questions[i], peak, answers[i]));
  return answers;
}

Result<CostAnswer> Cost(Database& database, const CostOptions& options) {
  ASSIGN_OR_RETURN(std::vector<CostAnswer> answers, Costs(database, options, {&options.by, 1}));
  return std::move(answers.front());
}

}  // namespace tlparse

#include "facts/cost/cost_by_shapes.h"

#include "facts/cost/cost_profiles.h"
#include "facts/cost/cost_queries.h"
#include "store/any_rows.h"

namespace tlparse {
namespace {

constexpr char kKernels[] =
    ", one AS (SELECT r.name_id, o.shapes_id, count(*) AS calls, sum(r.duration_ns / 1e3) AS us "
    "FROM win w JOIN kernel_run_row r ON r.profile_id = w.profile_id "
    "LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = r.id "
    "LEFT JOIN op_run_row o ON o.id = coalesce(l.launch_op_id, r.op_run_id) "
    "WHERE coalesce(l.enqueued_ns, r.start_ns) >= w.start_ns "
    "AND coalesce(l.enqueued_ns, r.start_ns) < w.end_ns GROUP BY r.name_id, o.shapes_id) "
    "SELECT t.text AS name, x.text AS shapes, calls, us "
    "FROM one JOIN text_row t ON t.id = name_id LEFT JOIN text_row x ON x.id = shapes_id";

constexpr char kOps[] =
    ", one AS (SELECT o.name_id, o.shapes_id, "
    "count(*) AS calls, sum(l.self_ns / 1e3) AS us, sum(l.device_ns / 1e3) AS device_us "
    "FROM win w JOIN op_run_row o ON o.profile_id = w.profile_id AND o.start_ns >= w.start_ns "
    "AND o.start_ns < w.end_ns LEFT JOIN op_run_link_row l ON l.op_run_id = o.id "
    "GROUP BY o.name_id, o.shapes_id) "
    "SELECT t.text AS name, x.text AS shapes, calls, us, device_us "
    "FROM one JOIN text_row t ON t.id = name_id LEFT JOIN text_row x ON x.id = shapes_id";

Result<std::vector<ShapeCost>> Read(Database& database, const std::string& sql) {
  std::vector<ShapeCost> costs;
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(database, sql)) {
    costs.push_back({std::string(row.Text("name")), std::string(row.Text("shapes")),
                     row.Int("calls"), row.Real("us"), row.OptionalReal("device_us")});
  }
  return costs;
}

}  // namespace

Result<ShapeCosts> CostsByShapes(Database& database, const CostOptions& options) {
  ASSIGN_OR_RETURN(CostAnswer answer, BeginCost(database, options));
  ShapeCosts costs;
  costs.profiles = std::move(answer.profiles);
  const std::string windows = WindowSql(costs.profiles);
  ASSIGN_OR_RETURN(costs.kernels, Read(database, windows + kKernels));
  ASSIGN_OR_RETURN(costs.ops, Read(database, windows + kOps));
  return costs;
}

}  // namespace tlparse

#include "fleet/shown_columns.h"

#include <algorithm>
#include <array>

#include "store/hash128.h"

namespace tlparse {
namespace {

// Columns that a push without text keeps: names, places, states and versions. All others may hold
// source code, values or messages.
constexpr std::array<std::string_view, 49> kShownTexts = {"aot_id",
                                                          "autotune_cache_state",
                                                          "backend",
                                                          "cache_key",
                                                          "clock",
                                                          "co_filename",
                                                          "co_name",
                                                          "compression",
                                                          "created_at",
                                                          "detail",
                                                          "direction",
                                                          "dtype",
                                                          "fail_type",
                                                          "file",
                                                          "function",
                                                          "graph",
                                                          "group_name",
                                                          "hash",
                                                          "key",
                                                          "kind",
                                                          "label",
                                                          "layer",
                                                          "name",
                                                          "node",
                                                          "op",
                                                          "path",
                                                          "post_grad_node",
                                                          "pre_grad_node",
                                                          "prior_label",
                                                          "python_version",
                                                          "rank_source",
                                                          "reduce_op",
                                                          "severity",
                                                          "shape",
                                                          "source_file",
                                                          "stage",
                                                          "status",
                                                          "stride",
                                                          "subgraph",
                                                          "subgraph_name",
                                                          "time_basis",
                                                          "tool_version",
                                                          "torch_version",
                                                          "type",
                                                          "unit",
                                                          "user_file",
                                                          "user_function",
                                                          "uuid",
                                                          "libtrace_version"};

}  // namespace

bool IsShown(const FleetTable& table, std::string_view column) {
  // The names of runs and tables do not reveal the code; kernels, ops and artifacts have names.
  return table.name != "text" &&
         std::find(kShownTexts.begin(), kShownTexts.end(), column) != kShownTexts.end();
}

std::string HiddenText(std::string_view text) { return ToHex(HashBytes(text)); }

}  // namespace tlparse

#include "facts/cost/peak_bytes.h"

#include <algorithm>

#include "queries/facts/cost/peak_bytes.h"

namespace tlparse {
namespace {

// An earlier tlparse wrote no kernels of sites: its answers have no bytes.
Result<bool> HasKernelsOfSites(Database& database) {
  ASSIGN_OR_RETURN(const std::int64_t columns,
                   database.QueryInt("SELECT count(*) FROM pragma_table_info("
                                     "'memory_site_link_row') WHERE name = 'kernel_id'"));
  return columns > 0;
}

template <class Bytes>
void TakeMost(const Bytes& from, Bytes& into) {
  for (const auto& [key, size] : from) {
    std::int64_t& most = into.try_emplace(key, size).first->second;
    most = std::max(most, size);
  }
}

}  // namespace

struct PeakBytes::OfRecording : PeakBytes {
  Result<void> Add(Database& database, const HeldAtPeak& held) {
    if (!held.file.empty()) lines_[{std::string(held.file), held.line}] += held.size_bytes;
    if (held.graph_id == 0) return {};
    graphs_[held.graph_id] += held.size_bytes;
    if (held.kernel_id == 0) return {};
    kernels_[{held.graph_id, held.kernel_id}] += held.size_bytes;
    FOR_EACH_ROW(const NodeOfKernel& node,
                 KeptQuery<NodeOfKernel>(database, {.kernel_id = held.kernel_id})) {
      nodes_[{held.graph_id, std::string(node.post_grad_node)}] += held.size_bytes;
    }
    return {};
  }
};

void PeakBytes::Take(const OfRecording& recording) {
  TakeMost(recording.lines_, lines_);
  TakeMost(recording.graphs_, graphs_);
  TakeMost(recording.kernels_, kernels_);
  TakeMost(recording.nodes_, nodes_);
}

Result<PeakBytes> PeakBytes::Read(Database& database, std::optional<std::int64_t> run_id,
                                  const std::vector<CostProfile>& profiles) {
  PeakBytes most;
  ASSIGN_OR_RETURN(const bool has_kernels, HasKernelsOfSites(database));
  if (!has_kernels) return most;
  std::vector<std::int64_t> ids;
  for (const CostProfile& profile : profiles) ids.push_back(profile.id);
  OfRecording recording;
  std::int64_t snapshot_id = 0;
  FOR_EACH_ROW(
      const HeldAtPeak& held,
      Query<HeldAtPeak>(
          database, {.run_id = run_id, .all_processes = profiles.empty(), .profile_ids = ids})) {
    if (held.snapshot_id != snapshot_id) {
      most.Take(recording);
      recording = {};
    }
    snapshot_id = held.snapshot_id;
    RETURN_IF_ERROR(recording.Add(database, held));
  }
  most.Take(recording);
  return most;
}

}  // namespace tlparse

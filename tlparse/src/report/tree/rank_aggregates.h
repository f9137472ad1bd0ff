// The aggregates in the root of a report of several logs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/report_context.h"

namespace tlparse {

// An artifact that an aggregate is made of.
struct ArtifactOfGraph {
  std::int64_t record_id = 0;
  std::int64_t payload_id = 0;
  std::string graph;  // compile directory
};

// The data of one participant for the aggregates.
struct AggregateFacts {
  std::vector<ArtifactOfGraph> schedules;  // inductor_collective_schedule
  std::vector<ArtifactOfGraph> estimates;  // inductor_runtime_and_tensor_meta
  std::int64_t files = 0;                  // listed
  std::int64_t compiles = 0;               // keys with files
  std::int64_t failures = 0;
};

AggregateFacts FactsOf(const ReportContext& context, const TreePlan& plan);

// <participant>/collectives_parity.json: collectives that the scheduler planned and the generated
// code does not have (or the reverse), and collectives without a wait.
Result<void> WriteCollectivesParity(const ReportContext& context, const TreePlan& plan);

// In the root; files without content are not written. `facts` belongs to `participants`.
Result<void> WriteCollectiveSchedules(Database& database, const Directory& root,
                                      const std::vector<Participant>& participants,
                                      const std::vector<AggregateFacts>& facts);
Result<void> WriteRuntimeEstimates(Database& database, const Directory& root,
                                   const std::vector<Participant>& participants,
                                   const std::vector<AggregateFacts>& facts);
Result<void> WriteRunIndex(const Directory& root, const ReportOptions& options,
                           const std::vector<Participant>& participants,
                           const std::vector<AggregateFacts>& facts, std::int64_t left_out);

}  // namespace tlparse

#include "inputs/join/join_inputs.h"

#include "inputs/join/collective_slices.h"
#include "inputs/join/kernel_lines.h"
#include "inputs/join/memory_join.h"
#include "inputs/join/package_join.h"
#include "inputs/join/process_match.h"
#include "inputs/join/recorder_join.h"
#include "inputs/libtrace/rows.h"

namespace tlparse {

Result<void> JoinInputs(Database& database, std::int64_t run_id) {
  RETURN_IF_ERROR(AddLibtraceRows(database, run_id));
  RETURN_IF_ERROR(MatchProcesses(database, run_id));
  RETURN_IF_ERROR(JoinRecorders(database, run_id));
  RETURN_IF_ERROR(JoinCollectiveSlices(database, run_id));
  RETURN_IF_ERROR(JoinMemory(database, run_id));
  RETURN_IF_ERROR(JoinPackages(database, run_id));
  return DivideKernelsAmongLines(database, run_id);
}

}  // namespace tlparse

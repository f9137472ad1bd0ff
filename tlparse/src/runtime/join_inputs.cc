#include "runtime/join_inputs.h"

#include "runtime/collective_slices.h"
#include "runtime/kernel_lines.h"
#include "runtime/libtrace_rows.h"
#include "runtime/package_join.h"
#include "runtime/process_match.h"
#include "runtime/recorder_join.h"

namespace tlparse {

Result<void> JoinInputs(Database& database, std::int64_t run_id) {
  RETURN_IF_ERROR(AddLibtraceRows(database, run_id));
  RETURN_IF_ERROR(MatchProcesses(database, run_id));
  RETURN_IF_ERROR(JoinRecorders(database, run_id));
  RETURN_IF_ERROR(JoinCollectiveSlices(database, run_id));
  RETURN_IF_ERROR(JoinPackages(database, run_id));
  return DivideKernelsAmongLines(database, run_id);
}

}  // namespace tlparse

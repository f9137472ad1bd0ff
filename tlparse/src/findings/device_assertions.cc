#include "findings/device_assertions.h"

#include <fmt/format.h>

#include "queries/findings/device_assertions.h"

namespace tlparse {

Result<void> SayDeviceAssertion(const FindingContext& context, const FatalException& raised,
                                Finding& finding) {
  if (raised.message.find("device-side assert") == std::string::npos) return {};
  ASSIGN_OR_RETURN(const FirstRow<DeviceAssertion> row,
                   First(Query<DeviceAssertion>(
                       context.database, {.run_id = context.job.run_id(), .rank = raised.rank})));
  if (row) {
    finding.detail += fmt::format(
        " A kernel printed before: {}. A later call, whose line this may be, learns of it.",
        row->text);
  }
  if (finding.suggestion.empty())
    finding.suggestion =
        "CUDA_LAUNCH_BLOCKING=1, under which the exception comes at the line of the kernel";
  return {};
}

}  // namespace tlparse

#include "libtrace/artifacts/collective_schedule.h"

#include "libtrace/trace.h"

namespace libtrace {

void EmitCollectiveSchedule(ArrayView<std::optional<std::string>> ops, CallSite location) noexcept {
  if (ops.empty()) return;
  EmitJsonArtifact(
      "inductor_collective_schedule", JsonStyle::kLinePerElement,
      [&](JsonWriter& json) { json.Value(ops); }, {}, location);
}

}  // namespace libtrace

// inductor_collective_schedule: the collectives of one compiled graph, in the order in which it
// issues them. PyTorch's shape (torch/_inductor/debug.py, _dump_collective_schedule): a list of
// kernel names, e.g. `torch.ops._c10d_functional.all_reduce_.default`; null = a kernel without a
// name. Schema: inductor_collective_schedule.schema.json.
#pragma once

#include <optional>
#include <string>

#include "libtrace/array_view.h"
#include "libtrace/call_site.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

// Emits nothing for an empty schedule, as PyTorch.
void EmitCollectiveSchedule(ArrayView<std::optional<std::string>> ops,
                            CallSite location = CallSite::Current()) noexcept;

}  // namespace LIBTRACE_EXPORT

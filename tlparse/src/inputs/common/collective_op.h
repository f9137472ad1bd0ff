// Names of collectives: PyTorch spells one in several ways.
#pragma once

#include <string>
#include <string_view>

namespace tlparse {

// "nccl:all_reduce", "c10d::allreduce_", "torch.ops._c10d_functional.all_reduce_.default" →
// "allreduce": without backend, namespace, overload, underscores and the words that only say how
// tensors are passed (_base, into_tensor, tensor, single, coalesced, _oop). Of "nccl:send 1->2" the peers
// are left out. Empty for an empty name.
std::string PlainCollective(std::string_view name);

// The backend or namespace before the colon: "nccl"; empty if there is none.
std::string_view BackendOf(std::string_view profiling_name);

// Whether the recorder may use this name for a collective of generated code: the same name, or
// all_reduce for Gloo's reduce_scatter, which is implemented by one.
bool MayBeRecordedAs(std::string_view code_op, std::string_view profiling_name);

}  // namespace tlparse

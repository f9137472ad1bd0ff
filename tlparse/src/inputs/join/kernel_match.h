// Finds the kernel of the generated code for each slice inside a graph call. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tlparse {

// Whether a slice is a run of the kernel with this name in the generated code: "cpp_fused_add_0" and
// "graph_2_cpp_fused_add_0", "extern_kernels.addmm" and "aten::addmm", "torch.ops.aten.f.default"
// and "aten::f"; Triton kernels and AOTInductor's functions by their own names.
bool IsRunOf(std::string_view slice, std::string_view kernel);

// The functions below return, for each slice, the index of its kernel in `kernels`. `slices` are the names of the direct children
// of a graph call, in order of time; `kernels` the names in the order of their calls in the code.

// Nothing unless every kernel ran once, in the order of the code, and no other slice is a kernel.
std::optional<std::vector<std::optional<std::size_t>>> MatchInOrder(
    const std::vector<std::string_view>& slices, const std::vector<std::string_view>& kernels);

// For calls whose order differs from the code's: the i-th run of a name is the i-th call of that name in the code, if both are
// equally many; else these runs get no kernel.
std::vector<std::optional<std::size_t>> MatchByName(const std::vector<std::string_view>& slices,
                                                    const std::vector<std::string_view>& kernels);

// For calls of which the profile lost events: the slices are kernels in the order of the code, with some of them missing. A slice gets
// a kernel if only one is possible: of the kernels a, b, a the slices a, b are the first two; a slice a alone gets none. Nothing if the
// slices are in another order.
std::optional<std::vector<std::optional<std::size_t>>> MatchWithGaps(
    const std::vector<std::string_view>& slices, const std::vector<std::string_view>& kernels);

// For each slice, whether it is a run of some of the kernels.
std::vector<bool> AreRuns(const std::vector<std::string_view>& slices,
                          const std::vector<std::string_view>& kernels);

// For profiles that name the file with a kernel's source. `slices`: the name under which the code calls the kernel of that file,
// "" for slices without a file. All runs of a kernel that is called once get it; if it is called n times, its n runs get the calls
// in order, and any other number of runs get none.
std::vector<std::optional<std::size_t>> MatchByPath(const std::vector<std::string_view>& slices,
                                                    const std::vector<std::string_view>& kernels);

// For a device graph that was replayed: no call on the CPU enqueues its kernels one by one. `runs`: names on the device, in order of
// time. Each run gets the next kernel of its name after that of the run before; a run whose name does not follow (a kernel of a
// library) gets none.
std::vector<std::optional<std::size_t>> MatchReplay(const std::vector<std::string_view>& runs,
                                                    const std::vector<std::string_view>& kernels);

}  // namespace tlparse

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

// For each slice (the direct children of a graph call, in order of time) the index of its kernel in
// `kernels` (in the order of their calls in the code), if every kernel ran and in this order; the
// slices between them must not be kernels. Nothing if not.
std::optional<std::vector<std::optional<std::size_t>>> MatchInOrder(
    const std::vector<std::string_view>& slices, const std::vector<std::string_view>& kernels);

// If the order differs: by name, the runs of each name in their order if there are as many as calls
// in the code; runs of other names get no kernel.
std::vector<std::optional<std::size_t>> MatchByName(const std::vector<std::string_view>& slices,
                                                    const std::vector<std::string_view>& kernels);

// `slices` that say in which file their kernel's source is, under the name that the code gives this
// kernel; the others "". A kernel that is called once is the one of all its runs; one that is called
// more often has them in their order, if there are as many.
std::vector<std::optional<std::size_t>> MatchByPath(const std::vector<std::string_view>& slices,
                                                    const std::vector<std::string_view>& kernels);

// Runs on a device whose launches are not known (a device graph was replayed): each run is the next
// kernel of its name. Runs whose name the code does not hold (libraries' kernels) stay without one.
std::vector<std::optional<std::size_t>> MatchReplay(const std::vector<std::string_view>& runs,
                                                    const std::vector<std::string_view>& kernels);

}  // namespace tlparse

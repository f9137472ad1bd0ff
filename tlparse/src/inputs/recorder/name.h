// The rank in a dump's file name: the dump itself has none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tlparse {

// The N of `…rank_<N>` (PyTorch's default prefixes end in "rank_"; "rank" and "rank-" too), else
// the digits that end the name behind "_", "-" or "." (a prefix of one's own), where they are at
// most six. Extensions .json, .pickle, .pkl, .gz and .zst are left out first. Directories are
// ignored.
std::optional<std::int64_t> RankFromDumpName(std::string_view path);

// Whether it is one that PyTorch gives to dumps: comm_lib_trace_rank_3, nccl_trace_rank_3.
bool IsDumpName(std::string_view path);

}  // namespace tlparse

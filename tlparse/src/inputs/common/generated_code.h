// Recognises names in profiles: of Inductor's generated code, of Python frames.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>

namespace tlparse {

// Whether `path` is a file of Inductor's cache: …/jn/cjngzp2ndjut….py, a "c" and 51 characters of
// base 32, in a directory named by the second and third.
bool IsCachePath(std::string_view path);

// The kernel's name of a CPU slice: "graph_0_cpp_fused_add_0" and "cpp_fused_add_0" (PyTorch counts
// graphs in a prefix, differently in each process); nothing if the slice is not a kernel.
std::optional<std::string_view> CpuKernelName(std::string_view slice);

// "# kernel path: <path>" above a definition in Inductor's Python wrapper: the file that holds the
// kernel's source → the name by which the wrapper calls it. Views of `code`.
std::unordered_map<std::string_view, std::string_view> KernelPaths(std::string_view code);

// Of a profile's Python frame: "prof.py(27): step" -> "prof.py"; empty: a function of C, a module.
inline std::string_view FileOfFrame(std::string_view name) {
  const std::size_t end = name.find(".py(");
  return end == name.npos ? std::string_view() : name.substr(0, end + 3);
}

// The last part of a path: of a generated file a hash of its content, the same in every process.
std::string_view BaseName(std::string_view path);

// Whether the slice is the wrapper around a whole graph: "graph_1_inductor_wrapper_call".
bool IsWrapperCall(std::string_view slice);

}  // namespace tlparse

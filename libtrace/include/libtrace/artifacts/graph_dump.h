// Graph texts and generated code. `graph_dump`, `inductor_output_code`, `before_joint_graph` and
// `after_joint_graph` have PyTorch's shapes (torch/_inductor/codecache.py, graph.py, compile_fx.py).
// Graphs of your own need names of your own: `libtrace_<what>` are libtrace's, e.g.
// `libtrace_torchscript_optimized`, `libtrace_torchscript_joint`. Schemas: those names, and dynamo_output_graph.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/call_site.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

// `type` is the language of `text`: torchscript, cpp, llvm, …; `filename` where it was also written
// to.
void EmitGraphDump(std::string_view name, std::string_view type, std::string_view filename,
                   std::string_view text, CallSite location = CallSite::Current()) noexcept;

// `sizes`: node name -> sizes, a number or (symbolic) text each.
using GraphSizes = std::map<std::string, std::vector<std::string>, std::less<>>;
void EmitOutputGraph(const GraphSizes& sizes, std::string_view text,
                     CallSite location = CallSite::Current()) noexcept;

// The graph that the passes over the joint graph (forward and backward together; of inference the
// only one) are given, and what they make of it. How long they took goes into
// CompilationMetrics::joint_graph_pass_time_us.
void EmitBeforeJointGraph(std::string_view text, CallSite location = CallSite::Current()) noexcept;
void EmitAfterJointGraph(std::string_view text, CallSite location = CallSite::Current()) noexcept;

// Generated code of one graph; `file_path` empty = it is in no file.
void EmitOutputCode(std::string_view file_path, std::string_view code,
                    CallSite location = CallSite::Current()) noexcept;

}  // namespace LIBTRACE_EXPORT

// Graph texts and generated code. `graph_dump` and `inductor_output_code` have PyTorch's shapes
// (torch/_inductor/codecache.py, torch/_inductor/graph.py). Own graphs have own names:
// `libtrace_<what>`, e.g. `libtrace_torchscript_optimized`.
// Schemas: graph_dump.schema.json, inductor_output_code.schema.json,
// dynamo_output_graph.schema.json.
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

// Generated code of one graph; `file_path` empty = it is in no file.
void EmitOutputCode(std::string_view file_path, std::string_view code,
                    CallSite location = CallSite::Current()) noexcept;

}  // namespace LIBTRACE_EXPORT

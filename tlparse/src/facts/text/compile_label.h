// The name of a compile in answers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tlparse {

// "1/0"; of the second use of the label in its process, after torch._dynamo.reset(), "1/0#2".
// `generation`: of compile.
std::string CompileLabel(std::string_view label, std::int64_t generation);

// Whether it is no first compile of its frame: "1/2", "1/2#2", not "1/0".
bool IsOfRecompile(std::string_view label);

// A stretch of records without ids (AOTInductor, export) has a generated label: "unknown_" and a
// line.
bool IsWithoutId(std::string_view label);
inline constexpr std::string_view kCompileWithoutId = "a compile without an id";

}  // namespace tlparse

// The parts of AddNativeCode.
#pragma once

#include <string>
#include <string_view>

namespace libtrace {

// Of `flags` as the kernel lists them, those that name instructions; sorted, each once.
std::string InstructionSets(std::string_view flags);

// `sm_80 sm_90`: of all GPUs that the driver in `library` shows to this process.
std::string GpuArchitectures(const char* library);

struct CompilerFile {
  std::string path{};  // "" = not installed
  std::string hash{};
};
// `command` is looked up in PATH; of several words the last that names a file is the compiler
// (`ccache g++`).
CompilerFile FindCompiler(std::string_view command);

}  // namespace libtrace

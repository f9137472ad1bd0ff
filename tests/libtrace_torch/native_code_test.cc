#include "libtrace/torch/native_code.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"
#include "torch/native_code_parts.h"

namespace libtrace {
namespace {

// name -> whole component line
std::map<std::string, std::string> Components(std::string_view compiler = {}) {
  CacheKeyBuilder builder("n");
  AddNativeCode(builder, compiler);
  std::map<std::string, std::string> components;
  for (const std::string& line : builder.Build().components) {
    const size_t start = line.find("] ") + 2;
    components[line.substr(start, line.find(':') - start)] = line;
  }
  return components;
}

class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string old_;
};

void WriteProgram(const std::string& path, const std::string& content) {
  std::ofstream(path) << content;
  chmod(path.c_str(), 0755);
}

TEST_CASE("native code: the key holds CPU, GPU, compiler and the build of libtorch") {
  const auto components = Components();
  REQUIRE(components.size() == 5);
  for (const char* name :
       {"cpu_capability", "cpu_features", "gpu_architectures", "compiler", "libtorch_build"})
    CHECK(components.count(name) == 1);
  CHECK(components.at("libtorch_build").find(" built with ") != std::string::npos);
  CHECK(components.at("cpu_capability").find("unknown") == std::string::npos);
  CHECK(Components() == components);
}

TEST_CASE("native code: another compiler is another key") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder.string() + "/c++";
  const Variable compiler("CXX", path + " -O3");
  const std::string missing = Components().at("compiler");
  CHECK(missing.find(": none") != std::string::npos);
  WriteProgram(path, "first");
  const std::string first = Components().at("compiler");
  CHECK(first.find(path) != std::string::npos);
  CHECK(Components().at("compiler") == first);
  std::ofstream(folder.string() + "/other") << "the same size";
  WriteProgram(folder.string() + "/new", "other");
  std::rename((folder.string() + "/new").c_str(), path.c_str());
  const std::string second = Components().at("compiler");
  CHECK(second.find(path) != std::string::npos);
  CHECK(second != first);
  CHECK(Components("g++ 12.2").at("compiler") == Components("g++ 12.2").at("compiler"));
  CHECK(Components("g++ 12.2").at("compiler") != Components("g++ 13").at("compiler"));
}

TEST_CASE("native code: the compiler is found in PATH, behind a launcher too") {
  const testing::TemporaryDirectory folder;
  WriteProgram(folder.string() + "/launcher", "a");
  WriteProgram(folder.string() + "/compiler", "b");
  const Variable path("PATH", "/nonexistent:" + folder.string());
  const CompilerFile found = FindCompiler("launcher compiler -O2");
  CHECK(found.path.ends_with("/compiler"));
  CHECK(found.hash == FindCompiler("compiler").hash);
  CHECK(found.hash != FindCompiler("launcher").hash);
  CHECK(FindCompiler("nothing").path.empty());
  CHECK(FindCompiler("").path.empty());
}

TEST_CASE("native code: of the CPU's flags those that name instructions count") {
  CHECK(InstructionSets(" fpu vme sse4_2 avx2 sse4_2 hypervisor avx512f md_clear bugs") ==
        "avx2 avx512f sse4_2");
  CHECK(InstructionSets("fp asimd aes sve2 cpuid") == "aes asimd sve2");
}

TEST_CASE("native code: every architecture of the GPUs, each once") {
  CHECK(GpuArchitectures("/no/such/libcuda.so.1") == "unknown");
  CHECK(GpuArchitectures("libc.so.6") == "unknown");
  CHECK(GpuArchitectures(CUDA_DRIVER_STAND_IN) == "sm_80 sm_90");
  const Variable no_gpu("LIBTRACE_STAND_IN_NO_GPU", "1");
  CHECK(GpuArchitectures(CUDA_DRIVER_STAND_IN) == "unknown");
}

}  // namespace
}  // namespace libtrace

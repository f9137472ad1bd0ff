#include "libtrace/torch/native_code.h"

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <tuple>
#include <vector>

#include "core/errno_scope.h"
#include "core/per_process.h"
#include "torch/native_code_parts.h"

namespace libtrace {
namespace {

std::string Join(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Empty: this machine does not tell.
std::string CpuFeatures() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const bool is_list = line.starts_with("flags") || line.starts_with("Features");
    const size_t colon = line.find(':');
    if (is_list && colon != std::string::npos)
      return InstructionSets(std::string_view(line).substr(colon + 1));
  }
  return {};
}

// libtorch's own text about its build: `PyTorch built with:` and a line each.
struct TorchBuild {
  std::string compiler;        // GCC 12.2
  std::string cpu_capability;  // the one line that is of this machine; not in `options`
  std::string options;
};
TorchBuild ReadTorchBuild() {
  TorchBuild build;
  constexpr std::string_view kCapability = "  - CPU capability usage: ";
  std::istringstream lines(at::show_config());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kCapability)) {
      build.cpu_capability = line.substr(kCapability.size());
      continue;
    }
    if (build.compiler.empty() && line.starts_with("  - ")) build.compiler = line.substr(4);
    build.options += line + "\n";
  }
  return build;
}

std::string CompilerOfEnvironment(std::string& content) {
  const char* variable = std::getenv("CXX");
  const std::string command = variable != nullptr && *variable != '\0' ? variable : "g++";
  const CompilerFile file = FindCompiler(command);
  content = file.hash + command;
  return file.path.empty() ? "none" : command + " (" + file.path + ")";
}

}  // namespace

std::string InstructionSets(std::string_view flags) {
  // Others tell of the kernel, of virtual machines and of defects.
  static constexpr auto kPrefixes = std::to_array<std::string_view>(
      {"3dnow",    "abm",        "adx",     "aes",       "amx",       "apx",        "asimd",
       "atomics",  "avx",        "bf16",    "bmi",       "cldemote",  "clflushopt", "clwb",
       "crc32",    "cx16",       "dot",     "enqcmd",    "f16c",      "fcma",       "fma",
       "fsgsbase", "fxsr",       "gfni",    "i8mm",      "jscvt",     "lahf_lm",    "lrcpc",
       "lse",      "lzcnt",      "mmx",     "movbe",     "movdir",    "mwaitx",     "pclmulqdq",
       "pku",      "pmull",      "pni",     "popcnt",    "prefetchw", "ptwrite",    "rdpid",
       "rdrand",   "rdseed",     "rtm",     "serialize", "sha",       "sm3",        "sm4",
       "smeb",     "smef",       "smei",    "sse",       "ssse3",     "sve",        "tbm",
       "vaes",     "vpclmulqdq", "waitpkg", "xop",       "xsave"});
  std::set<std::string> found;
  std::istringstream words{std::string(flags)};
  for (std::string word; words >> word;) {
    const bool is_one = std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](auto prefix) {
      return std::string_view(word).substr(0, prefix.size()) == prefix;
    });
    if (is_one) found.insert(std::move(word));
  }
  return Join(found);
}

std::string GpuArchitectures(const char* library) {
  constexpr int kMajor = 75, kMinor = 76;           // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…
  void* const driver = dlopen(library, RTLD_LAZY);  // stays: libtorch uses it as well
  if (driver == nullptr) return "unknown";
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count_of = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  const auto device_of = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto attribute_of =
      reinterpret_cast<int (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
  if (init == nullptr || count_of == nullptr || device_of == nullptr || attribute_of == nullptr)
    return "unknown";
  int count = 0;
  if (init(0) != 0 || count_of(&count) != 0) return "unknown";
  std::set<std::string> found;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0, major = 0, minor = 0;
    if (device_of(&device, ordinal) != 0 || attribute_of(&major, kMajor, device) != 0 ||
        attribute_of(&minor, kMinor, device) != 0)
      return "unknown";
    found.insert("sm_" + std::to_string(major) + std::to_string(minor));
  }
  return found.empty() ? "none" : Join(found);
}

// Device, inode, size, seconds and nanoseconds of the last change.
using FileState = std::tuple<dev_t, ino_t, off_t, time_t, long>;

CompilerFile FindCompiler(std::string_view command) {
  const char* const path = std::getenv("PATH");
  std::string found;
  std::istringstream words{std::string(command)};
  for (std::string word; words >> word;) {
    if (word.starts_with("-")) continue;  // an option
    std::istringstream folders(word.find('/') != std::string::npos ? "" : path ? path : "");
    std::vector<std::string> candidates;
    if (word.find('/') != std::string::npos) candidates.push_back(word);
    for (std::string folder; std::getline(folders, folder, ':');)
      candidates.push_back(folder + "/" + word);
    for (const std::string& candidate : candidates) {
      std::error_code ignored;
      if (access(candidate.c_str(), X_OK) != 0 ||
          !std::filesystem::is_regular_file(candidate, ignored))
        continue;
      found = candidate;
      break;
    }
  }
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(found, error);
  if (error) return {};
  struct stat status {};
  const bool has_status = ::stat(whole.c_str(), &status) == 0;
  // A time alone is not enough: files that are replaced within a tick of the clock have the same.
  const FileState state{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                        status.st_mtim.tv_nsec};
  // A megabyte; hashed once while it stays as it is.
  struct Known {
    std::mutex mutex;
    std::map<std::string, std::pair<FileState, CompilerFile>> files;
  };
  static constinit std::atomic<detail::PerProcess<Known>*> place{nullptr};
  Known& known = detail::MadeOnce(place).get();
  const std::lock_guard lock(known.mutex);
  if (const auto one = known.files.find(whole.string());
      has_status && one != known.files.end() && one->second.first == state)
    return one->second.second;
  std::ifstream file(whole, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  CompilerFile compiler{whole.string(),
                        CacheKeyBuilder("").AddContent("compiler", "", content).Build().text};
  known.files[whole.string()] = {state, compiler};
  return compiler;
}

void AddNativeCode(CacheKeyBuilder& builder, std::string_view compiler) {
  const detail::ErrnoScope keeps_errno;
  const TorchBuild build = ReadTorchBuild();
  const std::string features = CpuFeatures();
  builder.Add("cpu_capability", build.cpu_capability.empty() ? "unknown" : build.cpu_capability);
  builder.Add("cpu_features", features.empty() ? "unknown" : features);
  builder.Add("gpu_architectures",
              at::hasCUDA() ? GpuArchitectures("libcuda.so.1") : std::string("none"));
  if (compiler.empty()) {
    std::string content;
    const std::string text = CompilerOfEnvironment(content);
    builder.AddContent("compiler", text, content);
  } else {
    builder.Add("compiler", compiler);
  }
  builder.AddContent("libtorch_build", std::string(TORCH_VERSION) + " built with " + build.compiler,
                     TORCH_VERSION + build.options);
}

}  // namespace libtrace

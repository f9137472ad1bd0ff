// An AOTInductor package, served by two processes that share a compile cache. libtorch 2.6 and
// newer.
//   first    the package is not in the cache: compiled by PyTorch (aoti_export.py) and kept there.
//            A copy that lost its end is refused.
//   second   is served from the cache: no compiler runs, and it answers as the first did. A second
//            part of it that asks for the package gets the one that is loaded.
//
//   libtrace_example_aoti <trace directory> [package.pt2]
//
// Leaves one log per process there, and the cache in <trace directory>/cache. Compiling needs
// python3 with PyTorch of the same version as libtorch; or give a package that aoti_export.py made
// elsewhere.
#include <ATen/ops/linspace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "libtrace/torch/aotinductor.h"
#include "libtrace/trace.h"

namespace {

constexpr int kRequests = 3;

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw std::runtime_error("cannot read " + path);
  return content;
}

// Runs a program and waits for it.
bool Run(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

std::string CompilePackage(const std::string& directory) {
  std::string path = directory + "/classifier.pt2";
  unsetenv("TORCH_TRACE");  // the compiler's own trace is not this example's
  if (!Run({"python3", LIBTRACE_AOTI_EXPORT, path}))
    throw std::runtime_error("aoti_export.py failed");
  return path;
}

void LoadDamaged(const std::string& directory, const std::string& package) {
  const std::string path = directory + "/damaged.pt2";
  const std::string content = ContentOf(package);
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size() / 2));
  bool is_refused = false;
  try {
    libtrace::AotiModel model(path, {.name = "damaged"});
  } catch (const std::exception&) {
    is_refused = true;
  }
  std::filesystem::remove(path);
  if (!is_refused) throw std::logic_error("a damaged package was accepted");
  std::printf("half a package: refused, as it should be\n");
}

int RunProcess(const std::string& directory, const std::string& number,
               const std::string& package) {
  libtrace::Options options = libtrace::Options::FromEnvironment();
  options.directory = directory;
  if (!libtrace::Start(options)) return 2;
  libtrace::CompileCache cache(
      {.layer = "libtrace_aotinductor", .directory = directory + "/cache"});
  auto executions = std::make_shared<libtrace::GraphExecutionOrder>();
  libtrace::LoadedModels loaded;
  std::string built;
  const auto load = [&] {
    return libtrace::LoadOrBuildPackage(
        cache, {.source = ContentOf(LIBTRACE_AOTI_EXPORT)},
        {.name = "classifier", .executions = executions, .digest_every = 2},
        [&] { return built = package.empty() ? CompilePackage(directory) : package; }, &loaded);
  };
  const libtrace::CachedAotiModel cached = load();
  const at::Tensor x = at::linspace(-1, 1, 4 * 16).reshape({4, 16});
  at::Tensor y;
  for (int request = 0; request < kRequests; ++request) y = cached.model->Run({x})[0];
  std::printf("process %s: package from the %s, y[0][0] = %.6f\n", number.c_str(),
              cached.state == libtrace::CacheState::kHit ? "cache" : "compiler",
              y[0][0].item<double>());
  if (built.empty()) {
    const at::Tensor again = load().model->Run({x})[0];
    if (loaded.stats().load_count != 1 || !again.equal(y))
      throw std::logic_error("the package that is loaded was not used");
  } else {
    LoadDamaged(directory, built);
  }
  executions->Emit();
  libtrace::Stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(
        stderr,
        "usage: %s <trace directory> [package.pt2] — where to write the structured traces\n",
        argv[0]);
    return 2;
  }
  const std::string directory = argv[1], package = argc > 2 ? argv[2] : "";
  try {
    if (argc > 3) return RunProcess(directory, argv[3], package);
    std::filesystem::create_directories(directory);
    std::filesystem::remove_all(directory + "/cache");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  // The processes are new programs; libtorch's threads do not survive a fork.
  return Run({"/proc/self/exe", directory, package, "1"}) &&
                 Run({"/proc/self/exe", directory, package, "2"})
             ? 0
             : 1;
}

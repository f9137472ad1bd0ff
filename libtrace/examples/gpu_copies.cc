// What a GPU did and for which op, without libtorch, in C++17. Opens NVIDIA's driver at run time:
// to build it takes neither nvcc nor headers of CUDA's. (A program of CUDA's runtime does the same.)
//
//   c++ -std=c++17 gpu_copies.cc $(pkg-config --cflags --libs torchtrace_cuda) -ldl -o gpu_copies
//   TORCH_TRACE=/tmp/trace ./gpu_copies && tlparse /tmp/trace
//
// An argument names another file than libcuda.so.1. Exit code: 0, 1 a call failed, 77 no GPU.
#include <dlfcn.h>
#include <libtrace/compile.h>
#include <libtrace/cuda/cuda_activity.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

// CUDA's driver interface, as far as it is used here. Functions return 0 for success.
struct Driver {
  int (*init)(unsigned flags);
  int (*retain_context)(void** context, int device);
  int (*set_context)(void* context);
  int (*allocate)(unsigned long long* pointer, size_t size_bytes);
  int (*upload)(unsigned long long target, const void* source, size_t size_bytes);
  int (*download)(void* target, unsigned long long source, size_t size_bytes);
  int (*synchronize)();
};

template <class Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool Open(const char* file, Driver& driver) {
  void* const library = dlopen(file, RTLD_NOW);
  return library != nullptr && Find(library, "cuInit", driver.init) &&
         Find(library, "cuDevicePrimaryCtxRetain", driver.retain_context) &&
         Find(library, "cuCtxSetCurrent", driver.set_context) &&
         Find(library, "cuMemAlloc_v2", driver.allocate) &&
         Find(library, "cuMemcpyHtoD_v2", driver.upload) &&
         Find(library, "cuMemcpyDtoH_v2", driver.download) &&
         Find(library, "cuCtxSynchronize", driver.synchronize) && driver.init(0) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  Driver driver{};
  void* context = nullptr;
  if (!Open(argc > 1 ? argv[1] : "libcuda.so.1", driver) ||
      driver.retain_context(&context, 0) != 0) {
    std::puts("no GPU");
    return 77;
  }
  libtrace::CudaActivity activity;  // from here on
  if (!activity.status().ok())
    std::printf("not watched: %s\n", activity.status().message().c_str());

  std::vector<float> numbers(1 << 20, 1);
  const size_t size_bytes = numbers.size() * sizeof(float);
  unsigned long long memory = 0;
  bool is_ok = driver.set_context(context) == 0 && driver.allocate(&memory, size_bytes) == 0;
  libtrace::Frame frame;
  {
    libtrace::Compile compile(frame, [](libtrace::CompileDescription& description) {
      description.function = "round_trip";
      description.file = __FILE__;
    });
    const std::string node = "numbers_1";
    const libtrace::CudaLaunchScope op("acme::upload", &node);
    is_ok = is_ok && driver.upload(memory, numbers.data(), size_bytes) == 0;
  }
  {
    const libtrace::CudaLaunchScope op("acme::download", nullptr);
    is_ok = is_ok && driver.download(numbers.data(), memory, size_bytes) == 0;
  }
  is_ok = is_ok && driver.synchronize() == 0;  // what still runs has no times
  activity.Emit();
  for (const libtrace::CudaActivityRecord& one : activity.Records()) {
    std::printf("%s %s: %llu bytes in %llu ns, for %s\n", one.kind.c_str(), one.name.c_str(),
                static_cast<unsigned long long>(one.size_bytes),
                static_cast<unsigned long long>(one.duration_ns),
                one.op ? one.op->c_str() : "no op");
  }
  return is_ok ? 0 : 1;
}

#include "tests/gpu/driver.h"

#include <dlfcn.h>

#include <cstdlib>

namespace gpu_check {

std::string Open(Driver& driver) {
  const char* const chosen = std::getenv("LIBTRACE_CUDA_DRIVER");
  void* const library = dlopen(chosen == nullptr ? "libcuda.so.1" : chosen, RTLD_NOW);
  if (library == nullptr) return std::string("no driver: ") + dlerror();
  std::string missing;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) missing = name;
  };
  find("cuInit", driver.init);
  find("cuDriverGetVersion", driver.version);
  find("cuDeviceGetCount", driver.device_count);
  find("cuDeviceGet", driver.device_get);
  find("cuDeviceGetName", driver.device_name);
  find("cuDeviceGetAttribute", driver.device_attribute);
  find("cuDevicePrimaryCtxRetain", driver.retain_context);
  find("cuCtxSetCurrent", driver.set_context);
  find("cuCtxSynchronize", driver.synchronize);
  find("cuModuleLoadData", driver.load_module);
  find("cuModuleGetFunction", driver.get_function);
  find("cuLaunchKernel", driver.launch);
  find("cuMemAlloc_v2", driver.allocate);
  find("cuMemcpyHtoD_v2", driver.copy_to_device);
  find("cuMemcpyDtoH_v2", driver.copy_to_host);
  find("cuMemcpyDtoDAsync_v2", driver.copy_on_device);
  find("cuMemsetD32Async", driver.set);
  find("cuMemcpyPeer", driver.copy_peer);
  find("cuStreamCreate", driver.stream_create);
  find("cuStreamBeginCapture_v2", driver.begin_capture);
  find("cuStreamEndCapture", driver.end_capture);
  find("cuGraphInstantiateWithFlags", driver.instantiate);
  find("cuGraphLaunch", driver.launch_graph);
  if (!missing.empty()) return "the driver has no " + missing;
  const int result = driver.init(0);
  if (result != 0) return "no GPU: cuInit gives " + std::to_string(result);
  int count = 0;
  if (driver.device_count(&count) != 0 || count == 0) return "no GPU: the driver counts 0 devices";
  return {};
}

const char* KernelText() {
  return R"(.version 6.4
.target sm_60
.address_size 64
.visible .entry acme_fill(.param .u64 pointer, .param .u32 count) {
  .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .f32 %f;
  ld.param.u64 %d1, [pointer];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p, %r5, %r1;
  @%p bra done;
  mul.wide.u32 %d2, %r5, 4;
  add.s64 %d3, %d1, %d2;
  mov.f32 %f, 0f3F800000;
  st.global.f32 [%d3], %f;
done:
  ret;
}
.visible .entry acme_spin(.param .u64 nanoseconds) {
  .reg .pred %p; .reg .b64 %d<5>;
  ld.param.u64 %d1, [nanoseconds];
  mov.u64 %d2, %globaltimer;
again:
  mov.u64 %d3, %globaltimer;
  sub.s64 %d4, %d3, %d2;
  setp.lt.u64 %p, %d4, %d1;
  @%p bra again;
  ret;
}
)";
}

}  // namespace gpu_check

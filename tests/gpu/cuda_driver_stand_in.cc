// A stand-in for NVIDIA's driver beside the stand-in for CUPTI (cupti_stand_in.cc), so that the GPU
// check itself is tested where there is no GPU. Calls leave the records that a GPU would.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {

void standin_launch(const char* name, uint64_t duration_ns, uint32_t stream);
void standin_launch_graph(const char* first, const char* second, uint32_t graph_id);
void standin_copy_kind(uint8_t kind, uint64_t size_bytes, uint64_t duration_ns, uint32_t stream);
void standin_copy_peer(uint64_t size_bytes, uint32_t source_device, uint32_t target_device);
void standin_set(uint64_t size_bytes, uint32_t stream);
void standin_wait();
void standin_driver_call();

using Function = void*;  // here the name of the kernel
static thread_local bool is_capturing = false;

int cuInit(unsigned) { return std::getenv("LIBTRACE_STAND_IN_NO_GPU") == nullptr ? 0 : 100; }
int cuDriverGetVersion(int* version) {
  standin_driver_call();
  *version = 12000;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "stand-in", static_cast<size_t>(size));
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 75 ? 8 + device : 0;  // sm_80 and sm_90
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  static int the_context;
  *context = &the_context;
  return 0;
}
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxSynchronize() {
  standin_wait();
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  *module = const_cast<void*>(image);
  return 0;
}
int cuModuleGetFunction(Function* function, void*, const char* name) {
  *function = const_cast<char*>(name);
  return 0;
}
int cuLaunchKernel(Function function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, void* stream, void**, void**) {
  const char* const name = static_cast<const char*>(function);
  const uint64_t duration_ns = std::strcmp(name, "acme_spin") == 0 ? 0 : 1000;
  if (!is_capturing) standin_launch(name, duration_ns, stream == nullptr ? 7 : 8);
  return 0;
}
int cuMemAlloc_v2(unsigned long long* pointer, size_t) {
  *pointer = 4096;
  return 0;
}
int cuMemcpyHtoD_v2(unsigned long long, const void*, size_t size_bytes) {
  standin_copy_kind(1, size_bytes, 100, 7);
  return 0;
}
int cuMemcpyDtoH_v2(void*, unsigned long long, size_t size_bytes) {
  standin_copy_kind(2, size_bytes, 100, 7);
  return 0;
}
int cuMemcpyDtoDAsync_v2(unsigned long long, unsigned long long, size_t size_bytes, void*) {
  standin_copy_kind(8, size_bytes, 100, 7);
  return 0;
}
int cuMemsetD32Async(unsigned long long, unsigned, size_t count, void*) {
  standin_set(count * 4, 7);
  return 0;
}
int cuMemcpyPeer(unsigned long long, void*, unsigned long long, void*, size_t size_bytes) {
  standin_copy_peer(size_bytes, 0, 1);
  return 0;
}
int cuStreamCreate(void** stream, unsigned) {
  static int the_stream;
  *stream = &the_stream;
  return 0;
}
int cuStreamBeginCapture_v2(void*, int) {
  is_capturing = true;
  return 0;
}
int cuStreamEndCapture(void*, void** graph) {
  is_capturing = false;
  *graph = nullptr;
  return 0;
}
int cuGraphInstantiateWithFlags(void** exec, void*, unsigned long long) {
  *exec = nullptr;
  return 0;
}
int cuGraphLaunch(void*, void*) {
  standin_launch_graph("acme_fill", "acme_fill", 3);
  return 0;
}
}

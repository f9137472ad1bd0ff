// The part of NVIDIA's driver interface that the GPU check uses, opened at run time: neither nvcc
// nor a header of CUDA's is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gpu_check {

using Context = void*;
using Stream = void*;
using Module = void*;
using Function = void*;
using Graph = void*;
using GraphExec = void*;
using DevicePointer = unsigned long long;

// Functions return 0 for success.
struct Driver {
  int (*init)(unsigned flags) = nullptr;
  int (*version)(int* version) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_name)(char* name, int size, int device) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  int (*retain_context)(Context* context, int device) = nullptr;
  int (*set_context)(Context context) = nullptr;
  int (*synchronize)() = nullptr;
  int (*load_module)(Module* module, const void* image) = nullptr;
  int (*get_function)(Function* function, Module module, const char* name) = nullptr;
  int (*launch)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                Stream stream, void** parameters, void** extra) = nullptr;
  int (*allocate)(DevicePointer* pointer, size_t size_bytes) = nullptr;
  int (*copy_to_device)(DevicePointer target, const void* source, size_t size_bytes) = nullptr;
  int (*copy_to_host)(void* target, DevicePointer source, size_t size_bytes) = nullptr;
  int (*copy_on_device)(DevicePointer target, DevicePointer source, size_t size_bytes,
                        Stream stream) = nullptr;
  int (*set)(DevicePointer target, unsigned value, size_t count, Stream stream) = nullptr;
  int (*copy_peer)(DevicePointer target, Context target_context, DevicePointer source,
                   Context source_context, size_t size_bytes) = nullptr;
  int (*stream_create)(Stream* stream, unsigned flags) = nullptr;
  int (*begin_capture)(Stream stream, int mode) = nullptr;
  int (*end_capture)(Stream stream, Graph* graph) = nullptr;
  int (*instantiate)(GraphExec* exec, Graph graph, unsigned long long flags) = nullptr;
  int (*launch_graph)(GraphExec exec, Stream stream) = nullptr;
};

// libcuda.so.1, or the file that LIBTRACE_CUDA_DRIVER names. "" or why it cannot be used.
std::string Open(Driver& driver);

// PTX of the kernels: acme_fill(pointer, count) writes ones, acme_spin(nanoseconds) waits.
const char* KernelText();

}  // namespace gpu_check

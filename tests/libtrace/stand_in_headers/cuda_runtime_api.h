// A stand-in for the header of CUDA's runtime; see NvInfer.h. Memory is the process's own.
#pragma once

#include <cstddef>
#include <cstdlib>

enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 };
struct cudaDeviceProp {
  char name[256];
};
using cudaStream_t = struct CUstream_st*;

inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* gpu, int) {
  *gpu = {"stand-in"};
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** memory, size_t size_bytes) {
  *memory = std::malloc(size_bytes);
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

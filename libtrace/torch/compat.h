// The differences between libtorch 1.13, 2.6 and 2.14 that libtrace::torch meets, all in one place.
#pragma once

#include <torch/version.h>

// 113, 206, 214: comparable. (Debian's 1.13.1 calls itself 1.13.0.)
#define LIBTRACE_TORCH (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)

// From 2.0 on a c10d::ProcessGroup dispatches to c10d::Backends; before, it was the backend itself.
#if LIBTRACE_TORCH >= 200
#define LIBTRACE_C10D_BACKENDS 1
#else
#define LIBTRACE_C10D_BACKENDS 0
#endif

// Weights of a loaded AOTInductor package can be asked for.
#if LIBTRACE_TORCH >= 208
#define LIBTRACE_AOTI_CONSTANTS 1
#else
#define LIBTRACE_AOTI_CONSTANTS 0
#endif

// Allocators of every kind of device tell what they gave out.
#if LIBTRACE_TORCH >= 209
#define LIBTRACE_DEVICE_ALLOCATORS 1
#else
#define LIBTRACE_DEVICE_ALLOCATORS 0
#endif

namespace torch::jit {
// Exported, but declared in a header that Debian does not install.
bool canFuseOnCPU();
void overrideCanFuseOnCPU(bool value);
}  // namespace torch::jit

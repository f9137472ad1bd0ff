// What native code depends on besides its source, for the key of a cache of such code.
#pragma once

#include <string>
#include <string_view>

#include "libtrace/cache/cache_key.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

// Adds five components. Machines whose components are equal can run each other's code:
//   cpu_capability     what libtorch's own kernels are chosen by: AVX2, AVX512, DEFAULT
//   cpu_features       the instruction sets of this CPU, which code compiled for it may use
//   gpu_architectures  of the GPUs that this process sees, if libtorch can use any: `sm_90`,
//                      `sm_80 sm_90`; `none`, or `unknown` if the driver does not report them
//   compiler           of C++: `compiler`, which can be any text. "" = the program that CXX names,
//                      or g++, with a hash of its file; `none` where it is not installed
//   libtorch_build     version, compiler and options that libtorch was built with
// LoadOrBuildPackage adds them itself.
void AddNativeCode(CacheKeyBuilder& builder, std::string_view compiler = {});

}  // namespace LIBTRACE_EXPORT

// What is inside a model package: an AOTInductor `.pt2` or a TorchScript archive. Needs no libtorch
// that could load it.
#pragma once

#include <string>

#include "libtrace/artifacts/package.h"
#include "libtrace/export.h"
#include "libtrace/status.h"

namespace libtrace LIBTRACE_EXPORT {

// Lists the files of the zip archive at `path`. Of an AOTInductor package it also gives
// - the package's own metadata (device, machine);
// - its kernels with their graph nodes and stack traces, if it was compiled so that it has them
//   (INDUCTOR_PROVENANCE=1, PyTorch 2.8 and newer);
// - the ops that its code calls by their index;
// - what its code was built for and linked with (of a shared object of up to 256 MB that is not
//   compressed);
// - its weights, if they are files of the package (aot_inductor.package_constants_on_disk): shape,
//   dtype, device and size of each, and of the storage, which several weights and models can share.
//   Where several models of a package have weights, the names begin with the model's:
//   `encoder/linear.weight`. Weights within the machine code are not listed; a loaded model knows
//   them.
// A file that is no zip archive, or is cut off, is an error.
Status DescribePackage(const std::string& path, Package& package);

}  // namespace LIBTRACE_EXPORT

// What a loaded AOTInductor package says of its code.
#pragma once

#include <string>

#include "libtrace/artifacts/package.h"
#include "libtrace/artifacts/run_digest.h"
#include "libtrace/call_site.h"
#include "libtrace/torch/op_observer.h"

namespace libtrace {

// Dumps the generated code in the package at `path`, hashes it into `digest`, which may be null, and
// returns what the kernels of `model` in it compute.
FusedOps EmitPackageCode(const Package& package, const std::string& path, const std::string& model,
                         RunDigest* digest, CallSite location);

// Where its kernels come from, if it says.
void EmitPackageProvenance(const Package& package, CallSite location);

}  // namespace libtrace

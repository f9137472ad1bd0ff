// What a loaded AOTInductor package says of its code.
#pragma once

#include <string>

#include "libtrace/artifacts/package.h"
#include "libtrace/artifacts/run_digest.h"
#include "libtrace/call_site.h"

namespace libtrace {

// Dumps the generated code in the package at `path`, and hashes it into `digest`, which may be null.
void EmitPackageCode(const std::string& path, RunDigest* digest, CallSite location);

// Where its kernels come from, if it says.
void EmitPackageProvenance(const Package& package, CallSite location);

}  // namespace libtrace

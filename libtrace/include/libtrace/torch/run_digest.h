// The outputs of a run of libtorch's for a RunDigest.
//
//   libtrace::RunDigest digest("forward", call);
//   if (libtrace::IsEnabled() && call % 100 == 0) {   // hashing brings tensors to the CPU
//     libtrace::AddOutputs(digest, module.forward(inputs));
//     digest.Emit();
//   }
#pragma once

#include <ATen/core/ivalue.h>

#include "libtrace/artifacts/run_digest.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

// Every tensor in `outputs`, under its position: `0`; in tuples, lists and dictionaries `1.0`. What
// is hashed are dtype, shape and the bytes of the elements, so 0.0 and -0.0 differ, strides do not
// matter. Copies tensors of devices to the CPU, and waits for them; an OpObserver does not see that.
// Tensors without such bytes (sparse, quantized) and values that are no tensors are left out. Does
// nothing when tracing is off. Throws what libtorch throws. The models and observers of
// libtrace::torch do all of it by themselves: TorchScriptOptions::digest_every.
void AddOutputs(RunDigest& digest, const c10::IValue& outputs);

}  // namespace LIBTRACE_EXPORT

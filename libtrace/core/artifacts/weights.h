// The weights of a model, as models and packages list them.
#pragma once

#include <span>

#include "libtrace/artifacts/model_load.h"
#include "libtrace/json.h"

namespace libtrace::detail {

// Members `weights`, `weight_size_bytes` (every storage once), `shared_weights` of an open object.
void WriteWeights(JsonWriter& json, std::span<const ModelWeight> weights);

}  // namespace libtrace::detail

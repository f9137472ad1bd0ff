// The weights of a model, as models and packages list them.
#pragma once

#include <vector>

#include "libtrace/artifacts/model_load.h"
#include "libtrace/json.h"

namespace libtrace::detail {

// Members `weights`, `weight_size_bytes` (every storage once), `shared_weights` of an open object.
void WriteWeights(JsonWriter& json, const std::vector<ModelWeight>& weights);

}  // namespace libtrace::detail

// Weights that an AOTInductor package holds as files (aot_inductor.package_constants_on_disk).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "libtrace/artifacts/model_load.h"
#include "torch/zip_file.h"

namespace libtrace {

// The `weights_config.json` of each model: {"<name>": ["<file>", [shape], [stride], offset], …}; the
// files lie in `data/weights/`, one per storage. A file that does not say its type gives weights of
// size 0; a list of another shape gives none.
struct WeightsConfig {
  std::string model{};
  std::string text{};
};
std::vector<ModelWeight> ReadPackageWeights(ZipFile& zip,
                                            const std::vector<WeightsConfig>& configs);

}  // namespace libtrace

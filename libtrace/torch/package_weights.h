// Weights that a package holds as files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "libtrace/artifacts/model_load.h"
#include "torch/zip_file.h"

namespace libtrace {

// A list of weights by their names. The files lie in `data/weights/`, one per storage.
//   data/aotinductor/<model>/weights_config.json  of AOTInductor with package_constants_on_disk:
//     {"<name>": ["<file>", [shape], [stride], offset], …}; a file is an archive of torch.save
//   data/weights/<model>_weights_config.json      of an exported program (2.9 and later):
//     {"config": {"<name>": {"path_name": "<file>", "use_pickle": false, "tensor_meta": {…}}, …}};
//     a file is the bytes of the storage, or with use_pickle an archive of torch.save
// Both are written by torch/export/pt2_archive/_package.py, the second as
// torch/_export/serde/schema.py (PayloadConfig) declares it.
struct WeightsConfig {
  std::string file{};  // its name in the package
  std::string model{};
  std::string text{};
};
// A weight whose file does not say its type has size 0. Lists of another shape and files that cannot
// be read are added to `unread`.
std::vector<ModelWeight> ReadPackageWeights(ZipFile& zip, const std::vector<WeightsConfig>& configs,
                                            std::vector<std::string>& unread);

}  // namespace libtrace

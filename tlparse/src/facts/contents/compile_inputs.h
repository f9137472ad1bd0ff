// The tensors that a compile was given, as PyTorch described them while it traced.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct InputTensor {
  std::string name;         // "x", "self.layer.weight"
  std::string dtype, size;  // "torch.float32", "[8, 16]"
  bool is_parameter = false;
};
// In the order in which the compile describes them.
Result<std::vector<InputTensor>> LoadInputs(Database& database, std::int64_t compile_id);

}  // namespace tlparse

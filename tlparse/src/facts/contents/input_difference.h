// How the tensors differ that two compiles were given, as PyTorch described them while it traced.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// One property of a tensor that both compiles have.
struct InputDifference {
  std::string name;      // "x", "self.layer.weight"
  std::string property;  // "size", "dtype", "requires_grad", …
  std::string a, b;      // "[8, 16]", "False"
  bool is_parameter = false;
};

// In the order in which compile a describes its tensors. Sizes and strides are those of the first
// call; the index of a device is not compared.
Result<std::vector<InputDifference>> CompareInputs(Database& database, std::int64_t a_compile_id,
                                                   std::int64_t b_compile_id);

// Whether they are tensors without gradient on one side alone, and no parameters: as a pipeline's first
// stage gets its input. `is_of_b`: the side.
bool AreWithoutGradient(const std::vector<InputDifference>& inputs, bool is_of_b);

// Whether the first of these compiles, up to nine, were given other tensors in one of `inputs`.
Result<bool> DifferAmong(Database& database, const std::vector<InputDifference>& inputs,
                         const std::vector<std::int64_t>& compile_ids);

// "x: size [8, 16] → [12, 16]; self.scale: requires_grad True → False; and 2 more"; empty: none.
std::string InputChanges(const std::vector<InputDifference>& differences);

}  // namespace tlparse

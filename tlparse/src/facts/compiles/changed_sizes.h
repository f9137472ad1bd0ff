// Sizes of the tensors that two compiles were given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// "size 1 of x"
struct ChangedSize {
  std::string tensor;
  std::int64_t index = 0;
  bool operator==(const ChangedSize&) const = default;
};
// Nothing: the text is not of this form.
std::optional<ChangedSize> SizeIn(std::string_view text);

// In which the tensors of two compiles of one function differ.
struct SizeChanges {
  // Of tensors that are no parameters. Sizes of 0 and 1 are left out: they are compiled apart.
  std::vector<ChangedSize> sizes;
  bool are_of_modules = false;  // parameters differ: one module ran the code, then another
};
Result<SizeChanges> FindSizeChanges(Database& database, std::int64_t before_id,
                                    std::int64_t now_id);

}  // namespace tlparse

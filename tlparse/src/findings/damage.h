// What findings about logs without a record have in common.
#pragma once

#include <string_view>

#include "findings/context.h"

namespace tlparse {

// All but the kind, the title and the ranks. `others`: those with which its process is not compared.
void SayWithoutRecords(const FindingContext& context, Finding& finding, bool is_one,
                       std::string_view others);

}  // namespace tlparse

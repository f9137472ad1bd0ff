// The budget flags of `tlparse check` and `tlparse watch`.
#pragma once

#include "answers/check/check.h"
#include "cli/arguments.h"

namespace tlparse {

void AddBudgetArguments(Arguments& app, CheckBudget& budget);
// Whether a limit is set.
bool HasLimit(const CheckBudget& budget);
void PrintCheck(const CheckAnswer& answer);

}  // namespace tlparse

// Findings on collectives that ranks issued. Internal to findings.
#pragma once

#include "base/result.h"
#include "facts/collectives/issued.h"
#include "findings/context.h"

namespace tlparse {

Finding FindingOfIssued(const FindingContext& context, const IssuedJob& job,
                        const CollectiveFinding& problem);

// At most one: of collectives, else of receives.
Result<void> FindStragglers(FindingContext& context);

}  // namespace tlparse

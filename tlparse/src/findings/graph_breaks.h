// Text of a finding about one graph break. Internal to findings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "findings/findings.h"

namespace tlparse {

// The innermost frame of the break's stack, with its code; line 0: the log has no stack.
FindingPlace SiteOfBreak(std::string_view user_stack);

// "at train.py:29"; of a break in a library "in distributed.py:1758, called from train.py:29".
// `place` is the user's line nearest to the break. Empty without a place.
std::string WhereOfBreak(const std::optional<FindingPlace>& place, const FindingPlace& site);

// A break that the user or PyTorch asks for, or a line of a library's log, is a note; any other costs
// time. `site`: the innermost frame that is known.
FindingSeverity SeverityOfBreak(std::string_view reason, const FindingPlace& site);

// Sets the suggestion and the code of the place; for a break in a library it names the library
// instead, with PyTorch's explanation.
void AddBreakAdvice(Finding& finding, std::string_view reason, const FindingPlace& site);

}  // namespace tlparse

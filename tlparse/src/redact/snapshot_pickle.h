// A snapshot of the allocator as a pickle, opcode by opcode: what the file refers to again stays
// shared, so that the copy is no larger.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "redact/text_redactor.h"

namespace tlparse::redact {

// Takes the user's names from the frames of its stacks, and from its other texts.
Result<void> HarvestSnapshot(std::string_view pickle, TextRedactor& redactor);

// The pickle with pseudonyms in its texts. kDamagedInput: it holds what a snapshot does not.
Result<std::string> RedactSnapshot(std::string_view pickle, TextRedactor& redactor);

}  // namespace tlparse::redact

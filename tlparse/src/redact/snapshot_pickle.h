// A snapshot of the allocator as a pickle, opcode by opcode: what the file refers to again stays
// shared, so that the copy is no larger. One opcode at a time is held.
#pragma once

#include <iosfwd>

#include "base/result.h"
#include "inputs/memory/source.h"
#include "redact/text_redactor.h"

namespace tlparse::redact {

// Takes the user's names from the frames of its stacks, and from its other texts.
Result<void> HarvestSnapshot(memory::StreamSource& pickle, TextRedactor& redactor);

// Writes the pickle with pseudonyms in its texts; of a text of more than 1 MiB the beginning, which is what is read of it. kDamagedInput: it holds what a snapshot
// does not.
Result<void> RedactSnapshot(memory::StreamSource& pickle, TextRedactor& redactor,
                            std::ostream& out);

}  // namespace tlparse::redact

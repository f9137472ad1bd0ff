// A file that is JSON or lines of text, in pieces of it.
#pragma once

#include <iosfwd>

#include "base/result.h"
#include "inputs/memory/source.h"
#include "redact/text_redactor.h"

namespace tlparse::redact {

// Takes the user's names from it. The longest object within it that holds no other is in memory, and 1 MiB.
Result<void> HarvestJson(memory::StreamSource& json, TextRedactor& redactor);

// Writes it with pseudonyms.
Result<void> RedactJsonFile(memory::StreamSource& json, TextRedactor& redactor, std::ostream& out);

// The same of lines; those that begin with a space are held with the line before them.
Result<void> HarvestText(memory::StreamSource& text, TextRedactor& redactor);
Result<void> RedactTextFile(memory::StreamSource& text, TextRedactor& redactor, std::ostream& out);

}  // namespace tlparse::redact

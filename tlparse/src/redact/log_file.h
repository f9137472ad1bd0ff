// A structured log, record by record.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "base/input.h"
#include "base/result.h"
#include "redact/redact_files.h"
#include "redact/text_redactor.h"

namespace tlparse::redact {

// All bytes of a file, decompressed.
Result<std::string> WholeFile(const std::string& path);

// Of a log one record at a time is held. Takes the user's names from it.
Result<void> HarvestLog(InputStream& log, TextRedactor& redactor);

// Writes the log with pseudonyms; `has_payload` is the MD5 of the payload as it is now, where it was that of the payload before. Lines that belong to no record, and records
// whose envelope is no JSON object, are counted in `file` and dropped.
Result<void> RedactLog(InputStream& log, TextRedactor& redactor, RedactedFile& file,
                       std::ostream& out);

}  // namespace tlparse::redact

// A structured log, record by record.
#pragma once

#include <functional>
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

// Takes the user's names from a log.
void HarvestLog(std::string_view log, TextRedactor& redactor);

// The log with pseudonyms; `has_payload` is the MD5 of the payload as it is now, where it was that of the payload before. Lines that belong to no record, and records
// whose envelope is no JSON object, are counted in `file` and dropped.
std::string RedactLog(std::string_view log, TextRedactor& redactor, RedactedFile& file);

}  // namespace tlparse::redact

// Findings on a terminal and in JSON; in Markdown: report/finding_text.h.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.h"
#include "findings/findings.h"

namespace tlparse {

// One finding as an object (schemas/json/answers/finding.schema.json).
void WriteFinding(JsonWriter& json, const Finding& finding);
// An array of such objects.
void WriteFindings(JsonWriter& json, const std::vector<Finding>& findings);

// Prints the findings: severity, title, then place, detail, suggestion, evidence.
void PrintFindings(const std::vector<Finding>& findings);

// The titles of the most urgent ones to standard error, at most `most`, for the end of an ingest.
void PrintTopFindings(const std::vector<Finding>& findings, std::size_t most,
                      const std::string& database);

}  // namespace tlparse

// Findings on a terminal; in JSON: finding_fields.h; in Markdown: report/finding_text.h.
#pragma once

#include <string>
#include <vector>

#include "findings/findings.h"

namespace tlparse {

// The lines behind findings and behind their evidence.
Result<void> AddLines(Database& database, std::vector<Finding>& findings);

// Prints the findings: severity, title, then place, detail, suggestion, evidence, lines.
void PrintFindings(const std::vector<Finding>& findings);

// The titles of the most urgent ones to standard error, at most `most`, for the end of an ingest.
void PrintTopFindings(const std::vector<Finding>& findings, std::size_t most,
                      const std::string& database);

}  // namespace tlparse

// Findings on a terminal and in JSON; in Markdown: report/finding_text.h.
#pragma once

#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "base/json_writer.h"

namespace tlparse {

// An array of findings, design of schemas/json/answers/finding.schema.json.
void WriteFindings(JsonWriter& json, const std::vector<Finding>& findings);

// Prints the findings: severity, title, then place, detail, suggestion, evidence.
// `with_launch`: the launch is printed for those that are not of launch `launch`.
void PrintFindings(const std::vector<Finding>& findings);

// The titles of the most urgent ones to standard error, at most `most`, for the end of an ingest.
void PrintTopFindings(const std::vector<Finding>& findings, std::size_t most,
                      const std::string& database);

}  // namespace tlparse

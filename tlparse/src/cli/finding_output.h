// Findings on a terminal, in JSON and in Markdown.
#pragma once

#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "base/json_writer.h"

namespace tlparse {

// An array of findings, design of schemas/json/answers/finding.schema.json.
void WriteFindings(JsonWriter& json, const std::vector<Finding>& findings);

// The findings for a person: severity, sentence, then place, detail, what to try, evidence.
// `with_launch`: the launch is told of those that are not of launch `launch`.
void PrintFindings(const std::vector<Finding>& findings);

// For a chat or an issue; ends with a newline.
std::string FindingsMarkdown(const std::vector<Finding>& findings, const std::string& heading);

// The titles of the most urgent ones to standard error, at most `most`, for the end of an ingest.
void PrintTopFindings(const std::vector<Finding>& findings, std::size_t most,
                      const std::string& database);

}  // namespace tlparse

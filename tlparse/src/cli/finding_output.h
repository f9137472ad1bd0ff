// Findings on a terminal and in JSON; in Markdown: report/finding_text.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "answers/evidence/evidence.h"
#include "base/json_writer.h"
#include "findings/findings.h"

namespace tlparse {

// The lines behind findings and behind their evidence, which must not move.
using LinesOfFindings = std::map<const Finding*, std::vector<EvidenceLine>>;
Result<LinesOfFindings> FindLines(Database& database, const std::vector<Finding>& findings);

// One finding as an object (schemas/json/answers/findings.schema.json); with `lines` it has those.
void WriteFinding(JsonWriter& json, const Finding& finding, const LinesOfFindings* lines = nullptr);
// An array of such objects.
void WriteFindings(JsonWriter& json, const std::vector<Finding>& findings,
                   const LinesOfFindings* lines = nullptr);

// Prints the findings: severity, title, then place, detail, suggestion, evidence, lines.
void PrintFindings(const std::vector<Finding>& findings, const LinesOfFindings* lines = nullptr);

// The titles of the most urgent ones to standard error, at most `most`, for the end of an ingest.
void PrintTopFindings(const std::vector<Finding>& findings, std::size_t most,
                      const std::string& database);

}  // namespace tlparse

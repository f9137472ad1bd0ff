// Findings on a terminal; in JSON: finding_fields.h; in Markdown: report/finding_text.h.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "facts/job/asked_participant.h"
#include "findings/findings.h"

namespace tlparse {

// The lines behind findings and behind their evidence, and what was looked for.
Result<void> AddLines(Database& database, const std::string& run, std::int64_t launch,
                      std::vector<Finding>& findings);

// Prints the findings: severity, title, then place, detail, suggestion, evidence, lines.
void PrintFindings(const std::vector<Finding>& findings);

// The titles of the most urgent ones to standard error, at most `most`, for the end of an ingest.
void PrintTopFindings(const std::vector<Finding>& findings, std::size_t most,
                      const std::string& database);

// "2 warnings, 5 notes"
std::string CountBySeverity(std::span<const Finding> findings);

// Leaves those that name the rank or process, as their evidence may, and those of all ranks. Returns what was
// left out: "only what involves rank 1; left out: 2 findings that do not name it (1 error, 1 note)"; empty: nothing was asked for.
// kNotFound: no finding names it, and no input.
Result<std::string> KeepNamed(Database& database, const AskedParticipant& asked,
                              const std::string& run, const std::optional<std::int64_t>& launch,
                              std::vector<Finding>& findings);

}  // namespace tlparse

// Findings as text: for `tlparse findings --markdown` and the page's button of the same name; and how
// other answers become Markdown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "findings/findings.h"

namespace tlparse {

// "run job, launch 2 of 2: 3 findings"; of a single launch without its number.
std::string FindingsHeading(std::string_view run_name, std::int64_t launch,
                            std::size_t launch_count, std::size_t finding_count);

// "a.py:12  x = f(y)", or the known part of it.
std::string PlaceLine(const FindingPlace& place);

// What to try, and what an experiment has found out about it: "f(x); confirmed by experiment 3";
// empty: nothing is known.
std::string TryText(const Finding& finding);

// A line within Markdown, also in a cell of a table: nothing in it is markup.
std::string MarkdownText(std::string_view text);
// Lines that Markdown shows as they are, whatever they hold.
std::string MarkdownBlock(std::string_view lines);

// Markdown for a chat or an issue; ends with a newline. Text of the log is escaped.
std::string FindingsMarkdownHeading(const std::string& heading, bool has_findings);
std::string FindingMarkdown(const Finding& finding);
std::string FindingsMarkdown(const std::vector<Finding>& findings, const std::string& heading);

}  // namespace tlparse

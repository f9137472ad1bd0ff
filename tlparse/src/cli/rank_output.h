// Output shared by the answers about several ranks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/plural.h"
#include "cli/terminal.h"
#include "facts/cache/cause.h"
#include "facts/job/job.h"
#include "facts/job/log_damage.h"

namespace tlparse {

// "rank 3", "ranks 0-3,6", "log:a,log:b".
std::string RanksText(const Job& job, const std::vector<RankIndex>& ranks);
// Of those that differ and those they are compared with: "the log of rank 1 is damaged (tlparse
// import-log)" if that may be why, else empty.
std::string DamageText(const Job& job, const LogDamage& damage, const std::vector<RankIndex>& ranks,
                       const std::vector<RankIndex>& others);

// ["a", "b"]
void WriteStrings(JsonWriter& json, const std::vector<std::string>& strings);
// Nothing for an empty string: null in JSON.
std::optional<std::string> NonEmpty(const std::string& text);

// Prints `text` (made printable) in lines of at most the terminal's width (80 if there is none),
// the first with `first_indent`, others with `indent`; the first word in `style`.
void PrintWrapped(std::string_view text, int first_indent, int indent, Style style = Style::kNone);
// The same in bold, at the left.
void PrintHeading(std::string_view text);

// Labels of one function in order: "0/1 … 0/7".
std::string CompilesText(const std::vector<std::string>& labels);

}  // namespace tlparse

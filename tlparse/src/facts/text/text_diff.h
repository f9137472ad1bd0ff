// Differences between two texts, line by line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tlparse {

// The lines of a text, without their LF. A last line without LF counts.
std::vector<std::string_view> SplitLines(std::string_view text);

// A unified diff ("--- a", "+++ b", "@@ … @@") with `context_lines` around each difference; empty
// if the texts are equal. Longer than `max_lines`: cut, and the last line says how many were left
// out.
std::string UnifiedDiff(std::string_view a, std::string_view b, std::string_view a_name,
                        std::string_view b_name, std::size_t context_lines = 3,
                        std::size_t max_lines = 2000);

// The text of a graph without the end of lines that deletes values (";  x = y = None"): what is
// deleted where follows from what is used later.
std::string WithoutDeletions(std::string_view text);

struct FirstDifference {
  std::size_t a_line;  // 1-based
  std::size_t b_line;
  std::string a;  // the line, without blank space around it; empty: the text ends before
  std::string b;
};
// Of two lines of a graph in which the annotation of one name differs, as in
// `L_x_: "f32[8, 16]cpu"`: the name with its annotation in each. Else the lines.
std::pair<std::string, std::string> DifferingAnnotations(std::string_view a, std::string_view b);
// "a → b", at most about 2 * `size` characters: what is equal at both ends of two calls is shown once,
// "dropout(x, 0.1 → 0.5, True)"; longer texts are shown around their first difference, with "…" for
// what is left out. Blank space of several characters becomes one blank.
std::string ChangeText(std::string_view a, std::string_view b, std::size_t size);
// The first line in which the texts differ, by position. Nothing if they are equal.
std::optional<FirstDifference> FindFirstDifference(std::string_view a, std::string_view b);

}  // namespace tlparse

// Keeps the text of an answer short: what is printed first is the most telling.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tlparse {

// Of the text of an answer, in characters, unless it is asked for all.
inline constexpr std::size_t kMostAnswerText = 4000, kMostFindingsText = 2500;

// What `print` writes to standard output, which nothing else may write to meanwhile.
std::string Captured(const std::function<void()>& print);

// Characters of valid UTF-8.
std::size_t CountCharacters(std::string_view text);

// The first lines of `text`, not more than `most` characters with the line that says how many are
// left out: "and 12 more lines: --all". A line that is indented less than the one behind it is not
// the last one.
std::string FirstLines(std::string_view text, std::size_t most, std::string_view how);

// Prints what `print` writes, cut so unless `all`.
void PrintBounded(bool all, std::string_view how, const std::function<void()>& print);

}  // namespace tlparse

#include "base/line_pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace tlparse {

Result<LinePattern> LinePattern::Make(std::string_view pattern, bool is_case_sensitive) {
  constexpr int kMostInstructions = 2000;  // each may be looked at for each byte of a line
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_case_sensitive(is_case_sensitive);
  const auto expression =
      std::make_shared<const re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!expression->ok())
    return Fail(ErrorCode::kUsage, fmt::format("the regular expression is not understood: {}",
                                               Printable(expression->error())));
  if (expression->ProgramSize() > kMostInstructions)
    return Fail(ErrorCode::kUsage, "the regular expression is too large");
  LinePattern made(expression);
  if (made.Find({}, 0))
    return Fail(ErrorCode::kUsage,
                "the regular expression matches an empty text, and so every line");
  return made;
}

std::optional<LinePattern::Match> LinePattern::Find(std::string_view line, std::size_t from) const {
  const re2::StringPiece text(line.data(), std::min(line.size(), kMostBytes));
  re2::StringPiece found;
  if (from > text.size() ||
      !expression_->Match(text, from, text.size(), re2::RE2::UNANCHORED, &found, 1))
    return std::nullopt;
  const auto begin = static_cast<std::size_t>(found.data() - text.data());
  const std::size_t end = begin + found.size();
  // What follows decides whether it is a match.
  if (end == text.size() && text.size() < line.size()) return std::nullopt;
  return Match{begin, end};
}

}  // namespace tlparse

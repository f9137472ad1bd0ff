// A regular expression that is looked for in lines, by RE2: the time is linear in the length of a
// line, whatever the pattern.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace tlparse {

class LinePattern {
 public:
  struct Match {
    std::size_t begin = 0, end = 0;
  };
  // A hostile pattern takes two seconds for so much.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  // kUsage: the pattern is wrong, too large, or matches an empty text and so every line.
  static Result<LinePattern> Make(std::string_view pattern, bool is_case_sensitive);

  // The leftmost match from `from` on, within the first kMostBytes of the line.
  std::optional<Match> Find(std::string_view line, std::size_t from) const;

 private:
  explicit LinePattern(std::shared_ptr<const re2::RE2> expression)
      : expression_(std::move(expression)) {}
  std::shared_ptr<const re2::RE2> expression_;
};

}  // namespace tlparse

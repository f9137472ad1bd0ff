#include "artifacts/common/text/recompile_origin.h"

#include <charconv>

namespace tlparse {
namespace {

// "scripts/a.py:3 in f (HINT: …)"
void ReadOrigin(std::string_view comment, RecompileOrigin& origin) {
  const std::string_view position = comment.substr(0, comment.find(" in "));
  const std::size_t colon = position.rfind(':');
  if (colon == std::string_view::npos) return;
  std::int64_t line = 0;
  const auto [end, error] =
      std::from_chars(position.data() + colon + 1, position.data() + position.size(), line);
  if (error != std::errc() || end != position.data() + position.size()) return;
  origin.file = position.substr(0, colon);
  origin.line = line;
}

}  // namespace

RecompileOrigin OriginOfRecompile(std::string_view check) {
  constexpr std::string_view kCommentMark = "  # ";
  RecompileOrigin origin;
  for (std::size_t at = check.find(kCommentMark); at != std::string_view::npos;) {
    const std::size_t begin = at + kCommentMark.size();
    at = check.find(kCommentMark, begin);
    ReadOrigin(check.substr(begin, at == std::string_view::npos ? at : at - begin), origin);
  }
  return origin;
}

}  // namespace tlparse

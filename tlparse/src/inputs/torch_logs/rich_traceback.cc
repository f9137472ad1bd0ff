#include "inputs/torch_logs/rich_traceback.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include "artifacts/common/text/python_traceback.h"

namespace tlparse {
namespace {

constexpr std::string_view kSide = "│", kTop = "╭", kBottom = "╰", kHere = "❱";
constexpr std::size_t kLongestPlace = 10'000;

// A line of code without the lines that Rich draws for its indentation.
std::string_view WithoutGuides(std::string_view code) {
  while (code.starts_with(' ') || code.starts_with(kSide))
    code.remove_prefix(code.starts_with(' ') ? 1 : kSide.size());
  return code;
}

}  // namespace

bool RichTraceback::Add(std::string_view line, const std::function<void(std::string_view)>& take) {
  line = TrimEnd(line);
  if (line.starts_with(kTop) && line.find(" Traceback (most recent call last) ") != line.npos) {
    is_inside_ = true;
    place_.clear();
    take("Traceback (most recent call last):");
    return true;
  }
  if (!is_inside_) return false;
  if (line.starts_with(kSide) && line.ends_with(kSide) && line.size() > 2 * kSide.size() + 2) {
    AddInside(line.substr(kSide.size() + 1, line.size() - 2 * kSide.size() - 2), take);
    return true;
  }
  EndPlace(take);
  is_inside_ = false;
  return line.starts_with(kBottom);
}

void RichTraceback::AddInside(std::string_view content,
                              const std::function<void(std::string_view)>& take) {
  const std::string_view text = TrimEnd(content);
  const bool is_here = text.starts_with(kHere);
  if (text.empty() || text[0] == ' ' || is_here || text.starts_with(kSide) ||
      text.starts_with(kTop) || text.starts_with(kBottom)) {
    EndPlace(take);
    const std::size_t bar = is_here ? text.find(kSide) : text.npos;
    if (bar != text.npos)
      take(fmt::format("    {}", WithoutGuides(text.substr(bar + kSide.size()))));
    return;
  }
  if (place_.size() > kLongestPlace) return;
  if (!place_.empty() && !is_full_) place_ += ' ';
  place_ += text;
  is_full_ = text.size() == content.size();
}

// Such as "... 3 frames hidden ..." is no place.
void RichTraceback::EndPlace(const std::function<void(std::string_view)>& take) {
  static const re2::RE2 kPlace(R"((.+):(\d+) in (.+))");
  std::string file, line, function;
  if (re2::RE2::FullMatch(place_, kPlace, &file, &line, &function))
    take(fmt::format("  File \"{}\", line {}, in {}", file, line, function));
  place_.clear();
}

}  // namespace tlparse

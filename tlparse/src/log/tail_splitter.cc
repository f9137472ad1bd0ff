#include "log/tail_splitter.h"

#include <algorithm>
#include <optional>

namespace tlparse {

namespace {

constexpr std::string_view kBegin = "==> ", kEnd = " <==";
constexpr std::size_t kMostLine = 4096 + 8;  // PATH_MAX, and the marks

// The bytes of the header line that `text` begins with, its line feed included; 0: there is none;
// nothing: more bytes decide.
std::optional<std::size_t> HeaderBytes(std::string_view text) {
  const std::size_t common = std::min(text.size(), kBegin.size());
  if (text.substr(0, common) != kBegin.substr(0, common)) return 0;
  const std::size_t end = text.substr(0, kMostLine).find('\n');
  if (end == std::string_view::npos)
    return text.size() < kMostLine ? std::optional<std::size_t>() : 0;
  const bool is_header = end > kBegin.size() + kEnd.size() && text.substr(0, end).ends_with(kEnd);
  return is_header ? end + 1 : 0;
}

}  // namespace

Result<void> TailSplitter::Emit(std::string_view bytes) {
  if (bytes.empty()) return {};
  is_at_line_start_ = bytes.back() == '\n';
  return sink_(name_, bytes);
}

Result<void> TailSplitter::Add(std::string_view bytes) {
  const std::string whole = std::move(held_) + std::string(bytes);
  held_.clear();
  std::string_view rest = whole;
  std::size_t feed = 0;  // where a header may begin: at a line feed, or at the start of a line
  bool is_start = is_at_line_start_;
  while (true) {
    if (!is_start) feed = rest.find('\n', feed);
    if (feed == std::string_view::npos) return Emit(rest);
    const std::size_t line = is_start ? feed : feed + 1;
    is_start = false;
    const std::optional<std::size_t> size = HeaderBytes(rest.substr(line));
    if (!size) {
      held_ = rest.substr(feed);
      return Emit(rest.substr(0, feed));
    }
    if (*size == 0) {
      feed = line;
      continue;
    }
    RETURN_IF_ERROR(Emit(rest.substr(0, feed)));
    name_ = rest.substr(line + kBegin.size(), *size - 1 - kBegin.size() - kEnd.size());
    RETURN_IF_ERROR(sink_(name_, {}));
    is_at_line_start_ = true;
    rest.remove_prefix(line + *size);
    feed = 0;
  }
}

Result<void> TailSplitter::Pause() {
  if (held_ != "\n" || is_at_line_start_) return {};
  return End();
}

Result<void> TailSplitter::End() {
  const std::string held = std::move(held_);
  held_.clear();
  return Emit(held);
}

}  // namespace tlparse

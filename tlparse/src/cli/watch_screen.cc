#include "cli/watch_screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace tlparse {

namespace {

struct Size {
  int rows, columns;
};

// The terminal's, which may have become another. COLUMNS counts as it does for tables.
Size SizeNow() {
  winsize size{};
  const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  const bool is_given = std::getenv("COLUMNS") != nullptr && Terminal::Out().width > 0;
  return {is_known && size.ws_row > 0 ? size.ws_row : 24, is_given ? Terminal::Out().width
                                                          : is_known && size.ws_col > 0
                                                              ? size.ws_col
                                                              : 80};
}

// The line in at most `width` columns.
std::string CutToWidth(const std::string& text, int width) {
  std::string line = Printable(text);
  if (DisplayWidth(line) <= width) return line;
  while (DisplayWidth(line) >= width && !line.empty()) {
    std::size_t last = line.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(line[last]) & 0xc0) == 0x80) --last;
    line.resize(last);
  }
  return line + "…";
}

std::string More(std::size_t count) {
  return fmt::format("and {} more {}", count, count == 1 ? "line" : "lines");
}

// The first of the lines, and how many more there are.
void AddSome(const std::vector<ScreenLine>& from, std::size_t most, std::vector<ScreenLine>& to) {
  const std::size_t shown =
      from.size() <= most ? from.size() : most - std::min<std::size_t>(most, 1);
  to.insert(to.end(), from.begin(), from.begin() + static_cast<std::ptrdiff_t>(shown));
  if (shown < from.size() && most > 0) to.push_back({More(from.size() - shown), Style::kDim});
}

}  // namespace

bool WatchScreen::IsPossible() {
  const char* const term = std::getenv("TERM");
  return Terminal::Out().is_terminal && (term == nullptr || std::string_view(term) != "dumb");
}

void WatchScreen::Show(const std::vector<std::string>& status,
                       const std::vector<ScreenLine>& findings) {
  const Size size = SizeNow();
  // The cursor stands below the last line.
  const auto room = static_cast<std::size_t>(std::max(2, size.rows - 1));
  std::vector<ScreenLine> all, lines;
  for (const std::string& line : status) all.push_back({line, Style::kNone});
  AddSome(all, std::max(room - room / 2, room - std::min(room, findings.size())), lines);
  AddSome(findings, room - lines.size(), lines);
  // A line of before takes several rows where the terminal has become narrower.
  int rows = 0;
  for (const int width : widths_)
    rows += std::max(1, (width + size.columns - 1) / std::max(1, size.columns));
  std::string screen;
  if (rows > 0) screen = fmt::format("\x1b[{}F\x1b[J", rows);
  widths_.clear();
  for (const ScreenLine& line : lines) {
    const std::string cut = CutToWidth(line.text, size.columns - 1);
    widths_.push_back(DisplayWidth(cut));
    screen += Styled(cut, line.style) + "\n";
  }
  std::fputs(screen.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace tlparse

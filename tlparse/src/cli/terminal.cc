#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace tlparse {

namespace {

Terminal Probe(int descriptor) {
  Terminal terminal;
  terminal.is_terminal = isatty(descriptor) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  terminal.has_color = terminal.is_terminal && (no_color == nullptr || *no_color == '\0') &&
                       (term == nullptr || std::string_view(term) != "dumb");
  winsize size{};
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr && std::atoi(columns) > 0) {
    terminal.width = std::atoi(columns);
  } else if (terminal.is_terminal) {
    terminal.width =
        ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }
  return terminal;
}

int Columns(char32_t c) { return utf8proc_charwidth(static_cast<utf8proc_int32_t>(c)); }

// The longest prefix of `text` that takes at most `width` columns, with "…" if something is
// missing.
std::string Fit(const std::string& text, int width) {
  if (DisplayWidth(text) <= width) return text;
  std::string result;
  int used = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = NextCodePoint(text, at);
    const int columns = Columns(c);
    if (used + columns > width - 1) break;
    used += columns;
    result.append(text, begin, at - begin);
  }
  return result + "…";
}

constexpr int kMinColumn = 8;
constexpr int kGap = 2;

}  // namespace

const Terminal& Terminal::Out() {
  static const Terminal terminal = Probe(STDOUT_FILENO);
  return terminal;
}
const Terminal& Terminal::Err() {
  static const Terminal terminal = Probe(STDERR_FILENO);
  return terminal;
}

std::string Styled(std::string_view text, Style style) {
  if (!Terminal::Out().has_color || style == Style::kNone) return std::string(text);
  constexpr const char* kCodes[] = {"", "1", "2", "31", "32", "33", "36"};
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<int>(style)], text);
}

int DisplayWidth(std::string_view text) {
  int width = 0;
  for (std::size_t at = 0; at < text.size();) width += Columns(NextCodePoint(text, at));
  return width;
}

void Table::Add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = Printable(cell);
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::Print() const {
  std::vector<int> widths;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    int width = DisplayWidth(columns_[column].heading);
    for (const std::vector<std::string>& row : rows_)
      width = std::max(width, DisplayWidth(row[column]));
    widths.push_back(width);
  }
  const int limit = Terminal::Out().width;
  const auto total = [&] {
    return std::accumulate(widths.begin(), widths.end(), 0) +
           kGap * static_cast<int>(widths.size() - 1);
  };
  while (limit > 0 && total() > limit) {
    auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= kMinColumn) break;
    --*widest;
  }
  const auto print_row = [&](const std::vector<std::string>& cells, bool is_heading) {
    std::string line;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      const std::string cell = limit > 0 ? Fit(cells[column], widths[column]) : cells[column];
      const std::string padding(
          static_cast<std::size_t>(std::max(0, widths[column] - DisplayWidth(cell))), ' ');
      const bool is_last = column + 1 == columns_.size();
      if (columns_[column].align == Align::kRight) line += padding;
      line += is_heading ? Styled(cell, Style::kBold) : cell;
      if (columns_[column].align == Align::kLeft && !is_last) line += padding;
      if (!is_last) line.append(kGap, ' ');
    }
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
  };
  std::vector<std::string> headings;
  for (const Column& column : columns_) headings.push_back(column.heading);
  print_row(headings, true);
  for (const std::vector<std::string>& row : rows_) print_row(row, false);
}

std::string ShortenMiddle(std::string_view text, std::size_t size) {
  std::vector<std::size_t> starts;  // of code points
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) starts.push_back(i);
  }
  if (starts.size() <= size || size < 2) return std::string(text);
  const std::size_t tail = (size - 1) / 2, head = size - 1 - tail;
  return fmt::format("{}…{}", text.substr(0, starts[head]),
                     text.substr(starts[starts.size() - tail]));
}

std::string HumanDuration(double seconds) {
  if (seconds >= 100) return fmt::format("{:.0f} s", seconds);
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.0f} µs", seconds * 1e6);
}

std::string HumanBytes(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1000 && unit < 4) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace tlparse

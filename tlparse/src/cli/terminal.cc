#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <iterator>
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

struct Widths {
  char32_t first, last;
  int columns;
};
// Of characters that do not take one column; by character.
constexpr Widths kWidths[] = {
#include "column_widths.inc"
};

int Columns(char32_t c) {
  const Widths* found = std::partition_point(std::begin(kWidths), std::end(kWidths),
                                             [c](const Widths& one) { return one.last < c; });
  return found != std::end(kWidths) && found->first <= c ? found->columns : 1;
}

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

// The same of the end of a place; a text in brackets is none.
std::string FitEnd(const std::string& text, int width) {
  int left = DisplayWidth(text);
  if (left <= width) return text;
  if (text.starts_with('(')) return Fit(text, width);
  std::size_t at = 0;
  while (at < text.size() && left > width - 1) left -= Columns(NextCodePoint(text, at));
  return "…" + text.substr(at);
}

constexpr int kMinColumn = 8;
constexpr int kReadableColumn = 12;  // of a text
constexpr int kGap = 2;

// Lines of whole words, each of at most `width` columns unless a word is longer.
std::vector<std::string> WrapWords(const std::string& text, int width) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!lines.empty() && DisplayWidth(lines.back()) + 1 + DisplayWidth(word) <= width) {
      lines.back() += ' ' + word;
    } else {
      lines.push_back(word);
    }
    at = end + 1;
  }
  return lines;
}

int LongestWord(const std::string& text) {
  int longest = 0;
  for (const std::string& word : WrapWords(text, 0))
    longest = std::max(longest, DisplayWidth(word));
  return longest;
}

// Makes the widest narrower, none below its floor, until all fit; whether they do.
bool Shrink(std::vector<int>& widths, const std::vector<int>& floors, int width) {
  int total =
      std::accumulate(widths.begin(), widths.end(), 0) + kGap * static_cast<int>(widths.size() - 1);
  while (width > 0 && total > width) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] > floors[i] && (widest == widths.size() || widths[i] > widths[widest]))
        widest = i;
    }
    if (widest == widths.size()) return false;
    --widths[widest];
    --total;
  }
  return true;
}

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

// Headings are wrapped. Then texts are cut, to at least kReadableColumn; numbers are not. Then columns
// are left out, and only if that does not suffice is everything cut to kMinColumn.
Table::Layout Table::Arrange(int width) const {
  Layout layout;
  std::vector<int> cells(columns_.size());  // widths of the widest
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    layout.columns.push_back(i);
    for (const std::vector<std::string>& row : rows_)
      cells[i] = std::max(cells[i], DisplayWidth(row[i]));
  }
  while (true) {
    std::vector<int> whole, readable;
    layout.widths.clear();
    for (const std::size_t i : layout.columns) {
      const bool is_text = columns_[i].align == Align::kLeft;
      const int word = LongestWord(columns_[i].heading);
      layout.widths.push_back(std::max(DisplayWidth(columns_[i].heading), cells[i]));
      whole.push_back(std::max(word, cells[i]));
      readable.push_back(std::max(word, is_text ? std::min(cells[i], kReadableColumn) : cells[i]));
    }
    if (Shrink(layout.widths, whole, width) || Shrink(layout.widths, readable, width))
      return layout;
    const auto last = std::max_element(layout.columns.begin(), layout.columns.end(),
                                       [&](std::size_t a, std::size_t b) {
                                         return columns_[a].expendable < columns_[b].expendable;
                                       });
    if (columns_[*last].expendable == 0) break;
    layout.columns.erase(last);
  }
  Shrink(layout.widths, std::vector<int>(layout.widths.size(), kMinColumn), width);
  return layout;
}

std::string Table::Line(const Layout& layout, const std::vector<std::string>& cells,
                        bool is_cut) const {
  std::string line;
  for (std::size_t at = 0; at < layout.columns.size(); ++at) {
    const std::string& text = cells[layout.columns[at]];
    const Column& column = columns_[layout.columns[at]];
    const std::string cell = !is_cut            ? text
                             : column.keeps_end ? FitEnd(text, layout.widths[at])
                                                : Fit(text, layout.widths[at]);
    const std::string padding(
        static_cast<std::size_t>(std::max(0, layout.widths[at] - DisplayWidth(cell))), ' ');
    const bool is_right = column.align == Align::kRight;
    const bool is_last = at + 1 == layout.columns.size();
    line += is_right ? padding + cell : is_last ? cell : cell + padding;
    if (!is_last) line.append(kGap, ' ');
  }
  return line;
}

std::vector<std::string> Table::Lines(int width) const {
  const Layout layout = Arrange(width);
  std::vector<std::vector<std::string>> headings;  // by line
  for (std::size_t at = 0; at < layout.columns.size(); ++at) {
    const std::size_t column = layout.columns[at];
    const std::vector<std::string> parts =
        WrapWords(columns_[column].heading, width > 0 ? layout.widths[at] : INT_MAX);
    if (parts.size() > headings.size())
      headings.resize(parts.size(), std::vector<std::string>(columns_.size()));
    for (std::size_t i = 0; i < parts.size(); ++i) headings[i][column] = parts[i];
  }
  std::vector<std::string> lines;
  for (const std::vector<std::string>& heading : headings) {
    std::string line = Line(layout, heading, width > 0);
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(Styled(line, Style::kBold));
  }
  for (const std::vector<std::string>& row : rows_) lines.push_back(Line(layout, row, width > 0));
  std::string left_out;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (std::find(layout.columns.begin(), layout.columns.end(), i) == layout.columns.end())
      left_out += (left_out.empty() ? "" : ", ") + columns_[i].heading;
  }
  if (!left_out.empty()) lines.push_back(fmt::format("left out at this width: {}", left_out));
  return lines;
}

void Table::Print() const {
  for (const std::string& line : Lines(Terminal::Out().width)) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
  }
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

}  // namespace tlparse

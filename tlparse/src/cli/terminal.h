// Formats answers for a terminal and for a pipe.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/human_bytes.h"
#include "base/human_duration.h"
#include "base/printable.h"

namespace tlparse {

// Standard output: whether it is a terminal, how wide, and whether colours are wanted (NO_COLOR,
// TERM=dumb).
struct Terminal {
  bool is_terminal = false;
  bool has_color = false;
  int width = 0;  // columns; 0: no limit (a pipe)
  static const Terminal& Out();
  static const Terminal& Err();
};

enum class Style { kNone, kBold, kDim, kRed, kGreen, kYellow, kCyan };
// `text` in the style if standard output has colours.
std::string Styled(std::string_view text, Style style);

// A table with a heading. Columns are as wide as needed. On a narrow terminal headings take several
// lines, the widest columns are cut and end in "…", and columns that may be left out are, with a
// line below the table that names them.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string heading;
    Align align = Align::kLeft;
    int expendable = 0;      // the highest is left out first; 0: never
    bool keeps_end = false;  // a place, "a/b.py:12": cut at its begin
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // One cell for each column, of any text (it is made printable here).
  void Add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // To standard output.
  void Print() const;
  // The lines of the table on a terminal of this width; 0: no limit.
  std::vector<std::string> Lines(int width) const;

 private:
  struct Layout {
    std::vector<std::size_t> columns;  // that are shown
    std::vector<int> widths;           // of these
  };
  Layout Arrange(int width) const;
  std::string Line(const Layout& layout, const std::vector<std::string>& cells, bool is_cut) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Width of a text on a terminal in columns: wide characters take two, combining ones none.
int DisplayWidth(std::string_view text);

// At most `size` code points: of a longer text the beginning and the end, with "…" between them.
std::string ShortenMiddle(std::string_view text, std::size_t size);

}  // namespace tlparse

// Formats answers for a terminal and for a pipe.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

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

// A table with a heading line. Columns are as wide as needed; on a narrow terminal the widest are
// cut and end in "…".
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string heading;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // One cell for each column, of any text (it is made printable here).
  void Add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // To standard output.
  void Print() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Width of a text on a terminal in columns: wide characters take two, combining ones none.
int DisplayWidth(std::string_view text);

// At most `size` code points: of a longer text the beginning and the end, with "…" between them.
std::string ShortenMiddle(std::string_view text, std::size_t size);

// 1.2 s, 340 ms, 12 µs; 3.4 MB.
std::string HumanDuration(double seconds);
inline std::string HumanMicroseconds(double us) { return HumanDuration(us / 1e6); }
std::string HumanBytes(std::int64_t bytes);

}  // namespace tlparse

// The screen of `tlparse watch` on a terminal: a block of lines that is drawn again in its place.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"

namespace tlparse {

struct ScreenLine {
  std::string text;  // any
  Style style = Style::kNone;
};

class WatchScreen {
 public:
  // Whether standard output is a terminal whose cursor can be moved.
  static bool IsPossible();
  // Never wider or higher than the terminal is by now: long lines are cut, of many lines some are
  // counted only.
  void Show(const std::vector<std::string>& status, const std::vector<ScreenLine>& findings);
  // What is shown stays; the next Show begins below it.
  void Leave() { widths_.clear(); }

 private:
  std::vector<int> widths_;  // of the lines that are shown, columns
};

}  // namespace tlparse

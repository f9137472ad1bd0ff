// Tracebacks that the library Rich prints in a box (rich/traceback.py), as accelerate, Lightning and typer install it, as the lines that
// Python would have printed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tlparse {

class RichTraceback {
 public:
  // The lines of one process in order. Whether the line is of such a box; `take` gets each line that Python would have printed. Behind the box the
  // exception's own line comes as Python prints it.
  bool Add(std::string_view line, const std::function<void(std::string_view)>& take);

 private:
  void AddInside(std::string_view content, const std::function<void(std::string_view)>& take);
  void EndPlace(const std::function<void(std::string_view)>& take);

  bool is_inside_ = false;
  std::string place_;     // "/u/a.py:12 in main", as far as its lines have come
  bool is_full_ = false;  // the last of these lines is cut within a word
};

}  // namespace tlparse

// Shapes and types of the tensors in a generated Python wrapper, as far as its lines name them.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tlparse {

// Splits "a, (b, c), 'd, e'" at the commas of the outermost level; parts are trimmed, an empty last
// one is dropped. Stops at the bracket that closes the list; `length`, if given, becomes the
// position of that bracket (npos: never closed).
std::vector<std::string_view> SplitArguments(std::string_view text, std::size_t* length = nullptr);

// "(8, s0)" → `[8, "s0"]`; "" if it is not a tuple or list.
std::string ShapeJson(std::string_view tuple);

// Views into the code.
struct TensorInfo {
  std::string_view shape;  // "(8, 16)"
  std::string_view dtype;  // "float32"
};

class CodeTensors {
 public:
  // A line of the wrapper, trimmed: an allocation, an alias ("buf4 = buf0; del buf0  # reuse") or
  // an assertion.
  void Note(std::string_view line);
  // A variable, or "reinterpret_tensor(buf0, (8, 2), (2, 1), 0)".
  TensorInfo Of(std::string_view expression) const;

 private:
  void NoteAssignment(std::string_view name, std::string_view value);
  std::unordered_map<std::string_view, TensorInfo> tensors_;
};

}  // namespace tlparse

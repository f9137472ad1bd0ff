// The `components` of a cache lookup's payload: a list of lines, one for each part of the key.
#pragma once

#include <simdjson.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "artifacts/common/cache/component_line.h"

namespace tlparse {

// Reads the components of one payload into views; joined lines are owned here.
class ComponentLines {
 public:
  // False: something in the list is not a component.
  bool Read(const simdjson::dom::array& lines);
  const std::vector<Component>& components() const { return components_; }

 private:
  std::vector<Component> components_;
  std::deque<std::string> joined_;
  bool last_is_joined_ = false;

  void Continue(std::string_view line);
};

}  // namespace tlparse

#include "artifacts/common/cache/component_lines.h"

#include <optional>

#include "store/hash128.h"

namespace tlparse {

void ComponentLines::Continue(std::string_view line) {
  Component& last = components_.back();
  if (!last_is_joined_) joined_.emplace_back(last.value);
  last_is_joined_ = true;
  joined_.back() += '\n';
  joined_.back() += line;
  last.value = joined_.back();
}

bool ComponentLines::Read(const simdjson::dom::array& lines) {
  components_.clear();
  joined_.clear();
  last_is_joined_ = false;
  components_.reserve(lines.size());
  bool is_hashed = true;
  bool is_complete = true;
  for (const simdjson::dom::element& element : lines) {
    std::string_view line;
    if (element.get(line) != simdjson::SUCCESS) {
      is_complete = false;
      continue;
    }
    std::optional<Component> component = ParseComponent(line, is_hashed);
    if (!component && components_.empty()) {
      component = ParseComponent(line, false);
      if (component) is_hashed = false;
    }
    if (component) {
      components_.push_back(*component);
      last_is_joined_ = false;
    } else if (!components_.empty()) {
      Continue(line);
    } else {
      is_complete = false;
    }
  }
  if (is_hashed) return is_complete;
  for (Component& component : components_)
    component.hash = joined_.emplace_back(ToHex(HashBytes(component.value)));
  return is_complete;
}

}  // namespace tlparse

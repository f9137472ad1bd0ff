// State that a family keeps with a process, a compile or a graph while its records are read.
#pragma once

#include <memory>
#include <vector>

namespace tlparse {

// Holds at most one object of each type. A copy shares the objects until one of the two changes
// them.
class FamilyStates {
 public:
  // nullptr: not made yet.
  template <typename T>
  const T* Find() const {
    for (const State& state : states_)
      if (state.type == &kType<T>) return static_cast<const T*>(state.object.get());
    return nullptr;
  }
  // Made at the first call.
  template <typename T>
  T& Get() {
    for (State& state : states_) {
      if (state.type != &kType<T>) continue;
      if (state.object.use_count() > 1)
        state.object = std::make_shared<T>(*static_cast<const T*>(state.object.get()));
      return *static_cast<T*>(state.object.get());
    }
    states_.push_back({&kType<T>, std::make_shared<T>()});
    return *static_cast<T*>(states_.back().object.get());
  }
  template <typename T>
  void Drop() {
    std::erase_if(states_, [](const State& state) { return state.type == &kType<T>; });
  }
  void Clear() { states_.clear(); }

 private:
  // Its address identifies the type.
  template <typename T>
  static inline const char kType = 0;
  struct State {
    const char* type;
    std::shared_ptr<void> object;
  };
  std::vector<State> states_;
};

}  // namespace tlparse

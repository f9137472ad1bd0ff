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
    for (const Slot& slot : slots_)
      if (slot.type == &kType<T>) return static_cast<const T*>(slot.object.get());
    return nullptr;
  }
  // Made at the first call.
  template <typename T>
  T& Get() {
    for (Slot& slot : slots_) {
      if (slot.type != &kType<T>) continue;
      if (slot.object.use_count() > 1)
        slot.object = std::make_shared<T>(*static_cast<const T*>(slot.object.get()));
      return *static_cast<T*>(slot.object.get());
    }
    slots_.push_back({&kType<T>, std::make_shared<T>()});
    return *static_cast<T*>(slots_.back().object.get());
  }
  template <typename T>
  void Drop() {
    std::erase_if(slots_, [](const Slot& slot) { return slot.type == &kType<T>; });
  }
  void Clear() { slots_.clear(); }

 private:
  // Its address identifies the type.
  template <typename T>
  static inline const char kType = 0;
  struct Slot {
    const char* type;
    std::shared_ptr<void> object;
  };
  std::vector<Slot> slots_;
};

}  // namespace tlparse

// FunctionRef: a callable passed by reference for the length of one call.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

template <class Signature>
class FunctionRef;

// Two words, never allocates. Refers to the callable: valid as long as that lives, which for a
// function parameter means until the call returns. Default constructed = empty, tests false.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  FunctionRef() = default;
  FunctionRef(std::nullptr_t) {}

  // Implicit, so that a lambda can be passed.
  template <class F,
            class = std::enable_if_t<
                !std::is_same_v<std::remove_cv_t<std::remove_reference_t<F>>, FunctionRef> &&
                std::is_invocable_r_v<R, F&, Args...>>>
  FunctionRef(F&& function) {
    if constexpr (std::is_function_v<std::remove_reference_t<F>>) {
      object_ = reinterpret_cast<void*>(std::addressof(function));
      call_ = [](void* object, Args... args) -> R {
        return static_cast<R>(
            reinterpret_cast<std::add_pointer_t<F>>(object)(std::forward<Args>(args)...));
      };
    } else {
      object_ = const_cast<void*>(static_cast<const void*>(std::addressof(function)));
      call_ = [](void* object, Args... args) -> R {
        return static_cast<R>(
            (*static_cast<std::add_pointer_t<F>>(object))(std::forward<Args>(args)...));
      };
    }
  }

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }
  explicit operator bool() const { return call_ != nullptr; }

 private:
  void* object_ = nullptr;
  R (*call_)(void*, Args...) = nullptr;
};

}  // namespace LIBTRACE_EXPORT

// ArrayView: a view of elements that it does not own. std::span for programs in C++17.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>

namespace libtrace {

// Pointer and size. Made from anything with data() and size() (vector, array, span), from an array,
// or from a braced list; valid as long as that lives.
template <class T>
class ArrayView {
 public:
  constexpr ArrayView() noexcept = default;
  constexpr ArrayView(const T* data, std::size_t size) noexcept : data_(data), size_(size) {}
  constexpr ArrayView(std::initializer_list<T> list) noexcept
      : data_(list.begin()), size_(list.size()) {}
  template <std::size_t N>
  constexpr ArrayView(const T (&array)[N]) noexcept : data_(array), size_(N) {}
  template <class Container, class = std::enable_if_t<std::is_convertible_v<
                                 decltype(std::declval<const Container&>().data()), const T*>>>
  constexpr ArrayView(const Container& container) noexcept
      : data_(container.data()), size_(container.size()) {}

  constexpr const T* data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr const T* begin() const noexcept { return data_; }
  constexpr const T* end() const noexcept { return data_ + size_; }
  constexpr const T& operator[](std::size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace libtrace

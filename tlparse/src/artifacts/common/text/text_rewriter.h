// Rewrites a text at places that are found by two neighbouring bytes (normalize.cc): one pass at
// memory speed if there are none, and nothing is copied before the first change.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "base/plain_bytes.h"

namespace tlparse {

// Calls hit(position) for each occurrence of one of `pairs`, in order; hit returns where to
// continue (at least position + 1).
template <std::size_t N, typename Hit>
void ScanPairs(std::string_view text, const std::array<BytePair, N>& pairs, Hit&& hit) {
  std::size_t at = 0;
  std::size_t resume = 0;
  const PairScanner<N> scanner(pairs);
  for (; at + kBlockBytes + 1 <= text.size(); at += kBlockBytes) {
    for (unsigned mask = scanner.Find(text.data() + at); mask != 0; mask &= mask - 1) {
      const std::size_t position = at + static_cast<std::size_t>(std::countr_zero(mask));
      if (position >= resume) resume = hit(position);
    }
  }
  for (; at + 1 < text.size(); ++at) {
    if (at >= resume && IsOneOf(pairs, text[at], text[at + 1])) resume = hit(at);
  }
}

// The text with some stretches replaced; copies nothing before the first replacement.
class TextRewriter {
 public:
  TextRewriter(std::string_view text, std::string& buffer) : text_(text), buffer_(buffer) {
    buffer_.clear();
  }

  // Stretches are given in ascending order and do not overlap (one that begins before the end of
  // the last is cut).
  void Replace(std::size_t begin, std::size_t end, std::string_view with) {
    begin = std::max(begin, copied_);
    if (end < begin) return;
    if (!is_changed_) buffer_.reserve(text_.size() + 64);
    is_changed_ = true;
    buffer_.append(text_, copied_, begin - copied_);
    buffer_.append(with);
    copied_ = end;
  }
  std::size_t copied() const { return copied_; }
  std::string_view Finish() {
    if (!is_changed_) return text_;
    buffer_.append(text_, copied_);
    return buffer_;
  }

 private:
  std::string_view text_;
  std::string& buffer_;
  std::size_t copied_ = 0;
  bool is_changed_ = false;
};

// The end of the digits that begin at `at`.
inline std::size_t DigitsEnd(std::string_view text, std::size_t at) {
  while (at < text.size() && IsDigit(text[at])) ++at;
  return at;
}
inline bool EndsWithAt(std::string_view text, std::size_t end, std::string_view suffix) {
  return end >= suffix.size() && text.substr(end - suffix.size(), suffix.size()) == suffix;
}
inline bool StartsWithAt(std::string_view text, std::size_t at, std::string_view prefix) {
  return at <= text.size() && text.substr(at, prefix.size()) == prefix;
}

}  // namespace tlparse

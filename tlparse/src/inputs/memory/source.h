// The bytes of a snapshot as a stream with a look-ahead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace tlparse::memory {

class StreamSource {
 public:
  // Fills up to `capacity` bytes; 0: the end.
  using Read = std::function<Result<std::size_t>(char* buffer, std::size_t capacity)>;
  explicit StreamSource(Read read) : read_(std::move(read)) {}

  bool IsAtEnd() { return begin_ == end_ && !Fetch(1); }
  std::int64_t at() const { return passed_ + static_cast<std::int64_t>(begin_); }
  unsigned char Next() { return static_cast<unsigned char>(buffer_[begin_++]); }
  unsigned char Peek() const { return static_cast<unsigned char>(buffer_[begin_]); }

  // The next bytes, at most `size`, which are not taken.
  std::string_view Ahead(std::size_t size) {
    Fetch(size);
    return {buffer_.get() + begin_, std::min(size, end_ - begin_)};
  }
  // Of more than kMostText bytes the first; the others are passed over. The view lives until the
  // next call.
  std::optional<std::string_view> Take(std::uint64_t size) {
    const auto kept = static_cast<std::size_t>(std::min<std::uint64_t>(size, kMostText));
    if (end_ - begin_ < kept && !Fetch(kept)) return std::nullopt;
    const std::string_view taken(buffer_.get() + begin_, kept);
    begin_ += kept;
    if (size == kept) return taken;
    long_text_ = taken;
    for (std::uint64_t left = size - kept; left > 0;) {
      if (IsAtEnd()) return std::nullopt;
      const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(left, end_ - begin_));
      begin_ += step;
      left -= step;
    }
    return std::string_view(long_text_);
  }
  std::optional<std::string_view> TakeLine() {
    long_text_.clear();
    while (true) {
      if (IsAtEnd()) return std::nullopt;
      const char* const from = buffer_.get() + begin_;
      const void* const found = std::memchr(from, '\n', end_ - begin_);
      const std::size_t size =
          found == nullptr ? end_ - begin_
                           : static_cast<std::size_t>(static_cast<const char*>(found) - from);
      long_text_.append(from, std::min(size, kMostText - std::min(kMostText, long_text_.size())));
      begin_ += size;
      if (found == nullptr) continue;
      ++begin_;
      return std::string_view(long_text_);
    }
  }
  bool EndsWithStop() const { return end_ > 0 && buffer_[end_ - 1] == '.'; }
  // The last bytes that were read, for messages.
  std::string_view Latest() const {
    const std::size_t from = begin_ < 32 ? 0 : begin_ - 32;
    return {buffer_.get() + from, std::min<std::size_t>(end_ - from, 64)};
  }
  // Reads what is left, for the file's hash.
  void PassOver() {
    do {
      begin_ = end_;
    } while (Fetch(1));
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  static constexpr std::size_t kMostText = std::size_t{1} << 20;
  static constexpr std::size_t kCapacity = kMostText + (std::size_t{1} << 20);

  // Until `size` bytes (at most kMostText) lie in the buffer.
  bool Fetch(std::size_t size) {
    if (kCapacity - begin_ < size) {
      std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
      passed_ += static_cast<std::int64_t>(begin_);
      end_ -= begin_;
      begin_ = 0;
    } else if (begin_ == end_) {
      passed_ += static_cast<std::int64_t>(begin_);
      begin_ = end_ = 0;
    }
    while (end_ - begin_ < size && !is_ended_) {
      const Result<std::size_t> count = read_(buffer_.get() + end_, kCapacity - end_);
      if (!count) error_ = count.error();
      if (!count || *count == 0) {
        is_ended_ = true;
        break;
      }
      end_ += *count;
    }
    return end_ - begin_ >= size;
  }

  Read read_;
  std::unique_ptr<char[]> buffer_ = std::make_unique<char[]>(kCapacity);
  std::size_t begin_ = 0, end_ = 0;
  std::int64_t passed_ = 0;  // bytes before the buffer
  bool is_ended_ = false;
  std::string long_text_;
  std::optional<Error> error_;
};

}  // namespace tlparse::memory

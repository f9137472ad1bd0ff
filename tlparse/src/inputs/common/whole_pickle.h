// The bytes of a pickle that is in memory, for PickleMachine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tlparse {

class WholePickle {
 public:
  explicit WholePickle(std::string_view bytes) : bytes_(bytes) {}
  bool IsAtEnd() const { return at_ == bytes_.size(); }
  std::int64_t at() const { return static_cast<std::int64_t>(at_); }
  unsigned char Next() { return static_cast<unsigned char>(bytes_[at_++]); }
  std::optional<std::string_view> Take(std::uint64_t size) {
    if (size > bytes_.size() - at_) return std::nullopt;
    const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(size));
    at_ += taken.size();
    return taken;
  }
  std::optional<std::string_view> TakeLine() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }
  bool EndsWithStop() const { return bytes_.ends_with('.'); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace tlparse

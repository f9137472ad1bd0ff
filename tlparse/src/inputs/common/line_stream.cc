#include "inputs/common/line_stream.h"

namespace tlparse {

// More bytes; false at the end.
Result<bool> LineStream::Fill() {
  constexpr std::size_t kBytes = std::size_t{256} << 10;
  if (is_ended_) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kBytes);
  ASSIGN_OR_RETURN(const std::size_t count, context_.Read(buffer_.data() + before, kBytes));
  buffer_.resize(before + count);
  is_ended_ = count == 0;
  return !is_ended_;
}

Result<std::optional<LineStream::Line>> LineStream::Next() {
  Line line;
  line.number = ++number_;
  line.byte_offset = offset_;
  std::size_t searched = 0;
  while (true) {
    const std::size_t end = buffer_.find('\n', at_ + searched);
    if (end != buffer_.npos) {
      line.text = std::string_view(buffer_).substr(at_, end - at_);
      line.is_terminated = true;
      offset_ += static_cast<std::int64_t>(end + 1 - at_);
      at_ = end + 1;
      break;
    }
    searched = buffer_.size() - at_;
    if (searched > most_bytes_) {
      // Drops what has been read of the line, and continues to its end.
      line.is_too_long = true;
      offset_ += static_cast<std::int64_t>(searched);
      at_ = buffer_.size();
      searched = 0;
    }
    ASSIGN_OR_RETURN(const bool has_more, Fill());
    if (has_more) continue;
    if (at_ == buffer_.size() && !line.is_too_long) return std::optional<Line>();
    line.text = std::string_view(buffer_).substr(at_);
    offset_ += static_cast<std::int64_t>(line.text.size());
    at_ = buffer_.size();
    break;
  }
  if (line.is_too_long) line.text = {};
  if (line.text.ends_with('\r')) line.text.remove_suffix(1);
  return std::optional(line);
}

}  // namespace tlparse

#include "inputs/kineto/event_scanner.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/ascii.h"
#include "base/json_string.h"

namespace tlparse {
namespace {

constexpr std::size_t kWindowBytes = std::size_t{1} << 20;

enum class Class : std::uint8_t { kOther, kQuote, kOpen, kClose };

constexpr std::array<Class, 256> MakeClasses() {
  std::array<Class, 256> classes{};
  classes['"'] = Class::kQuote;
  classes['{'] = classes['['] = Class::kOpen;
  classes['}'] = classes[']'] = Class::kClose;
  return classes;
}
constexpr std::array<Class, 256> kClasses = MakeClasses();

bool EndsScalar(char c) { return c == ',' || c == '}' || c == ']' || IsJsonSpace(c); }

// Behind the value at `at`; nullptr: not in the buffer. Brackets are counted, not matched: an event
// with wrong ones fails when it is parsed.
const char* EndOfValue(const char* at, const char* end, bool is_at_end) {
  if (at == end) return nullptr;
  if (*at == '"') return EndOfJsonString(at + 1, end);
  if (*at != '{' && *at != '[') {
    while (at < end && !EndsScalar(*at)) ++at;
    return at < end || is_at_end ? at : nullptr;
  }
  int depth = 0;
  while (at < end) {
    switch (kClasses[static_cast<unsigned char>(*at++)]) {
      case Class::kOther:
        break;
      case Class::kQuote:
        at = EndOfJsonString(at, end);
        if (at == nullptr) return nullptr;
        break;
      case Class::kOpen:
        ++depth;
        break;
      case Class::kClose:
        if (--depth == 0) return at;
        break;
    }
  }
  return nullptr;
}

}  // namespace

Result<bool> EventScanner::Fill() {
  if (is_at_end_) return false;
  if (position_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + position_, size_ - position_);
    buffer_offset_ += static_cast<std::int64_t>(position_);
    size_ -= position_;
    position_ = 0;
  }
  // The buffer doubles, so that scanning a long value again costs little.
  const std::size_t wanted = size_ + std::max(kWindowBytes, size_);
  if (buffer_.size() < wanted + kPadding) buffer_.resize(wanted + kPadding);
  while (size_ < wanted) {
    ASSIGN_OR_RETURN(const std::size_t count, source_(buffer_.data() + size_, wanted - size_));
    if (count == 0) {
      is_at_end_ = true;
      break;
    }
    size_ += count;
  }
  return true;
}

Result<char> EventScanner::Peek() {
  while (true) {
    while (position_ < size_ && IsJsonSpace(buffer_[position_])) ++position_;
    if (position_ < size_) return buffer_[position_];
    ASSIGN_OR_RETURN(const bool has_more, Fill());
    if (!has_more) return '\0';
  }
}

EventScanner::Item EventScanner::End(Item::Kind kind) {
  state_ = State::kDone;
  latest_ = position_;
  latest_kind_ = kind;
  Item item;
  item.kind = kind;
  item.byte_offset = buffer_offset_ + static_cast<std::int64_t>(position_);
  constexpr std::size_t kShown = 200;
  if (position_ < size_)
    item.value = {buffer_.data() + position_, std::min(kShown, size_ - position_)};
  return item;
}

Result<void> EventScanner::SkipLarge(Item& item) {
  item.kind = Item::Kind::kTooLarge;
  item.value = {};
  int depth = 0;
  bool is_in_string = false;
  bool is_escaped = false;
  while (true) {
    for (; position_ < size_; ++position_) {
      const char c = buffer_[position_];
      if (is_in_string) {
        if (is_escaped) {
          is_escaped = false;
        } else if (c == '\\') {
          is_escaped = true;
        } else if (c == '"') {
          is_in_string = false;
          if (depth == 0) return ++position_, Result<void>();
        }
        continue;
      }
      const Class what = kClasses[static_cast<unsigned char>(c)];
      if (what == Class::kQuote) is_in_string = true;
      if (what == Class::kOpen) ++depth;
      if (what == Class::kClose && --depth <= 0) return ++position_, Result<void>();
    }
    ASSIGN_OR_RETURN(const bool has_more, Fill());
    if (!has_more) {
      item.kind = Item::Kind::kCut;
      state_ = State::kDone;
      return {};
    }
  }
}

Result<void> EventScanner::TakeValue(Item& item, Item::Kind kind) {
  item.kind = kind;
  item.byte_offset = buffer_offset_ + static_cast<std::int64_t>(position_);
  while (true) {
    const char* const begin = buffer_.data() + position_;
    const char* const end = EndOfValue(begin, buffer_.data() + size_, is_at_end_);
    latest_ = position_;
    latest_kind_ = kind;
    if (end != nullptr) {
      item.value = {begin, static_cast<std::size_t>(end - begin)};
      position_ += item.value.size();
      if (item.value.size() > kMostBytes) {
        item.kind = Item::Kind::kTooLarge;
        item.value = {};
      }
      return {};
    }
    if (size_ - position_ > kMostBytes) {
      // A quote or bracket that is missing makes the rest of the file one event.
      const std::size_t next = kind == Item::Kind::kEvent ? FindEvent(position_ + 1) : size_;
      if (next == size_) return SkipLarge(item);
      item.value = {begin, next - position_};
      recovered_bytes_ += size_ - position_;
      position_ = next;
      return {};
    }
    ASSIGN_OR_RETURN(const bool has_more, Fill());
    if (!has_more) {
      item = End(Item::Kind::kCut);
      return {};
    }
  }
}

std::size_t EventScanner::FindEvent(std::size_t from) const {
  constexpr std::string_view kFirst = "\"ph\"";
  const std::string_view text(buffer_.data(), size_);
  for (std::size_t at = text.find(kFirst, from); at != text.npos; at = text.find(kFirst, at + 1)) {
    std::size_t open = at;
    while (open > from && IsJsonSpace(text[open - 1])) --open;
    if (open > from && text[open - 1] == '{') return open - 1;
  }
  return size_;
}

Result<bool> EventScanner::Recover() {
  constexpr std::size_t kMostRecovered = std::size_t{1} << 30;
  const bool is_event = latest_kind_ == Item::Kind::kEvent;
  recovered_bytes_ += (is_event ? position_ : size_) - latest_;
  if (!has_list_ || recovered_bytes_ > kMostRecovered) {
    state_ = State::kDone;
    return false;
  }
  if (is_event) {
    const std::size_t next = FindEvent(latest_ + 1);
    if (next < position_) position_ = next;
    return true;
  }
  position_ = std::min(latest_ + 1, size_);
  while (true) {
    const std::size_t next = FindEvent(position_);
    if (next < size_) {
      position_ = next;
      state_ = State::kInEvents;
      return true;
    }
    // The beginning of an event may be at the end of the buffer.
    constexpr std::size_t kKept = 256;
    if (size_ - position_ > kKept) position_ = size_ - kKept;
    ASSIGN_OR_RETURN(const bool has_more, Fill());
    if (!has_more) return false;
  }
}

Result<bool> EventScanner::Begin(bool& is_empty) {
  ASSIGN_OR_RETURN(char c, Peek());
  if (c == '\xEF') {
    position_ += std::min<std::size_t>(3, size_ - position_);
    ASSIGN_OR_RETURN(c, Peek());
  }
  is_empty = c == '\0';
  if (c != '{' && c != '[') return false;
  is_list_ = c == '[';
  has_list_ = is_list_;
  state_ = is_list_ ? State::kInEvents : State::kInObject;
  ++position_;
  return true;
}

Result<EventScanner::Item> EventScanner::NextMember(Item item) {
  RETURN_IF_ERROR(TakeValue(item, Item::Kind::kMember));
  if (item.kind != Item::Kind::kMember) return item;
  const std::string key(item.value.substr(1, item.value.size() - 2));
  ASSIGN_OR_RETURN(const char colon, Peek());
  if (colon == '\0') return End(Item::Kind::kCut);
  if (colon != ':') return Damaged();
  ++position_;
  ASSIGN_OR_RETURN(const char first, Peek());
  if (first == '\0') return End(Item::Kind::kCut);
  if (key == "traceEvents" && first == '[') {
    ++position_;
    has_list_ = true;
    state_ = State::kInEvents;
    return item;
  }
  if (EndsScalar(first) || first == ':') return Damaged();
  RETURN_IF_ERROR(TakeValue(item, Item::Kind::kMember));
  key_ = key;
  item.key = key_;
  return item;
}

Result<EventScanner::Item> EventScanner::Next() {
  Item item;
  if (state_ == State::kStart) {
    bool is_empty = false;
    ASSIGN_OR_RETURN(const bool has_begun, Begin(is_empty));
    if (is_empty) return End(Item::Kind::kEnd);
    if (!has_begun) return Damaged();
  }
  while (state_ == State::kInObject || state_ == State::kInEvents) {
    ASSIGN_OR_RETURN(const char c, Peek());
    if (c == '\0') return End(Item::Kind::kCut);
    if (c == ',') {
      item.follows_comma = true;
      ++position_;
      continue;
    }
    if (state_ == State::kInEvents) {
      if (c == ']') {
        ++position_;
        state_ = is_list_ ? State::kDone : State::kInObject;
        continue;
      }
      if (EndsScalar(c) || c == ':') return Damaged();
      RETURN_IF_ERROR(TakeValue(item, Item::Kind::kEvent));
      return item;
    }
    if (c == '}') {
      ++position_;
      state_ = State::kDone;
      break;
    }
    if (c != '"') return Damaged();
    ASSIGN_OR_RETURN(const Item member, NextMember(item));
    if (state_ != State::kInEvents) return member;
  }
  return End(Item::Kind::kEnd);
}

}  // namespace tlparse

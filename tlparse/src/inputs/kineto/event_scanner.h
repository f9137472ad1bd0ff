// Splits a Chrome trace into its parts while it is read: the members of the object, and the events
// of `traceEvents` one by one, wherever that member is. Memory is a window of the file, regardless
// of its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tlparse {

class EventScanner {
 public:
  // Fills up to `capacity` bytes; 0: the end.
  using Source = std::function<Result<std::size_t>(char* buffer, std::size_t capacity)>;
  explicit EventScanner(Source source) : source_(std::move(source)) {}

  struct Item {
    enum class Kind : std::uint8_t {
      kMember,    // of the object: key and value
      kEvent,     // of traceEvents (or of the list, if that is all there is): value
      kTooLarge,  // an event or member above kMostBytes was left out
      kCut,       // the file ends inside its value; nothing follows but kEnd
      kDamaged,   // not JSON at byte_offset; nothing follows but kEnd
      kEnd,
    };
    Kind kind = Kind::kEnd;
    std::string_view key;    // without quotes, as in the file (escapes and all)
    std::string_view value;  // as in the file; kPadding readable bytes follow it
    std::int64_t byte_offset = 0;
    bool follows_comma = false;
  };
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;
  static constexpr std::size_t kPadding = 64;

  // The next part; its views live until the next call.
  Result<Item> Next();
  // Call it if the latest item was kCut, kDamaged, or a kEvent that is not valid JSON. The scanner then continues at the next
  // beginning of an event, {"ph", after the first byte of that item:
  //
  //   {"ph": "X", "name": "a {"ph": "X", "name": "b"}, {"ph": "X", "name": "c"}
  //   ^ the damaged kEvent    ^ the next one
  //
  // A kEvent is searched only up to its own end; if no event begins inside it, the next item is the one after it. False: no
  // event follows, or more than 1 GiB were read twice by such searches; Next then returns kEnd.
  Result<bool> Recover();
  // Whether a list of events has begun so far.
  bool has_list() const { return has_list_; }

 private:
  enum class State : std::uint8_t { kStart, kInObject, kInEvents, kDone };

  // Makes more bytes available; false: there are none.
  Result<bool> Fill();
  // The next byte that is not white space, without consuming it; '\0' at the end.
  Result<char> Peek();
  // Skips the byte-order mark and the opening bracket of the document. False: there is none.
  Result<bool> Begin(bool& is_empty);
  // A member of the document's object, from its opening quote on. The list of "traceEvents" is not
  // taken as a value: state_ is then kInEvents.
  Result<Item> NextMember(Item item);
  // Takes the value that begins at position_ into item.value.
  Result<void> TakeValue(Item& item, Item::Kind kind);
  // Skips a value that is too large for the buffer.
  Result<void> SkipLarge(Item& item);
  Item End(Item::Kind kind);
  Item Damaged() { return End(Item::Kind::kDamaged); }
  // Where the next event begins in buffer_, at `from` or after it; size_: none begins there.
  std::size_t FindEvent(std::size_t from) const;

  Source source_;
  std::vector<char> buffer_;
  std::size_t position_ = 0;        // of the next byte in buffer_
  std::size_t size_ = 0;            // bytes in buffer_
  std::int64_t buffer_offset_ = 0;  // of buffer_ in the file
  bool is_at_end_ = false;
  State state_ = State::kStart;
  bool is_list_ = false;  // the events are the whole file
  bool has_list_ = false;
  std::string key_;  // of the latest member
  // The latest item: its first byte in buffer_, and its kind.
  std::size_t latest_ = 0;
  Item::Kind latest_kind_ = Item::Kind::kEnd;
  std::size_t recovered_bytes_ = 0;  // read again after damage
};

}  // namespace tlparse

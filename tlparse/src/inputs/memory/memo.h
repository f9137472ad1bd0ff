// The values of a snapshot, and those that its pickle may refer to again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tlparse::memory {

// A value: a number, or an index into what Values holds.
struct Node {
  enum class Tag : std::uint8_t {
    kNull,
    kBool,
    kInt,
    kBigInt,
    kReal,
    kText,
    kList,
    kDict,
    kFrame,
    kStack,  // number: stack_frame.id; 0: an empty list
    kDone    // number: how many values were handed on
  };
  Tag tag = Tag::kNull;
  std::uint32_t index = 0;
  union {
    std::int64_t number;
    double real;
  };
  Node() : number(0) {}
  Node(Tag tag_, std::uint32_t index_, std::int64_t number_)
      : tag(tag_), index(index_), number(number_) {}
};

// Values by slot: four bytes each, less where most were handed on. Numbers are not remembered, since
// writers do not refer to them.
class Memo {
 public:
  std::size_t size() const { return size_; }
  void Set(std::size_t slot, const Node& node);
  // Of a slot that was set.
  void Replace(std::size_t slot, const Node& node);
  // Nothing: it was never set.
  std::optional<Node> Get(std::uint64_t slot);

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 18;
  // All values, or, of an older chunk, those that were not handed on.
  struct Chunk {
    std::unique_ptr<std::uint32_t[]> all;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> some;  // index and value, ascending
  };
  static void Compress(Chunk& chunk);
  static std::uint32_t* SlotIn(Chunk& chunk, std::size_t index);

  std::vector<Chunk> chunks_;
  std::size_t size_ = 0;
};

}  // namespace tlparse::memory

#include "inputs/memory/memo.h"

#include <algorithm>

namespace tlparse::memory {
namespace {

using Tag = Node::Tag;

// What is remembered of a value: 3 bits say what it is, 29 are its index.
enum class Kept : std::uint32_t { kNull, kText, kList, kDict, kFrame, kStack, kDone };
constexpr std::uint32_t kIndexBits = 29;
constexpr std::uint32_t kMostIndex = (std::uint32_t{1} << kIndexBits) - 1;
constexpr std::uint32_t kNotRemembered = ~std::uint32_t{0};

std::uint32_t Pack(const Node& node) {
  const auto pack = [](Kept kept, std::int64_t index) {
    if (index < 0 || index > kMostIndex) return std::uint32_t{0};
    return static_cast<std::uint32_t>(kept) << kIndexBits | static_cast<std::uint32_t>(index);
  };
  switch (node.tag) {
    case Tag::kText:
      return pack(Kept::kText, node.index);
    case Tag::kList:
      return pack(Kept::kList, node.index);
    case Tag::kDict:
      return pack(Kept::kDict, node.index);
    case Tag::kFrame:
      return pack(Kept::kFrame, node.index);
    case Tag::kStack:
      return pack(Kept::kStack, node.number);
    case Tag::kDone:
      return pack(Kept::kDone, 0);
    default:
      return 0;  // writers remember no numbers
  }
}

Node Unpack(std::uint32_t packed) {
  const std::uint32_t index = packed & kMostIndex;
  switch (static_cast<Kept>(packed >> kIndexBits)) {
    case Kept::kText:
      return {Tag::kText, index, 0};
    case Kept::kList:
      return {Tag::kList, index, 0};
    case Kept::kDict:
      return {Tag::kDict, index, 0};
    case Kept::kFrame:
      return {Tag::kFrame, index, 0};
    case Kept::kStack:
      return {Tag::kStack, 0, index};
    case Kept::kDone:
      return {Tag::kDone, 0, 0};
    case Kept::kNull:
      break;
  }
  return {};
}

}  // namespace

void Memo::Compress(Chunk& chunk) {
  const std::uint32_t done = Pack(Node(Tag::kDone, 0, 0));
  const std::uint32_t* const all = chunk.all.get();
  const auto others = static_cast<std::size_t>(
      std::count_if(all, all + kChunk, [&](std::uint32_t one) { return one != done; }));
  if (others > kChunk / 4) return;
  chunk.some.reserve(others);
  for (std::uint32_t i = 0; i < kChunk; ++i) {
    if (all[i] != done) chunk.some.emplace_back(i, all[i]);
  }
  chunk.all.reset();
}

// nullptr: it was handed on.
std::uint32_t* Memo::SlotIn(Chunk& chunk, std::size_t index) {
  if (chunk.all) return &chunk.all[index];
  const auto found = std::lower_bound(
      chunk.some.begin(), chunk.some.end(),
      std::pair<std::uint32_t, std::uint32_t>(static_cast<std::uint32_t>(index), 0));
  return found == chunk.some.end() || found->first != index ? nullptr : &found->second;
}

void Memo::Replace(std::size_t slot, const Node& node) {
  if (std::uint32_t* const kept = SlotIn(chunks_[slot / kChunk], slot % kChunk)) *kept = Pack(node);
}

void Memo::Set(std::size_t slot, const Node& node) {
  while (slot / kChunk >= chunks_.size()) {
    if (chunks_.size() > 1 && chunks_[chunks_.size() - 2].all)
      Compress(chunks_[chunks_.size() - 2]);
    chunks_.push_back({std::make_unique<std::uint32_t[]>(kChunk), {}});
    std::fill_n(chunks_.back().all.get(), kChunk, kNotRemembered);
  }
  size_ = std::max(size_, slot + 1);
  Replace(slot, node);
}

std::optional<Node> Memo::Get(std::uint64_t slot) {
  if (slot >= size_) return std::nullopt;
  const std::uint32_t* const kept = SlotIn(chunks_[slot / kChunk], slot % kChunk);
  if (kept == nullptr) return Node(Tag::kDone, 0, 0);
  if (*kept == kNotRemembered) return std::nullopt;
  return Unpack(*kept);
}

}  // namespace tlparse::memory

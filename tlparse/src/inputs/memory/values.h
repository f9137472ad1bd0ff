// The values of a snapshot while it is read: what is whole (a frame, a stack, an event, a block, a segment) is handed on at
// once and takes a few bytes from then on, so that the memory does not depend on the number of events. For
// ValueStack (value_stack.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "inputs/common/plain_value.h"
#include "inputs/common/value_stack.h"
#include "inputs/memory/memo.h"
#include "store/hash128.h"

namespace tlparse::memory {

// Members that are known.
enum class Key : std::uint8_t {
  kOther,
  kAction,
  kActiveSize,
  kAddr,
  kAddress,
  kAllocatedSize,
  kBlocks,
  kCompileContext,
  kDevice,
  kDeviceFree,
  kFilename,
  kFrames,
  kIsExpandable,
  kLine,
  kName,
  kRequestedSize,
  kSegmentPoolId,
  kSegmentType,
  kSize,
  kStage,
  kState,
  kStream,
  kTimeUs,
  kTotalSize,
  kCount
};

struct FrameOfSnapshot {
  std::uint32_t file, function;  // texts
  std::int64_t line;
  bool operator==(const FrameOfSnapshot&) const = default;
};

class Values;

// A dict that is whole, by its members.
class Members {
 public:
  Members(const Values& values, const std::vector<Node>& nodes);
  bool Has(Key key) const { return known_[static_cast<std::size_t>(key)] != nullptr; }
  std::optional<std::int64_t> Int(Key key) const;
  std::string_view Text(Key key) const;  // empty: none
  // stack_frame.id of the member frames; 0: none
  std::int64_t Stack() const;
  // Those that no Key names, as JSON; nothing if there is none.
  std::optional<std::string> Others() const;

 private:
  const Values& values_;
  const std::vector<Node>& nodes_;
  const Node* known_[static_cast<std::size_t>(Key::kCount)] = {};
};

// Takes what is whole.
class Sink {
 public:
  virtual ~Sink() = default;
  // `member` and `list_index`: where the list of events stands: device_traces, 0; host_traces.
  virtual void Event(const Members& event, std::string_view member,
                     std::optional<std::int64_t> list_index) = 0;
  virtual void Block(const Members& block) = 0;
  // After its blocks.
  virtual void Segment(const Members& segment) = 0;
  virtual void Annotation(const Members& annotation) = 0;
  // One of host_segments.
  virtual void HostSegment() = 0;
  // A stack from its outermost frame on; returns stack_frame.id.
  virtual std::int64_t Stack(const std::vector<FrameOfSnapshot>& frames) = 0;
};

class Values {
 public:
  using Node = memory::Node;
  using Type = PlainValue::Type;
  using Place = PlaceOfValue<Node>;

  explicit Values(Sink& sink) : sink_(sink) {}

  bool IsFull() const;
  Type TypeOf(const Node& node) const;
  std::size_t SizeOf(const Node& node) const;
  Node NewNull() { return {}; }
  Node NewBool(bool value) { return {Node::Tag::kBool, 0, value ? 1 : 0}; }
  Node NewInt(std::int64_t value) { return {Node::Tag::kInt, 0, value}; }
  Node NewBigInt() { return {Node::Tag::kBigInt, 0, 0}; }
  Node NewReal(double value);
  Node NewText(std::string_view text);
  Node NewContainer(Type type);
  void Append(const Node& container, const Node& child, const Place& place);
  // It is not handed on.
  void MarkCut(const Node& container) { containers_[container.index].is_cut = true; }
  void Filled(std::vector<Node>& stack, std::size_t floor, const Place& place);
  void Remember(std::size_t slot, const Node& node);
  std::optional<Node> Recall(std::uint64_t slot);
  std::size_t remembered() const { return memo_.size(); }

  std::string_view TextAt(std::uint32_t index) const { return texts_[index]; }
  Key KeyAt(std::uint32_t text) const { return keys_[text]; }
  const FrameOfSnapshot& FrameAt(std::uint32_t index) const { return frames_[index]; }
  // As JSON; false: it is nested too deep or too long.
  bool AppendJson(const Node& node, std::string& out, int levels = 8) const;
  // A member of a dict that is no longer needed otherwise.
  std::optional<Node> Member(const Node& dict, std::string_view name) const;

 private:
  struct Container {
    std::vector<Node> members;  // of a dict key, value, key, value …
    std::uint32_t slot = kNoSlot;
    bool is_shared = false;  // other values may refer to it
    bool is_reduced = false;
    bool is_cut = false;
    Node reduced;
  };
  static constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};
  // What the value is from now on: a frame, a stack, nothing but a count; or what it was.
  Node Reduce(const Node& node, const Place& place);
  std::optional<Node> ReduceDict(const Container& dict, const Place& place);
  std::optional<Node> ReduceList(const Container& list);
  Node NewFrame(const Members& members);

  Sink& sink_;
  Arena text_arena_;
  std::vector<std::string_view> texts_;
  std::vector<Key> keys_;  // by text
  std::unordered_map<std::string_view, std::uint32_t> text_ids_;
  std::vector<FrameOfSnapshot> frames_;
  std::unordered_map<Hash128, std::uint32_t, Hash128Hasher> frame_ids_;
  std::unordered_map<Hash128, std::int64_t, Hash128Hasher> stack_ids_;
  std::vector<Container> containers_;
  std::vector<std::uint32_t> free_;
  Memo memo_;
};

}  // namespace tlparse::memory

#include "inputs/common/pickle_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "inputs/common/pickle_machine.h"
#include "inputs/common/whole_pickle.h"

namespace tlparse {
namespace {

// A PlainTree that grows.
class TreeValues {
 public:
  using Node = PlainTree::NodeId;
  using Type = PlainValue::Type;

  bool IsFull() const { return tree_.IsFull(); }
  Type TypeOf(Node node) const { return tree_.TypeOf(node); }
  std::size_t SizeOf(Node node) const { return PlainValue(tree_, node).size(); }
  Node NewNull() { return tree_.NewNull(); }
  Node NewBool(bool value) { return tree_.NewBool(value); }
  Node NewInt(std::int64_t value) { return tree_.NewInt(value); }
  Node NewBigInt() { return tree_.NewBigInt(); }
  Node NewReal(double value) { return tree_.NewReal(value); }
  Node NewText(std::string_view text) { return tree_.NewText(text); }
  Node NewContainer(Type type) { return tree_.NewContainer(type); }
  void Append(Node container, Node child, const PlaceOfValue<Node>&) {
    tree_.Append(container, child);
  }
  void MarkCut(Node container) { tree_.MarkCut(container); }
  void Filled(std::vector<Node>&, std::size_t, const PlaceOfValue<Node>&) {}
  void Remember(std::size_t slot, Node node) {
    if (slot >= memo_.size()) memo_.resize(slot + 1, kNothing);
    memo_[slot] = node;
  }
  std::optional<Node> Recall(std::uint64_t slot) const {
    if (slot >= memo_.size() || memo_[static_cast<std::size_t>(slot)] == kNothing)
      return std::nullopt;
    return memo_[static_cast<std::size_t>(slot)];
  }
  std::size_t remembered() const { return memo_.size(); }
  PlainTree& tree() { return tree_; }

 private:
  static constexpr Node kNothing = ~Node{0};
  std::vector<Node> memo_;
  PlainTree tree_;
};

}  // namespace

bool LooksLikePickle(std::string_view bytes) {
  for (const std::string_view begin : {"(dp", "(lp", "}q", "]q"})
    if (bytes.starts_with(begin)) return true;
  return bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

PlainDocument ReadPickle(std::string_view bytes) {
  WholePickle source(bytes);
  TreeValues values;
  PickleMachine<WholePickle, TreeValues> machine(source, values);
  machine.Run();
  if (const std::optional<PlainTree::NodeId> root = machine.root()) values.tree().set_root(*root);
  return {std::move(values.tree()), std::move(machine.problem())};
}

}  // namespace tlparse

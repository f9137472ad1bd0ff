// The stack on which a document's values are built: containers are pushed, then filled with what
// lies above a mark. Shared by the readers of pickles (pickle_machine.h) and by those that build
// the same values of JSON.
//
// `Values` makes and holds the values:
//
//   using Node = …;                    // copied; what the stack holds
//   bool IsFull() const;
//   PlainValue::Type TypeOf(Node) const;
//   std::size_t SizeOf(Node) const;    // of a container
//   Node NewNull(); NewBool(bool); NewInt(int64); NewBigInt(); NewReal(double); NewText(string_view);
//   Node NewContainer(PlainValue::Type);
//   void Append(Node container, Node child, const PlaceOfValue<Node>& place); // of dicts key, value, key …
//   void MarkCut(Node container);
//   void Filled(std::vector<Node>& stack, std::size_t floor, const PlaceOfValue<Node>& place);
//       // the container on top was filled at once (SETITEMS, APPENDS, '}', ']'). It may be replaced, or be
//       // made one with the value below it, where that lies at `floor` or above.
//   void Remember(std::size_t slot, Node); std::optional<Node> Recall(std::size_t slot);
//   std::size_t remembered() const;
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "inputs/common/plain_value.h"

namespace tlparse {

// Where a container stands: the list that it is in, which is a member of a dict or lies in a list
// that is one.
template <typename Node>
struct PlaceOfValue {
  std::optional<std::size_t> list_index;  // of its list in the list around it; none: there is none
  std::optional<Node> member;             // the name of the member that holds the outer list
};

template <typename Values>
class ValueStack {
 public:
  using Node = typename Values::Node;
  using Place = PlaceOfValue<Node>;
  using Type = PlainValue::Type;

  explicit ValueStack(Values& values) : values_(values) {}

  std::size_t size() const { return stack_.size(); }
  bool has_marks() const { return !marks_.empty(); }
  bool IsFull() const {
    return values_.IsFull() || stack_.size() + marks_.size() >= PlainTree::kMostChildren;
  }
  Node bottom() const { return stack_.front(); }
  Node top() const { return stack_.back(); }
  void Push(Node node) { stack_.push_back(node); }
  void Pop() { stack_.pop_back(); }
  void Mark() { marks_.push_back(stack_.size()); }
  std::optional<std::size_t> PopMark() {
    if (marks_.empty()) return std::nullopt;
    const std::size_t mark = marks_.back();
    marks_.pop_back();
    return mark;
  }
  // Whether `count` values lie above the last mark.
  bool Has(std::size_t count) const { return stack_.size() >= Floor() + count; }

  // Moves the values from `from` on into the container below them. The problem; nullptr: none.
  const char* Fill(std::size_t from, Type type, bool is_at_once) {
    if (from <= Floor() || values_.TypeOf(stack_[from - 1]) != type)
      return "values are added to what is no container of theirs";
    if (type == Type::kDict && (stack_.size() - from) % 2 != 0)
      return "a dict has a key without a value";
    MoveInto(stack_[from - 1], from, PlaceInside(from - 1));
    if (is_at_once) values_.Filled(stack_, Floor(), PlaceOf(stack_.size() - 1));
    return nullptr;
  }
  const char* MakeFrom(std::size_t from, Type type) {
    if (type == Type::kDict && (stack_.size() - from) % 2 != 0)
      return "a dict has a key without a value";
    const Node container = values_.NewContainer(type);
    MoveInto(container, from, {});
    Push(container);
    return nullptr;
  }
  // A document that could not be read on: what was begun gets what it has so far.
  void CloseOpen() {
    // A container that was just made has had no chance to be filled.
    if (!stack_.empty() && IsContainer(stack_.back()) && values_.SizeOf(stack_.back()) == 0)
      values_.MarkCut(stack_.back());
    while (!marks_.empty()) {
      const std::size_t from = *PopMark();
      const bool has_owner = from > Floor();
      if (!has_owner || !IsContainer(stack_[from - 1])) {
        // A tuple of protocol 0 in the making.
        while (stack_.size() > from) stack_.pop_back();
        continue;
      }
      const Node owner = stack_[from - 1];
      if (values_.TypeOf(owner) == Type::kDict && (stack_.size() - from) % 2 != 0)
        stack_.pop_back();
      MoveInto(owner, from, PlaceInside(from - 1));
      values_.MarkCut(owner);
    }
  }

 private:
  std::size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }
  bool IsContainer(Node node) const {
    const Type type = values_.TypeOf(node);
    return type == Type::kList || type == Type::kDict;
  }
  bool IsList(std::size_t at) const { return values_.TypeOf(stack_[at]) == Type::kList; }
  void MoveInto(Node container, std::size_t from, const Place& place) {
    for (std::size_t i = from; i < stack_.size(); ++i) values_.Append(container, stack_[i], place);
    while (stack_.size() > from) stack_.pop_back();
  }
  // Of the values in the list at `list`, above which no mark lies.
  Place PlaceInside(std::size_t list) const {
    Place place;
    if (!IsList(list)) return place;
    std::size_t marks = marks_.size();
    while (marks > 0 && marks_[marks - 1] > list) --marks;
    const std::size_t floor = marks > 0 ? marks_[marks - 1] : 0;
    std::size_t outer = 0;
    if (marks > 0 && floor > 0 && IsList(floor - 1)) {
      outer = floor - 1;
      place.list_index = values_.SizeOf(stack_[outer]) + (list - floor);
    } else if (list > floor && IsList(list - 1)) {
      outer = list - 1;
      place.list_index = values_.SizeOf(stack_[outer]);
    } else {
      outer = list;
    }
    if (outer > 0 && values_.TypeOf(stack_[outer - 1]) == Type::kText)
      place.member = stack_[outer - 1];
    return place;
  }
  // Of the value at `at`, the topmost.
  Place PlaceOf(std::size_t at) const {
    const std::size_t floor = Floor();
    if (at > floor && IsList(at - 1)) return PlaceInside(at - 1);
    if (floor > 0 && floor <= at && IsList(floor - 1)) return PlaceInside(floor - 1);
    return {};
  }

  Values& values_;
  std::vector<Node> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
};

}  // namespace tlparse

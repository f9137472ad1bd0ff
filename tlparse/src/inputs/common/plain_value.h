// Plain values of a file: null, true and false, numbers, text, lists (tuples too) and dicts. A
// pickle and a JSON text become the same tree (pickle_reader.h, plain_json.h), so that readers of
// dumps need not distinguish the two.
//
// A container may occur at several places of a tree, and a hostile pickle can make one contain
// itself: walk a tree by fixed paths, or with a limit of depth (AppendJson does).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"

namespace tlparse {

class PlainTree;

// A view of one value of a tree; lives as long as the tree. A default-made one is null.
class PlainValue {
 public:
  enum class Type : std::uint8_t { kNull, kBool, kInt, kBigInt, kReal, kText, kList, kDict };

  PlainValue() = default;
  PlainValue(const PlainTree& tree, std::uint32_t node) : tree_(&tree), node_(node) {}

  Type type() const;
  bool IsNull() const { return type() == Type::kNull; }
  // The file ended, or could not be read on, inside this list or dict.
  bool is_cut() const;

  // Nothing if the value is of another type. A kBigInt (beyond 64 bits, or beyond a
  // double) is neither an Int nor a Real.
  std::optional<bool> Bool() const;
  std::optional<std::int64_t> Int() const;
  std::optional<double> Real() const;  // an integer too
  std::optional<std::string_view> Text() const;

  // Lists: elements; dicts: members in the order of the file. 0 for other types.
  std::size_t size() const;
  PlainValue At(std::size_t index) const;  // null beyond the end
  std::pair<PlainValue, PlainValue> Member(std::size_t index) const;
  // The last member of that name; null if there is none or this is not a dict. Linear.
  PlainValue operator[](std::string_view name) const;
  bool Has(std::string_view name) const;

  // Appends strict JSON; keys of other types are written as text. False if the value is nested
  // deeper than 32 levels or `out` grew beyond `most_bytes`: `out` is then incomplete.
  bool AppendJson(std::string& out, std::size_t most_bytes) const;

 private:
  bool AppendJson(std::string& out, std::size_t most_bytes, int levels) const;

  const PlainTree* tree_ = nullptr;
  std::uint32_t node_ = 0;
};

// The value as strict JSON. Nothing: it is null, too deep, or longer than 1 MiB.
std::optional<std::string> JsonOf(const PlainValue& value);
// The text in valid UTF-8; nothing for another type.
std::optional<std::string> TextOf(const PlainValue& value);

// Owns the values. Movable; views made before a move stay valid only if the tree does not move.
class PlainTree {
 public:
  // Limits of one tree; a reader stops there (about 130 MB and the texts).
  static constexpr std::size_t kMostNodes = std::size_t{4} << 20;
  static constexpr std::size_t kMostChildren = std::size_t{8} << 20;

  PlainValue root() const { return PlainValue(*this, root_); }

  // For the readers. Nodes are numbered from 0 (a null).
  using NodeId = std::uint32_t;
  PlainTree() { NewNull(); }
  void set_root(NodeId node) { root_ = node; }
  bool IsFull() const { return nodes_.size() >= kMostNodes || child_count_ >= kMostChildren; }
  NodeId NewNull() { return New({PlainValue::Type::kNull, false, 0, {}}); }
  NodeId NewBool(bool value);
  NodeId NewInt(std::int64_t value);
  NodeId NewBigInt() { return New({PlainValue::Type::kBigInt, false, 0, {}}); }
  NodeId NewReal(double value);
  // `text` is copied.
  NodeId NewText(std::string_view text);
  NodeId NewContainer(PlainValue::Type type);
  // A dict's children are key, value, key, value …
  void Append(NodeId container, NodeId child);
  void MarkCut(NodeId container) { nodes_[container].is_cut = true; }
  PlainValue::Type TypeOf(NodeId node) const { return nodes_[node].type; }

 private:
  friend class PlainValue;
  struct Node {
    PlainValue::Type type;
    bool is_cut;
    std::uint32_t size;  // of the text
    union {
      std::int64_t integer;
      double real;
      const char* text;
      std::size_t children;  // index into children_
    };
  };
  NodeId New(const Node& node);

  std::vector<Node> nodes_;
  std::vector<std::vector<NodeId>> children_;
  std::size_t child_count_ = 0;
  std::unique_ptr<Arena> texts_ = std::make_unique<Arena>();
  NodeId root_ = 0;
};

// Why a reader stopped before the end of a document.
struct PlainProblem {
  std::string message;  // one sentence
  std::int64_t byte_offset = 0;
  bool is_cut = false;      // the bytes end too early; else they are invalid
  bool is_refused = false;  // they are valid, but hold more than plain values
};

// What was read: all of it, or what came before the problem, where open lists and dicts are marked
// as cut.
struct PlainDocument {
  PlainTree tree;
  std::optional<PlainProblem> problem;
};

}  // namespace tlparse

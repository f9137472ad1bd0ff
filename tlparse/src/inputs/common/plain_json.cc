#include "inputs/common/plain_json.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_walk.h"

namespace tlparse {
namespace {

using NodeId = PlainTree::NodeId;
using Type = PlainValue::Type;

class PlainJsonReader : JsonWalker<PlainJsonReader> {
 public:
  explicit PlainJsonReader(std::string_view text) : JsonWalker(text) {}

  PlainDocument Read() {
    std::optional<PlainProblem> problem;
    if (!Walk()) {
      problem = PlainProblem{problem_, static_cast<std::int64_t>(position()), is_cut_};
      for (const NodeId container : containers_) tree_.MarkCut(container);
    }
    return {std::move(tree_), std::move(problem)};
  }

 private:
  friend class JsonWalker<PlainJsonReader>;

  bool Open() {
    const NodeId container = tree_.NewContainer(*at_ == '{' ? Type::kDict : Type::kList);
    if (!Place(container)) return false;
    containers_.push_back(container);
    ++at_;
    return true;
  }
  bool Close() {
    containers_.pop_back();
    ++at_;
    return true;
  }
  void Comma() { ++at_; }
  void Colon() { ++at_; }

  bool Name() {
    const std::optional<NodeId> name = Text();
    key_ = name.value_or(0);
    return name.has_value();
  }

  bool Scalar() {
    if (*at_ == '"') {
      const std::optional<NodeId> text = Text();
      return text && Place(*text);
    }
    const char* const begin = at_;
    if (IsAtPythonNumber()) return PythonNumber() && Place(tree_.NewNull());
    if (!StrictScalar()) return false;
    const std::string_view word = TextSince(begin);
    if (word == "null") return Place(tree_.NewNull());
    if (word == "true" || word == "false") return Place(tree_.NewBool(word == "true"));
    if (at_ == end_ && depth() > 0) {
      at_ = begin;
      return Cut("the text ends inside a number or behind it");
    }
    return Place(NewNumber(word));
  }

  NodeId NewNumber(std::string_view word) {
    std::int64_t integer = 0;
    double real = 0;
    const char* const last = word.data() + word.size();
    if (const auto [end, error] = std::from_chars(word.data(), last, integer); end == last)
      return error == std::errc() ? tree_.NewInt(integer) : tree_.NewBigInt();
    // 1e400 is a number, but no double holds it.
    return std::from_chars(word.data(), last, real).ec == std::errc() ? tree_.NewReal(real)
                                                                      : tree_.NewBigInt();
  }

  std::optional<NodeId> Text() {
    const char* const begin = at_ + 1;
    if (!String(true)) return std::nullopt;
    std::string_view inside = TextSince(begin);
    inside.remove_suffix(1);
    return tree_.NewText(*UnescapeJson(inside));
  }

  bool Place(NodeId node) {
    if (tree_.IsFull()) return Problem("the text holds more values than are read of one file");
    if (containers_.empty()) {
      tree_.set_root(node);
      return true;
    }
    if (tree_.TypeOf(containers_.back()) == Type::kDict) tree_.Append(containers_.back(), key_);
    tree_.Append(containers_.back(), node);
    return true;
  }

  NodeId key_ = 0;
  std::vector<NodeId> containers_;  // open ones
  PlainTree tree_;
};

}  // namespace

PlainDocument ReadPlainJson(std::string_view text) { return PlainJsonReader(text).Read(); }

}  // namespace tlparse

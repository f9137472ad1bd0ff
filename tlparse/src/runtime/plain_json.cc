#include "runtime/plain_json.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/json_string.h"

namespace tlparse {
namespace {

using NodeId = PlainTree::NodeId;
using Type = PlainValue::Type;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  PlainDocument Read() {
    std::optional<NodeId> root;
    do {
      Value(root);
    } while (!problem_ && !open_.empty());
    if (problem_) {
      for (const Open& open : open_) tree_.MarkCut(open.container);
    } else {
      SkipSpace();
      if (at_ < text_.size()) Stop("text follows the JSON value");
    }
    if (root) tree_.set_root(*root);
    return {std::move(tree_), std::move(problem_)};
  }

 private:
  struct Open {
    NodeId container;
    bool is_dict;
  };

  void Stop(std::string message) {
    if (!problem_) problem_ = PlainProblem{std::move(message), static_cast<std::int64_t>(at_)};
  }
  void Cut() {
    Stop("the JSON text ends before its value is complete");
    problem_->is_cut = true;
  }
  void SkipSpace() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  // The next character that is no white space; 0 and a problem at the end.
  char Peek() {
    SkipSpace();
    if (at_ < text_.size()) return text_[at_];
    Cut();
    return 0;
  }

  // Reads one value, or opens a container, and closes those that end after it.
  void Value(std::optional<NodeId>& root);
  void Place(NodeId node, std::optional<NodeId>& root) {
    if (!root) root = node;
    if (open_.empty()) return;
    if (open_.back().is_dict) tree_.Append(open_.back().container, key_);
    tree_.Append(open_.back().container, node);
  }
  bool Key();
  // After a value: closes containers, or stops before the next value.
  void AfterValue();
  std::optional<NodeId> Scalar();
  std::optional<std::string> String();
  std::optional<std::uint32_t> Hex4();

  std::string_view text_;
  std::size_t at_ = 0;
  NodeId key_ = 0;
  std::vector<Open> open_;
  PlainTree tree_;
  std::optional<PlainProblem> problem_;
};

std::optional<std::uint32_t> Reader::Hex4() {
  if (text_.size() - at_ < 4) {
    Cut();
    return std::nullopt;
  }
  const std::optional<std::uint32_t> value = HexUnit(text_.substr(at_));
  if (!value) {
    Stop("an escape in a string is damaged");
    return std::nullopt;
  }
  at_ += 4;
  return value;
}

// Called after the opening quote.
std::optional<std::string> Reader::String() {
  std::string out;
  while (true) {
    const std::size_t special = text_.find_first_of("\"\\", at_);
    if (special == std::string_view::npos) {
      at_ = text_.size();
      Cut();
      return std::nullopt;
    }
    out.append(text_.substr(at_, special - at_));
    at_ = special + 1;
    if (text_[special] == '"') return out;
    if (at_ == text_.size()) {
      Cut();
      return std::nullopt;
    }
    const char escape = text_[at_++];
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (const std::size_t name = kNames.find(escape); name != std::string_view::npos) {
      out += kMeanings[name];
      continue;
    }
    if (escape != 'u') {
      Stop("an escape in a string is damaged");
      return std::nullopt;
    }
    std::optional<std::uint32_t> point = Hex4();
    if (!point) return std::nullopt;
    if (IsHighSurrogate(*point) && text_.substr(at_, 2) == "\\u") {
      const std::size_t before = at_;
      at_ += 2;
      const std::optional<std::uint32_t> low = Hex4();
      if (!low) return std::nullopt;
      if (IsLowSurrogate(*low)) {
        point = FromSurrogates(*point, *low);
      } else {
        at_ = before;
      }
    }
    const bool is_lone = IsHighSurrogate(*point) || IsLowSurrogate(*point);
    AppendUtf8(is_lone ? 0xFFFD : *point, out);
  }
}

std::optional<NodeId> Reader::Scalar() {
  if (text_[at_] == '"') {
    ++at_;
    const std::optional<std::string> text = String();
    return text ? std::optional(tree_.NewText(*text)) : std::nullopt;
  }
  std::size_t end = at_;
  while (end < text_.size() && (IsDigit(text_[end]) || (text_[end] >= 'a' && text_[end] <= 'z') ||
                                (text_[end] >= 'A' && text_[end] <= 'Z') || text_[end] == '+' ||
                                text_[end] == '-' || text_[end] == '.'))
    ++end;
  const std::string_view word = text_.substr(at_, end - at_);
  // A number or a name at the very end may be part of a longer one, except at the top.
  if (end == text_.size() && !open_.empty()) {
    Cut();
    return std::nullopt;
  }
  std::optional<NodeId> node;
  if (word == "null" || word == "NaN" || word == "Infinity" || word == "-Infinity") {
    node = tree_.NewNull();
  } else if (word == "true" || word == "false") {
    node = tree_.NewBool(word == "true");
  } else if (!word.empty()) {
    std::int64_t integer = 0;
    double real = 0;
    const char* const last = word.data() + word.size();
    const auto [integer_end, error] = std::from_chars(word.data(), last, integer);
    if (integer_end == last) {
      node = error == std::errc() ? tree_.NewInt(integer) : tree_.NewBigInt();
    } else if (const auto [real_end, real_error] = std::from_chars(word.data(), last, real);
               real_end == last) {
      // 1e400 is a number, but no double holds it.
      node = real_error == std::errc() ? tree_.NewReal(real) : tree_.NewBigInt();
    }
  }
  if (!node) {
    Stop("a value is expected here");
    return std::nullopt;
  }
  at_ = end;
  return node;
}

bool Reader::Key() {
  if (Peek() == 0) return false;
  if (text_[at_] != '"') {
    Stop("the name of a member is expected here");
    return false;
  }
  ++at_;
  const std::optional<std::string> name = String();
  if (!name || Peek() == 0) return false;
  if (text_[at_] != ':') {
    Stop("a colon is expected here");
    return false;
  }
  ++at_;
  key_ = tree_.NewText(*name);
  return true;
}

void Reader::AfterValue() {
  while (!open_.empty()) {
    const char next = Peek();
    if (next == 0) return;
    const bool is_dict = open_.back().is_dict;
    if (next == ',') {
      ++at_;
      if (is_dict) Key();
      return;
    }
    if (next != (is_dict ? '}' : ']'))
      return Stop("a comma or the end of a list or object is expected here");
    ++at_;
    open_.pop_back();
  }
}

void Reader::Value(std::optional<NodeId>& root) {
  if (tree_.IsFull()) return Stop("the text holds more values than are read of one file");
  const char first = Peek();
  if (first == 0) return;
  if (first != '{' && first != '[') {
    const std::optional<NodeId> scalar = Scalar();
    if (!scalar) return;
    Place(*scalar, root);
    return AfterValue();
  }
  const bool is_dict = first == '{';
  ++at_;
  const NodeId container = tree_.NewContainer(is_dict ? Type::kDict : Type::kList);
  Place(container, root);
  open_.push_back({container, is_dict});
  const char next = Peek();
  if (next == 0) return;
  if (next == (is_dict ? '}' : ']')) {
    ++at_;
    open_.pop_back();
    return AfterValue();
  }
  if (is_dict) Key();
}

}  // namespace

PlainDocument ReadPlainJson(std::string_view text) { return Reader(text).Read(); }

}  // namespace tlparse

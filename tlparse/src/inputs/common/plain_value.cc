#include "inputs/common/plain_value.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "base/utf8.h"

namespace tlparse {

namespace {
constexpr int kMostLevels = 32;
constexpr std::size_t kMostJsonBytes = std::size_t{1} << 20;
}  // namespace

PlainValue::Type PlainValue::type() const {
  return tree_ == nullptr ? Type::kNull : tree_->nodes_[node_].type;
}

bool PlainValue::is_cut() const { return tree_ != nullptr && tree_->nodes_[node_].is_cut; }

std::optional<bool> PlainValue::Bool() const {
  if (type() != Type::kBool) return std::nullopt;
  return tree_->nodes_[node_].integer != 0;
}

std::optional<std::int64_t> PlainValue::Int() const {
  if (type() != Type::kInt) return std::nullopt;
  return tree_->nodes_[node_].integer;
}

std::optional<double> PlainValue::Real() const {
  if (type() == Type::kReal) return tree_->nodes_[node_].real;
  if (type() == Type::kInt) return static_cast<double>(tree_->nodes_[node_].integer);
  return std::nullopt;
}

std::optional<std::string_view> PlainValue::Text() const {
  if (type() != Type::kText) return std::nullopt;
  const PlainTree::Node& node = tree_->nodes_[node_];
  return std::string_view(node.text, node.size);
}

std::size_t PlainValue::size() const {
  if (type() == Type::kList) return tree_->children_[tree_->nodes_[node_].children].size();
  if (type() == Type::kDict) return tree_->children_[tree_->nodes_[node_].children].size() / 2;
  return 0;
}

PlainValue PlainValue::At(std::size_t index) const {
  if (type() != Type::kList || index >= size()) return {};
  return {*tree_, tree_->children_[tree_->nodes_[node_].children][index]};
}

std::pair<PlainValue, PlainValue> PlainValue::Member(std::size_t index) const {
  if (type() != Type::kDict || index >= size()) return {};
  const std::vector<PlainTree::NodeId>& children = tree_->children_[tree_->nodes_[node_].children];
  return {PlainValue(*tree_, children[2 * index]), PlainValue(*tree_, children[2 * index + 1])};
}

PlainValue PlainValue::operator[](std::string_view name) const {
  for (std::size_t i = type() == Type::kDict ? size() : 0; i > 0; --i) {
    const auto [key, value] = Member(i - 1);
    if (key.Text() == name) return value;
  }
  return {};
}

bool PlainValue::Has(std::string_view name) const {
  for (std::size_t i = type() == Type::kDict ? size() : 0; i > 0; --i) {
    if (Member(i - 1).first.Text() == name) return true;
  }
  return false;
}

bool PlainValue::AppendJson(std::string& out, std::size_t most_bytes) const {
  return AppendJson(out, most_bytes, kMostLevels);
}

bool PlainValue::AppendJson(std::string& out, std::size_t most_bytes, int levels) const {
  if (levels == 0 || out.size() > most_bytes) return false;
  switch (type()) {
    case Type::kNull:
    case Type::kBigInt:
      out += "null";
      break;
    case Type::kBool:
      out += *Bool() ? "true" : "false";
      break;
    case Type::kInt:
      out += fmt::format("{}", *Int());
      break;
    case Type::kReal:
      out += JsonWriter().Real(*Real()).text();
      break;
    case Type::kText:
      AppendJsonString(*Text(), out);
      break;
    case Type::kList:
      out += '[';
      for (std::size_t i = 0; i < size(); ++i) {
        if (i > 0) out += ',';
        if (!At(i).AppendJson(out, most_bytes, levels - 1)) return false;
      }
      out += ']';
      break;
    case Type::kDict:
      out += '{';
      for (std::size_t i = 0; i < size(); ++i) {
        const auto [key, value] = Member(i);
        if (i > 0) out += ',';
        if (const std::optional<std::string_view> name = key.Text()) {
          AppendJsonString(*name, out);
        } else {
          std::string written;
          if (!key.AppendJson(written, most_bytes, levels - 1)) return false;
          AppendJsonString(written, out);
        }
        out += ':';
        if (!value.AppendJson(out, most_bytes, levels - 1)) return false;
      }
      out += '}';
      break;
  }
  return out.size() <= most_bytes;
}

PlainTree::NodeId PlainTree::New(const Node& node) {
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

std::optional<std::string> JsonOf(const PlainValue& value) {
  std::string json;
  if (value.IsNull() || !value.AppendJson(json, kMostJsonBytes)) return std::nullopt;
  return json;
}

std::optional<std::string> TextOf(const PlainValue& value) {
  const std::optional<std::string_view> text = value.Text();
  return text ? std::optional(SanitizeUtf8(*text)) : std::nullopt;
}

PlainTree::NodeId PlainTree::NewBool(bool value) {
  Node node{PlainValue::Type::kBool, false, 0, {}};
  node.integer = value ? 1 : 0;
  return New(node);
}

PlainTree::NodeId PlainTree::NewInt(std::int64_t value) {
  Node node{PlainValue::Type::kInt, false, 0, {}};
  node.integer = value;
  return New(node);
}

PlainTree::NodeId PlainTree::NewReal(double value) {
  Node node{PlainValue::Type::kReal, false, 0, {}};
  node.real = value;
  return New(node);
}

PlainTree::NodeId PlainTree::NewText(std::string_view text) {
  const std::string_view kept = texts_->Copy(text);
  Node node{PlainValue::Type::kText, false, static_cast<std::uint32_t>(kept.size()), {}};
  node.text = kept.data();
  return New(node);
}

PlainTree::NodeId PlainTree::NewContainer(PlainValue::Type type) {
  Node node{type, false, 0, {}};
  node.children = children_.size();
  children_.emplace_back();
  return New(node);
}

void PlainTree::Append(NodeId container, NodeId child) {
  children_[nodes_[container].children].push_back(child);
  ++child_count_;
}

}  // namespace tlparse

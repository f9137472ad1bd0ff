#include "inputs/memory/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/json_writer.h"
#include "base/utf8.h"

namespace tlparse::memory {
namespace {

using Tag = Node::Tag;

constexpr std::string_view kKeyNames[] = {"",
                                          "action",
                                          "active_size",
                                          "addr",
                                          "address",
                                          "allocated_size",
                                          "blocks",
                                          "compile_context",
                                          "device",
                                          "device_free",
                                          "filename",
                                          "frames",
                                          "is_expandable",
                                          "line",
                                          "name",
                                          "requested_size",
                                          "segment_pool_id",
                                          "segment_type",
                                          "size",
                                          "stage",
                                          "state",
                                          "stream",
                                          "time_us",
                                          "total_size"};

constexpr std::size_t kMostTextBytes = std::size_t{48} << 20;
constexpr std::size_t kMostTexts = std::size_t{1} << 19;
constexpr std::size_t kMostSnapshotFrames = std::size_t{1} << 20;
constexpr std::size_t kMostSnapshotStacks = std::size_t{1} << 20;
constexpr std::size_t kMostContainers = std::size_t{1} << 20;
constexpr std::size_t kMostMemo = std::size_t{1} << 27;

bool IsContainer(const Node& node) { return node.tag == Tag::kList || node.tag == Tag::kDict; }

}  // namespace

Members::Members(const Values& values, const std::vector<Node>& nodes)
    : values_(values), nodes_(nodes) {
  for (std::size_t i = 0; i + 1 < nodes.size(); i += 2) {
    if (nodes[i].tag != Tag::kText) continue;
    const Key key = values.KeyAt(nodes[i].index);
    if (key != Key::kOther) known_[static_cast<std::size_t>(key)] = &nodes[i + 1];
  }
}

std::optional<std::int64_t> Members::Int(Key key) const {
  const Node* const node = known_[static_cast<std::size_t>(key)];
  if (node == nullptr || (node->tag != Tag::kInt && node->tag != Tag::kBool)) return std::nullopt;
  return node->number;
}

std::string_view Members::Text(Key key) const {
  const Node* const node = known_[static_cast<std::size_t>(key)];
  return node == nullptr || node->tag != Tag::kText ? std::string_view()
                                                    : values_.TextAt(node->index);
}

std::int64_t Members::Stack() const {
  const Node* const node = known_[static_cast<std::size_t>(Key::kFrames)];
  return node == nullptr || node->tag != Tag::kStack ? 0 : node->number;
}

std::optional<std::string> Members::Others() const {
  std::string json;
  for (std::size_t i = 0; i + 1 < nodes_.size(); i += 2) {
    if (nodes_[i].tag != Tag::kText || values_.KeyAt(nodes_[i].index) != Key::kOther) continue;
    const Node& value = nodes_[i + 1];
    if (value.tag == Tag::kNull || (value.tag == Tag::kText && values_.TextAt(value.index).empty()))
      continue;
    const std::size_t before = json.size();
    json += json.empty() ? '{' : ',';
    if (!values_.AppendJson(nodes_[i], json) || (json += ':', !values_.AppendJson(value, json)))
      json.resize(before);
  }
  if (json.empty()) return std::nullopt;
  return json + '}';
}

bool Values::IsFull() const {
  return containers_.size() - free_.size() >= kMostContainers || texts_.size() >= kMostTexts ||
         text_arena_.allocated_bytes() >= kMostTextBytes || frames_.size() >= kMostSnapshotFrames ||
         stack_ids_.size() >= kMostSnapshotStacks || memo_.size() >= kMostMemo;
}

Values::Type Values::TypeOf(const Node& node) const {
  switch (node.tag) {
    case Tag::kList:
      return Type::kList;
    case Tag::kDict:
      return Type::kDict;
    case Tag::kText:
      return Type::kText;
    default:
      return Type::kNull;
  }
}

std::size_t Values::SizeOf(const Node& node) const {
  return IsContainer(node) ? containers_[node.index].members.size() : 0;
}

Node Values::NewReal(double value) {
  Node node;
  node.tag = Tag::kReal;
  node.real = value;
  return node;
}

Node Values::NewText(std::string_view text) {
  const auto found = text_ids_.find(text);
  if (found != text_ids_.end()) return {Tag::kText, found->second, 0};
  const auto id = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(text_arena_.Copy(text));
  const auto key = std::find(std::begin(kKeyNames) + 1, std::end(kKeyNames), text);
  keys_.push_back(key == std::end(kKeyNames) ? Key::kOther
                                             : static_cast<Key>(key - std::begin(kKeyNames)));
  text_ids_.emplace(texts_.back(), id);
  return {Tag::kText, id, 0};
}

Node Values::NewContainer(Type type) {
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(containers_.size());
    containers_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  return {type == Type::kList ? Tag::kList : Tag::kDict, index, 0};
}

void Values::Append(const Node& container, const Node& child, const Place& place) {
  const Node value = Reduce(child, place);
  std::vector<Node>& members = containers_[container.index].members;
  if (value.tag == Tag::kDone && container.tag == Tag::kList && !members.empty() &&
      members.back().tag == Tag::kDone) {
    members.back().number += value.number;
    return;
  }
  members.push_back(value);
}

void Values::Filled(std::vector<Node>& stack, std::size_t floor, const Place& place) {
  if (stack.back().tag != Tag::kDict) return;
  stack.back() = Reduce(stack.back(), place);
  const std::size_t size = stack.size();
  if (stack.back().tag != Tag::kDone || size < 2 || size - 2 < floor ||
      stack[size - 2].tag != Tag::kDone)
    return;
  stack[size - 2].number += stack.back().number;
  stack.pop_back();
}

Node Values::Reduce(const Node& node, const Place& place) {
  if (!IsContainer(node) || containers_[node.index].is_cut) return node;
  if (containers_[node.index].is_reduced) return containers_[node.index].reduced;
  const std::optional<Node> reduced = node.tag == Tag::kDict
                                          ? ReduceDict(containers_[node.index], place)
                                          : ReduceList(containers_[node.index]);
  if (!reduced) return node;
  Container& container = containers_[node.index];
  if (container.slot != kNoSlot) memo_.Replace(container.slot, *reduced);
  if (container.is_shared) {
    container.members = {};
    container.is_reduced = true;
    container.reduced = *reduced;
  } else {
    container.members.clear();
    container.slot = kNoSlot;
    free_.push_back(node.index);
  }
  return *reduced;
}

std::optional<Node> Values::ReduceDict(const Container& dict, const Place& place) {
  const Members members(*this, dict.members);
  if (members.Has(Key::kFilename) && members.Has(Key::kLine)) return NewFrame(members);
  const Node done(Tag::kDone, 0, 1);
  const bool has_name = place.member && place.member->tag == Tag::kText;
  const std::string_view name = has_name ? TextAt(place.member->index) : std::string_view();
  if (members.Has(Key::kAction)) {
    std::optional<std::int64_t> list_index;
    if (place.list_index) list_index = static_cast<std::int64_t>(*place.list_index);
    sink_.Event(members, name, list_index);
  } else if (name == "host_segments") {
    sink_.HostSegment();
  } else if (members.Has(Key::kTotalSize)) {
    sink_.Segment(members);
  } else if (members.Has(Key::kState) && members.Has(Key::kSize)) {
    sink_.Block(members);
  } else if (members.Has(Key::kStage) && members.Has(Key::kTimeUs)) {
    sink_.Annotation(members);
  } else {
    return std::nullopt;
  }
  return done;
}

// A stack; the numbers of a tuple as text; nothing, where all values were handed on.
std::optional<Node> Values::ReduceList(const Container& list) {
  const std::vector<Node>& members = list.members;
  if (members.empty()) return Node(Tag::kStack, 0, 0);
  const auto all = [&](Tag tag) {
    return std::all_of(members.begin(), members.end(),
                       [&](const Node& one) { return one.tag == tag; });
  };
  constexpr std::size_t kMostNumbers = 4;
  if (members.size() <= kMostNumbers && all(Tag::kInt)) {
    std::string text;
    for (const Node& one : members)
      text += fmt::format("{}{}", text.empty() ? "(" : ", ", one.number);
    return NewText(text + ')');
  }
  if (members.size() == 1 && all(Tag::kDone)) return Node();  // all of it was handed on
  if (!all(Tag::kFrame)) return std::nullopt;
  std::string key;
  key.reserve(members.size() * sizeof(std::uint32_t));
  for (const Node& one : members) {
    char bytes[sizeof one.index];
    std::memcpy(bytes, &one.index, sizeof bytes);
    key.append(bytes, sizeof bytes);
  }
  const auto [entry, is_new] = stack_ids_.try_emplace(HashBytes(key), 0);
  if (is_new) {
    constexpr std::size_t kMostFramesOfStack = 1024;
    std::vector<FrameOfSnapshot> frames;
    // Innermost first in the file.
    for (std::size_t i = std::min(members.size(), kMostFramesOfStack); i > 0; --i)
      frames.push_back(frames_[members[i - 1].index]);
    entry->second = sink_.Stack(frames);
  }
  return Node(Tag::kStack, 0, entry->second);
}

Node Values::NewFrame(const Members& members) {
  const FrameOfSnapshot frame{NewText(members.Text(Key::kFilename)).index,
                              NewText(members.Text(Key::kName)).index,
                              members.Int(Key::kLine).value_or(0)};
  char key[16];
  std::memcpy(key, &frame.file, 4);
  std::memcpy(key + 4, &frame.function, 4);
  std::memcpy(key + 8, &frame.line, 8);
  const auto [entry, is_new] = frame_ids_.try_emplace(HashBytes({key, sizeof key}),
                                                      static_cast<std::uint32_t>(frames_.size()));
  if (is_new) frames_.push_back(frame);
  return {Tag::kFrame, entry->second, 0};
}

void Values::Remember(std::size_t slot, const Node& node) {
  memo_.Set(slot, node);
  if (!IsContainer(node)) return;
  Container& container = containers_[node.index];
  if (container.slot != kNoSlot) container.is_shared = true;
  container.slot = static_cast<std::uint32_t>(slot);
}

std::optional<Node> Values::Recall(std::uint64_t slot) {
  const std::optional<Node> node = memo_.Get(slot);
  if (node && IsContainer(*node)) containers_[node->index].is_shared = true;
  return node;
}

bool Values::AppendJson(const Node& node, std::string& out, int levels) const {
  constexpr std::size_t kMostBytes = std::size_t{64} << 10;
  if (levels == 0 || out.size() > kMostBytes) return false;
  switch (node.tag) {
    case Tag::kBool:
      out += node.number != 0 ? "true" : "false";
      return true;
    case Tag::kInt:
    case Tag::kStack:
    case Tag::kDone:
      out += fmt::format("{}", node.number);
      return true;
    case Tag::kReal:
    case Tag::kText: {
      JsonWriter json;
      if (node.tag == Tag::kReal)
        json.Real(node.real);
      else
        json.String(SanitizeUtf8(TextAt(node.index)));
      out += json.Take();
      return true;
    }
    case Tag::kList:
    case Tag::kDict: {
      const bool is_dict = node.tag == Tag::kDict;
      const std::vector<Node>& members = containers_[node.index].members;
      out += is_dict ? '{' : '[';
      for (std::size_t i = 0; i < members.size(); ++i) {
        if (i > 0) out += is_dict && i % 2 == 1 ? ':' : ',';
        const bool is_name = is_dict && i % 2 == 0;
        if (is_name && members[i].tag != Tag::kText) {
          std::string name;
          if (IsContainer(members[i]) || !AppendJson(members[i], name, levels - 1)) return false;
          out += '"' + name + '"';
        } else if (!AppendJson(members[i], out, levels - 1)) {
          return false;
        }
      }
      out += is_dict ? '}' : ']';
      return true;
    }
    default:
      out += "null";
      return true;
  }
}

std::optional<Node> Values::Member(const Node& dict, std::string_view name) const {
  if (dict.tag != Tag::kDict) return std::nullopt;
  const std::vector<Node>& members = containers_[dict.index].members;
  for (std::size_t i = 0; i + 1 < members.size(); i += 2) {
    if (members[i].tag == Tag::kText && TextAt(members[i].index) == name) return members[i + 1];
  }
  return std::nullopt;
}

}  // namespace tlparse::memory

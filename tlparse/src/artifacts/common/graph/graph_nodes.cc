#include "artifacts/common/graph/graph_nodes.h"

#include <algorithm>
#include <charconv>

#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "store/hash128.h"

namespace tlparse {

namespace {

// "torch._C._nn.linear" of "torch._C._nn.linear(a, b);  a = None"; an expression that is no call up
// to the clean-ups.
std::string_view OperationOf(std::string_view expression) {
  std::size_t end = 0;
  while (end < expression.size() && (IsNameCharacter(expression[end]) || expression[end] == '.'))
    ++end;
  if (end > 0 && end < expression.size() && expression[end] == '(')
    return expression.substr(0, end);
  return TrimEnd(expression.substr(0, expression.find(";  ")));
}

// `name: "f32[4]" = expression` or `name = expression`; without the blanks in front.
bool ParseStatement(std::string_view line, ParsedGraph::Node& node) {
  std::size_t at = 0;
  while (at < line.size() && IsNameCharacter(line[at])) ++at;
  if (at == 0 || !IsNameStart(line[0])) return false;
  node.name = line.substr(0, at);
  line.remove_prefix(at);
  if (line.starts_with(": \"")) {
    const std::size_t quote = line.find('"', 3);
    if (quote == std::string_view::npos) return false;
    line.remove_prefix(quote + 1);
  } else if (line.starts_with(": ")) {  // an annotation without quotes
    const std::size_t equals = line.find(" = ");
    if (equals == std::string_view::npos) return false;
    line.remove_prefix(equals);
  }
  if (!line.starts_with(" = ")) return false;
  node.operation = OperationOf(line.substr(3));
  return true;
}

}  // namespace

bool ParseSourceComment(std::string_view line, SourceLine& source) {
  // Annotations may be between "#" and "File:" (2.9 and later).
  if (!line.starts_with("# ")) return false;
  const std::size_t file = line.find(" File: ");
  if (file == std::string_view::npos) return false;
  source.is_backward = line.substr(0, file).ends_with("Backward of forward node:");
  line.remove_prefix(file + 7);
  const std::size_t code = line.find(", code: ");
  std::string_view place = line.substr(0, code);
  source.code =
      code == std::string_view::npos ? std::string_view() : TrimEnd(line.substr(code + 8));
  // "<path>:<line> in <function>": the path may hold " in " and colons.
  for (std::size_t in = place.find(" in "); in != std::string_view::npos;
       in = place.find(" in ", in + 1)) {
    std::size_t digits = in;
    while (digits > 0 && IsDigit(place[digits - 1])) --digits;
    if (digits == in || digits < 2 || place[digits - 1] != ':') continue;
    if (std::from_chars(place.data() + digits, place.data() + in, source.line).ec != std::errc())
      continue;
    source.file = place.substr(0, digits - 1);
    source.function = place.substr(in + 4);
    return true;
  }
  return false;
}

void ParseGraphNodes(std::string_view text, ParsedGraph& graph) {
  graph.sources.clear();
  graph.nodes.clear();
  int source = -1;
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string_view::npos) continue;
    line.remove_prefix(first);
    if (line[0] == '#') {
      SourceLine parsed;
      source = -1;
      if (ParseSourceComment(line, parsed)) {
        source = static_cast<int>(graph.sources.size());
        graph.sources.push_back(parsed);
      }
      continue;
    }
    if (line.starts_with("class ") || line.starts_with("def ")) {
      source = -1;
      continue;
    }
    ParsedGraph::Node node;
    if (!ParseStatement(line, node)) continue;
    node.source = source;
    graph.nodes.push_back(node);
  }
}

std::uint64_t GraphNodes::HashOf(const SourceLine& source) {
  const Hash128 file = HashBytes(source.file);
  const Hash128 function = HashBytes(source.function);
  const Hash128 code = HashBytes(source.code);
  const std::uint64_t parts[] = {file.low, static_cast<std::uint64_t>(source.line), function.low,
                                 code.low};
  return HashBytes({reinterpret_cast<const char*>(parts), sizeof parts}).low;
}

GraphNodes::GraphNodes(const ParsedGraph& graph, const std::vector<Source>& sources)
    : sources_(sources) {
  for (const ParsedGraph::Node& node : graph.nodes) {
    if (node.source < 0 || names_.size() + node.name.size() > UINT32_MAX) continue;
    const auto source = static_cast<std::size_t>(node.source);
    const bool is_backward = graph.sources[source].is_backward;
    entries_.push_back({static_cast<std::uint32_t>(names_.size()),
                        static_cast<std::uint32_t>(node.name.size()),
                        static_cast<std::uint32_t>(node.source) & 0x7fffffff, is_backward});
    if (!is_backward && (forward_hashes_.empty() || forward_hashes_.back() != sources[source].hash))
      forward_hashes_.push_back(sources[source].hash);
    names_ += node.name;
  }
  std::stable_sort(entries_.begin(), entries_.end(),
                   [this](const Entry& a, const Entry& b) { return NameOf(a) < NameOf(b); });
  std::sort(forward_hashes_.begin(), forward_hashes_.end());
}

const GraphNodes::Entry* GraphNodes::FindEntry(std::string_view node) const {
  const auto entry =
      std::lower_bound(entries_.begin(), entries_.end(), node,
                       [this](const Entry& a, std::string_view name) { return NameOf(a) < name; });
  return entry == entries_.end() || NameOf(*entry) != node ? nullptr : &*entry;
}

const GraphNodes::Source* GraphNodes::Find(std::string_view node) const {
  const Entry* entry = FindEntry(node);
  return entry == nullptr ? nullptr : &sources_[entry->source];
}

const GraphNodes::Source* GraphNodes::FindBackward(std::string_view node) const {
  const Entry* entry = FindEntry(node);
  return entry == nullptr || !entry->is_backward ? nullptr : &sources_[entry->source];
}

bool GraphNodes::HasForward(const Source& source) const {
  return std::binary_search(forward_hashes_.begin(), forward_hashes_.end(), source.hash);
}

void GraphNodePool::Put(std::int64_t content_id, std::shared_ptr<const GraphNodes> nodes) {
  if (by_content_.contains(content_id)) return;
  bytes_ += nodes->size_bytes();
  items_.push_front({content_id, std::move(nodes)});
  by_content_[content_id] = items_.begin();
  while (bytes_ > max_bytes_ && items_.size() > 1) {
    bytes_ -= items_.back().nodes->size_bytes();
    by_content_.erase(items_.back().content_id);
    items_.pop_back();
  }
}

std::shared_ptr<const GraphNodes> GraphNodePool::Find(std::int64_t content_id) {
  const auto found = by_content_.find(content_id);
  if (found == by_content_.end()) return nullptr;
  items_.splice(items_.begin(), items_, found->second);
  return found->second->nodes;
}

}  // namespace tlparse

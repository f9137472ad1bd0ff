#include "facts/contents/graph_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "artifacts/common/text/normalize.h"
#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "facts/text/sequence_diff.h"
#include "facts/text/shorten.h"
#include "facts/text/text_diff.h"
#include "queries/facts/contents/graph_difference.h"

namespace tlparse {
namespace {

struct ComparedNode {
  std::string name;
  std::string operation;
  std::string source;
  std::string form = {};  // the operation without the names of the nodes that it takes
};

// A node that is computed before another one renames what follows: h_1 becomes h_2.
bool AreEqual(const ComparedNode& a, const ComparedNode& b) {
  if (a.operation == b.operation) return !a.operation.empty() || a.name == b.name;
  return !a.source.empty() && a.source == b.source && a.form == b.form;
}

std::string FormOf(std::string_view operation, const std::set<std::string, std::less<>>& names) {
  std::string form;
  for (std::size_t i = 0; i < operation.size();) {
    std::size_t end = i;
    while (end < operation.size() && IsWordCharacter(operation[end])) ++end;
    const std::string_view word = operation.substr(i, std::max(end - i, std::size_t{1}));
    const bool is_member = i > 0 && operation[i - 1] == '.';
    form += !is_member && names.contains(word) ? std::string_view("%") : word;
    i += word.size();
  }
  return form;
}

// "torch.ops._c10d_functional.all_gather_into_tensor(x, 4, '2')" → "all_gather_into_tensor"
std::string_view CalledName(std::string_view operation) {
  operation = operation.substr(0, operation.find('('));
  return operation.substr(operation.rfind('.') + 1);
}

// The words that names of one collective share: all_gather of all_gather_into_tensor and
// all_gather_tensor.
std::string_view FirstTwoWords(std::string_view name) {
  const std::size_t first = name.find('_');
  return name.substr(0, first == std::string_view::npos ? first : name.find('_', first + 1));
}

// Nodes of a functional collective have a line of torch's. The line of the user's that calls it is
// known where an argument was computed in that line, just before.
class CallerLines {
 public:
  // The line of a node outside of torch.
  void SeeLine(const std::string& source, std::string_view code) {
    if (source != source_) {
      source_ = source;
      code_ = code;
      made_.clear();
    }
    made_.merge(unplaced_);
    unplaced_.clear();
  }
  // Of a node of torch's; empty: unknown.
  std::string LineOf(std::string_view operation) {
    const std::string name(CalledName(operation));
    if (!name.empty() && code_.find(FirstTwoWords(name)) != std::string::npos &&
        made_.insert(name).second)
      return source_;
    unplaced_.insert(name);
    return {};
  }

 private:
  std::string source_, code_;
  std::set<std::string> made_;      // calls that the line has made already, or may have
  std::set<std::string> unplaced_;  // calls since, whose line is unknown
};

Result<std::vector<ComparedNode>> LoadNodes(Database& database, std::int64_t content_id) {
  std::vector<ComparedNode> nodes;
  CallerLines callers;
  FOR_EACH_ROW(const NodeOfGraph& row,
               KeptQuery<NodeOfGraph>(database, {.content_id = content_id})) {
    ComparedNode node{std::string(row.name), std::string(row.operation), {}};
    if (row.file && IsTorchFile(*row.file)) {
      node.source = callers.LineOf(node.operation);
    } else if (row.file) {
      node.source = fmt::format("{}:{}", *row.file, row.line);
      if (row.function) node.source += fmt::format(" in {}", *row.function);
      if (row.code) node.source += fmt::format(": {}", *row.code);
      callers.SeeLine(node.source, row.code.value_or(""));
    }
    nodes.push_back(std::move(node));
  }
  std::set<std::string, std::less<>> names;
  for (ComparedNode& node : nodes) {
    node.form = FormOf(node.operation, names);
    names.insert(node.name);
  }
  return nodes;
}

std::string Title(const ComparedNode& node) {
  // An input: l_x_ = L_x_.
  if (node.operation.starts_with("L_") && node.name.starts_with("l_") &&
      std::string_view(node.operation).substr(1) == std::string_view(node.name).substr(1))
    return node.operation;
  return node.operation.empty() ? node.name : fmt::format("{} = {}", node.name, node.operation);
}

// Whether a node takes an input or an attribute and computes nothing.
bool IsTaken(const ComparedNode& node) {
  return node.operation.empty() || node.operation.starts_with("L_") ||
         (node.operation.starts_with("self.") && node.operation.find('(') == std::string::npos);
}

// The first from `at` on that computes; else that at `at`, if there is one.
const ComparedNode* FirstComputing(const std::vector<ComparedNode>& nodes, std::size_t at) {
  for (std::size_t i = at; i < nodes.size(); ++i) {
    if (!IsTaken(nodes[i])) return &nodes[i];
  }
  return at < nodes.size() ? &nodes[at] : nullptr;
}

// The parameters of modules that a graph takes.
std::set<std::string> ParametersOf(const std::vector<ComparedNode>& nodes) {
  std::set<std::string> taken;
  for (const ComparedNode& node : nodes) {
    if (IsTaken(node) && node.operation.find("_parameters_") != std::string::npos)
      taken.insert(node.operation);
  }
  return taken;
}

// Whether one graph computes what the other one does not, from the step of the first difference to
// the next node of both: nothing there stands in its place, and it did not only move.
bool IsExtra(const std::vector<ComparedNode>& a, const std::vector<ComparedNode>& b,
             std::vector<EditStep>::const_iterator step,
             std::vector<EditStep>::const_iterator end) {
  const EditStep::Kind kind = step->kind;
  const std::string& operation =
      kind == EditStep::Kind::kDelete ? a[step->a].operation : b[step->b].operation;
  for (; step != end && step->kind != EditStep::Kind::kKeep; ++step) {
    if (step->kind != kind) return false;
  }
  const auto count = [&](const std::vector<ComparedNode>& nodes) {
    return std::count_if(nodes.begin(), nodes.end(),
                         [&](const ComparedNode& node) { return node.operation == operation; });
  };
  return count(a) != count(b);
}

// The nodes of the first difference. What is taken in another order is taken for something: nodes
// that compute say more.
void SetNodes(const std::vector<ComparedNode>& a, const std::vector<ComparedNode>& b,
              const std::vector<EditStep>& steps, GraphDifference& result) {
  const auto differs = [](const EditStep& step) { return step.kind != EditStep::Kind::kKeep; };
  const auto computes = [&](const EditStep& step) {
    return differs(step) && !IsTaken(step.kind == EditStep::Kind::kDelete ? a[step.a] : b[step.b]);
  };
  auto step = std::find_if(steps.begin(), steps.end(), computes);
  const bool is_computed = step != steps.end();
  if (!is_computed) step = std::find_if(steps.begin(), steps.end(), differs);
  if (step == steps.end()) return;
  const auto at = [&](const std::vector<ComparedNode>& nodes, std::size_t place) {
    return is_computed            ? FirstComputing(nodes, place)
           : place < nodes.size() ? &nodes[place]
                                  : nullptr;
  };
  const bool is_extra = is_computed && IsExtra(a, b, step, steps.end());
  if (const ComparedNode* node = at(a, step->a);
      node && !(is_extra && step->kind == EditStep::Kind::kInsert))
    result.a_node = Title(*node), result.a_source = node->source;
  if (const ComparedNode* node = at(b, step->b);
      node && !(is_extra && step->kind == EditStep::Kind::kDelete))
    result.b_node = Title(*node), result.b_source = node->source;
}

std::vector<ComparedNode> WithoutNumbers(std::vector<ComparedNode> nodes) {
  for (ComparedNode& node : nodes) {
    for (std::string* const text : {&node.name, &node.operation, &node.form})
      *text = DigitsAsZero(*text);
  }
  return nodes;
}

// What sizes of data change hides no difference of the program.
void SetFirstNodes(const std::vector<ComparedNode>& a, const std::vector<ComparedNode>& b,
                   const std::vector<EditStep>& steps, GraphDifference& result) {
  const std::vector<ComparedNode> a_form = WithoutNumbers(a), b_form = WithoutNumbers(b);
  const std::vector<EditStep> of_forms =
      AlignSequences(a.size(), b.size(),
                     [&](std::size_t i, std::size_t j) { return AreEqual(a_form[i], b_form[j]); });
  result.is_of_numbers = std::all_of(of_forms.begin(), of_forms.end(), [](const EditStep& step) {
    return step.kind == EditStep::Kind::kKeep;
  });
  SetNodes(a, b, result.is_of_numbers ? steps : of_forms, result);
}

// Python's: from a # outside of a string to the end of the line. Lines that are empty then go too.
std::string WithoutComments(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (quote != 0 && c == '\\') {
        ++i;
      } else if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '#') {
        line = line.substr(0, i);
      } else if (c == '"' || c == '\'') {
        quote = c;
      }
    }
    line = TrimEnd(line);
    if (!line.empty()) result.append(line).append("\n");
  }
  return result;
}

// Nothing: the text is not in the database.
Result<std::optional<std::string>> LoadText(Database& database, std::int64_t content_id) {
  ASSIGN_OR_RETURN(const FirstRow<TextOfContent> found,
                   First(KeptQuery<TextOfContent>(database, {.content_id = content_id})));
  if (!found) return std::optional<std::string>();
  std::string buffer;
  std::string text(NormalizeGraph(found->content, buffer));
  return std::optional(std::move(text));
}

// `x: "f32[8]cpu" = relu(y)` → `x = relu(y)`
std::string WithoutAnnotation(std::string_view line) {
  const std::size_t begin = line.find(": \"");
  const std::size_t end = begin == std::string_view::npos ? begin : line.find("\" = ", begin + 3);
  if (end == std::string_view::npos || line.find_first_of(" (") < begin) return std::string(line);
  return fmt::format("{}{}", line.substr(0, begin), line.substr(end + 1));
}

// Of the node that a line of a graph computes; empty: none, or not in the log.
std::string SourceOfLine(const std::vector<ComparedNode>& nodes, std::string_view line) {
  const std::string_view name = line.substr(0, line.find_first_of(": "));
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const ComparedNode& node) { return node.name == name; });
  return found == nodes.end() ? std::string() : found->source;
}

// Graphs of equal nodes: their texts also tell arguments, what a node gives, and the inputs.
Result<void> CompareTexts(Database& a_database, std::int64_t a_content_id,
                          const std::vector<ComparedNode>& a_nodes, Database& b_database,
                          std::int64_t b_content_id, const std::vector<ComparedNode>& b_nodes,
                          GraphDifference& result) {
  ASSIGN_OR_RETURN(const std::optional<std::string> a_text, LoadText(a_database, a_content_id));
  ASSIGN_OR_RETURN(const std::optional<std::string> b_text, LoadText(b_database, b_content_id));
  if (!a_text || !b_text) return {};
  std::string a = WithoutComments(*a_text), b = WithoutComments(*b_text);
  std::string a_rest = WithoutGroups(a), b_rest = WithoutGroups(b);
  result.is_of_groups = a != b && a_rest == b_rest;
  if (!result.is_of_groups) std::swap(a, a_rest), std::swap(b, b_rest);
  std::optional<FirstDifference> first =
      FindFirstDifference(WithoutDeletions(a), WithoutDeletions(b));
  if (!first) first = FindFirstDifference(a, b);
  if (!first) return {};
  result.differs = true;
  result.a_source = SourceOfLine(a_nodes, first->a);
  result.b_source = SourceOfLine(b_nodes, first->b);
  result.is_of_numbers = DigitsAsZero(first->a) == DigitsAsZero(first->b);
  std::tie(result.a_node, result.b_node) = DifferingAnnotations(first->a, first->b);
  if (result.a_node != first->a) return {};
  result.a_node = WithoutAnnotation(first->a);
  result.b_node = WithoutAnnotation(first->b);
  return {};
}

}  // namespace

std::string WithoutGroups(std::string_view text) {
  std::string result;
  for (const std::string_view line : SplitLines(text)) {
    const std::size_t call = line.find("c10d_functional.");
    std::size_t end = call == std::string_view::npos ? call : line.find("')", call);
    if (end == std::string_view::npos)
      end = line.find("\")", call == std::string_view::npos ? line.size() : call);
    const std::size_t begin = end == std::string_view::npos || end == 0
                                  ? std::string_view::npos
                                  : line.find_last_of("'\"", end - 1);
    if (call != std::string_view::npos && end != std::string_view::npos &&
        begin != std::string_view::npos && begin > call) {
      result += line.substr(0, begin + 1);
      result += line.substr(end);
    } else {
      result += line;
    }
    result += '\n';
  }
  return result;
}

Result<GraphDifference> CompareGraphs(Database& a_database, std::int64_t a_content_id,
                                      Database& b_database, std::int64_t b_content_id) {
  GraphDifference result;
  if (&a_database == &b_database && a_content_id == b_content_id) return result;
  ASSIGN_OR_RETURN(const std::vector<ComparedNode> a, LoadNodes(a_database, a_content_id));
  ASSIGN_OR_RETURN(const std::vector<ComparedNode> b, LoadNodes(b_database, b_content_id));
  const std::vector<EditStep> steps = AlignSequences(
      a.size(), b.size(), [&](std::size_t i, std::size_t j) { return AreEqual(a[i], b[j]); });
  for (const EditStep& step : steps) {
    if (step.kind == EditStep::Kind::kKeep) continue;
    result.differs = true;
    ++(step.kind == EditStep::Kind::kDelete ? result.only_in_a : result.only_in_b);
  }
  if (result.differs) SetFirstNodes(a, b, steps, result);
  result.is_of_parameters = ParametersOf(a) != ParametersOf(b);
  if (!result.differs)
    RETURN_IF_ERROR(CompareTexts(a_database, a_content_id, a, b_database, b_content_id, b, result));
  return result;
}

std::string NodeChange(const std::string& a_node, const std::string& b_node) {
  constexpr std::size_t kMostShown = 160;
  constexpr std::string_view kNoNode = "(no node)";
  return ChangeText(a_node.empty() ? kNoNode : std::string_view(a_node),
                    b_node.empty() ? kNoNode : std::string_view(b_node), kMostShown);
}

Result<bool> DifferInComments(Database& a_database, std::int64_t a_content_id, Database& b_database,
                              std::int64_t b_content_id) {
  ASSIGN_OR_RETURN(const std::optional<std::string> a, LoadText(a_database, a_content_id));
  ASSIGN_OR_RETURN(const std::optional<std::string> b, LoadText(b_database, b_content_id));
  return a && b && *a != *b && WithoutComments(*a) == WithoutComments(*b);
}

}  // namespace tlparse

#include "facts/cache/cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/ascii.h"
#include "facts/cache/component_index.h"
#include "facts/contents/graph_difference.h"
#include "facts/text/shorten.h"
#include "facts/text/text_diff.h"
#include "log/pytorch_names.h"
#include "store/hash128.h"

namespace tlparse {
namespace {

struct KindText {
  std::string_view name;
  std::string_view title;
};
constexpr std::array<KindText, 18> kCauseKinds = {{
    {"build", "another build"},
    {"config", "configuration differs"},
    {"setting", "a process setting differs"},
    {"component", "a component of the key differs"},
    {"process_group", "process-group name differs"},
    {"graph", "graph differs"},
    {"inputs", "inputs differ"},
    {"guard_miss", "guards do not hold"},
    {"remote_error", "the remote cache gave no answer"},
    {"bypass", "cache bypassed"},
    {"unstable", "equal text, different hash"},
    {"missing_compile", "no such compile"},
    {"missing_lookup", "no such lookup"},
    {"unknown", "cause unknown"},
    {"device", "device index"},
    {"rank_path", "a path that holds the rank"},
    {"storage", "storage state"},
    {"unlogged", "keys differ, the log does not show why"},
}};

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

CauseKind KindOf(const ComponentDifference& difference) {
  const std::string_view name = difference.name;
  const bool has_both = difference.a_value && difference.b_value;
  if (has_both && *difference.a_value != *difference.b_value) {
    const DesignNeutral a = NeutralizeDesign(name, *difference.a_value);
    const DesignNeutral b = NeutralizeDesign(name, *difference.b_value);
    if (a.text == b.text && (a.has_device || b.has_device)) return CauseKind::kDevice;
    if (a.text == b.text && (a.has_rank_path || b.has_rank_path)) return CauseKind::kRankPath;
  }
  const ComponentSubject subject = SubjectOfComponent(name);
  if (subject == ComponentSubject::kBuild) return CauseKind::kBuild;
  if (name == "gm" || name == "dynamo_output_graph") {
    if (has_both && *difference.a_value == *difference.b_value)
      return name == "gm" ? CauseKind::kUnstable : CauseKind::kGraph;
    if (has_both && WithoutGroups(*difference.a_value) == WithoutGroups(*difference.b_value))
      return CauseKind::kProcessGroup;
    return CauseKind::kGraph;
  }
  if (subject == ComponentSubject::kInputs) return CauseKind::kInputs;
  if (subject == ComponentSubject::kGraph) return CauseKind::kGraph;
  if (has_both && *difference.a_value == *difference.b_value &&
      difference.a_value->find("<bytes>") == std::string::npos) {
    return CauseKind::kUnstable;
  }
  if (subject == ComponentSubject::kConfig) return CauseKind::kConfig;
  return subject == ComponentSubject::kSetting ? CauseKind::kSetting : CauseKind::kComponent;
}

// Hashes differ although the texts are equal, in constants whose hash nothing but the protocol can change:
// the two processes pickle differently. That of a text, a list or a dictionary also depends on what was
// pickled before. Where both versions of Python are known, they say it.
bool LooksLikeAnotherPython(const std::vector<ComponentDifference>& differences,
                            const CauseContext& context) {
  if (!context.a_python_version.empty() && !context.b_python_version.empty()) return false;
  int count = 0;
  for (const ComponentDifference& difference : differences) {
    if (difference.a_value && difference.a_value == difference.b_value &&
        IsOneOf(*difference.a_value, {"False", "True", "None"})) {
      ++count;
    }
  }
  return count >= 3;
}

bool AreOfSizes(const std::vector<ComponentDifference>& differences) {
  return std::all_of(differences.begin(), differences.end(), [](const ComponentDifference& one) {
    return one.a_value && one.b_value && DigitsAsZero(*one.a_value) == DigitsAsZero(*one.b_value);
  });
}

// "TensorMetadata(a=1, shape=torch.Size([4, 4]))" → {"a": "1", "shape": "torch.Size([4, 4])"};
// empty if it is no such text.
std::vector<std::pair<std::string, std::string>> Fields(std::string_view value) {
  std::vector<std::pair<std::string, std::string>> fields;
  constexpr std::string_view kPrefix = "TensorMetadata(";
  if (!value.starts_with(kPrefix) || !value.ends_with(")")) return fields;
  value = value.substr(kPrefix.size(), value.size() - kPrefix.size() - 1);
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= value.size(); ++i) {
    if (i < value.size()) {
      if (value[i] == '(' || value[i] == '[') ++depth;
      if (value[i] == ')' || value[i] == ']') --depth;
      if (value[i] != ',' || depth != 0) continue;
    }
    const std::string_view field = value.substr(begin, i - begin);
    if (const std::size_t equals = field.find('='); equals != std::string_view::npos) {
      const std::size_t start = std::min(field.find_first_not_of(' '), equals);
      fields.emplace_back(field.substr(start, equals - start), field.substr(equals + 1));
    }
    begin = i + 1;
  }
  return fields;
}

std::string_view Plain(std::string_view value) {
  constexpr std::string_view kSize = "torch.Size(";
  if (value.starts_with(kSize) && value.ends_with(")"))
    return value.substr(kSize.size(), value.size() - kSize.size() - 1);
  return value;
}

std::string DescribeTexts(std::string_view a, std::string_view b) {
  std::optional<FirstDifference> first =
      FindFirstDifference(WithoutDeletions(a), WithoutDeletions(b));
  if (!first) first = FindFirstDifference(a, b);
  if (!first) return "the texts are equal";
  const auto [old_part, new_part] = DifferingAnnotations(first->a, first->b);
  return fmt::format("line {}: {}", first->a_line,
                     ChangeText(old_part.empty() ? "(end)" : old_part,
                                new_part.empty() ? "(end)" : new_part, 120));
}

std::string Versions(std::string_view what, const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || a == b ? std::string() : fmt::format("{} {} → {}", what, a, b);
}

std::string BuildText(const std::vector<ComponentDifference>& differences,
                      const CauseContext& context, bool is_python) {
  std::string text = Versions("torch", context.a_torch_version, context.b_torch_version);
  const std::string python = Versions("Python", context.a_python_version, context.b_python_version);
  // PyTorch 2.6 does not log them: that the builds differ is known from the hashes.
  const auto unknown = [](std::string_view what, const std::string& a, const std::string& b) {
    return a.empty() == b.empty()
               ? std::string()
               : fmt::format("{} {} → {}", what, a.empty() ? "(not in the log)" : a,
                             b.empty() ? "(not in the log)" : b);
  };
  if (text.empty()) text = unknown("torch", context.a_torch_version, context.b_torch_version);
  if (!python.empty()) text += (text.empty() ? "" : ", ") + python;
  for (const ComponentDifference& difference : differences) {
    const bool is_equal_text = difference.a_value == difference.b_value;
    if (!difference.name.starts_with("system_info") || (is_equal_text && !text.empty())) continue;
    text += (text.empty() ? "" : ", ") + difference.name + ' ' + DescribeChange(difference);
  }
  if (!text.empty()) return text;
  return is_python
             ? "constants of equal text have different hashes: another Python or pickle protocol"
             : "torch_version: another build of torch, though both logs name the same version or "
               "none";
}

// PyTorch sets it by the inputs that require gradients, and by the grad mode.
constexpr std::string_view kIsInference = "fx_kwargs[is_inference]";

std::string InferenceText(const ComponentDifference& difference) {
  return fmt::format("is_inference {}: {}", DescribeChange(difference),
                     difference.b_value == "True"
                         ? "gradients are not needed, as under torch.no_grad()"
                         : "gradients are needed");
}

// Their values say nothing of the difference: the names do.
std::string UnstableText(const std::vector<ComponentDifference>& differences) {
  constexpr std::size_t kMostNamed = 2;
  std::string text = "equal texts, other hashes: ";
  for (std::size_t i = 0; i < differences.size() && i < kMostNamed; ++i)
    text += (i == 0 ? "" : ", ") + differences[i].name;
  if (differences.size() > kMostNamed)
    text += fmt::format(" and {} more", differences.size() - kMostNamed);
  return text + "; a part of the value does not show";
}

std::string CauseText(CauseKind kind, const std::vector<ComponentDifference>& differences) {
  if (kind == CauseKind::kUnstable) return UnstableText(differences);
  std::string text;
  constexpr std::size_t kMostNamed = 3;
  for (std::size_t i = 0; i < differences.size() && i < kMostNamed; ++i) {
    if (!text.empty()) text += "; ";
    const std::string& name = differences[i].name;
    const bool has_lines = differences[i].a_value.value_or("").find('\n') != std::string::npos;
    if (name == kIsInference) {
      text += InferenceText(differences[i]);
      continue;
    }
    text += name == "gm" && has_lines
                ? "the graph that is the key's component gm, " + DescribeChange(differences[i])
                : name + ": " + DescribeChange(differences[i]);
  }
  if (differences.size() > kMostNamed)
    text += fmt::format("; and {} more", differences.size() - kMostNamed);
  return text;
}

}  // namespace

std::string GradientChange(const Cause& cause) {
  for (const std::vector<ComponentDifference>& all : {cause.differences, cause.explained}) {
    for (const ComponentDifference& one : all) {
      if (one.name == kIsInference) return InferenceText(one);
    }
  }
  return {};
}

std::string_view Name(CauseKind kind) { return kCauseKinds[static_cast<std::size_t>(kind)].name; }
std::string_view Title(CauseKind kind) { return kCauseKinds[static_cast<std::size_t>(kind)].title; }
bool IsNote(CauseKind kind) { return kind >= CauseKind::kDevice; }
bool IsExpected(CauseKind kind) { return IsNote(kind) || kind == CauseKind::kProcessGroup; }

std::string DescribeChange(const ComponentDifference& difference) {
  if (!difference.a_value)
    return fmt::format("only on this side ({})", Shorten(difference.b_value.value_or(""), 60));
  if (!difference.b_value)
    return fmt::format("not on this side ({})", Shorten(*difference.a_value, 60));
  const std::string& a = *difference.a_value;
  const std::string& b = *difference.b_value;
  if (a == b) return fmt::format("{} (the texts are equal, the hashes differ)", Shorten(a, 60));
  if (const auto old_fields = Fields(a), new_fields = Fields(b);
      !old_fields.empty() && !new_fields.empty()) {
    std::string text, by_design;
    for (const auto& [name, value] : old_fields) {
      const auto other =
          std::find_if(new_fields.begin(), new_fields.end(),
                       [&wanted = name](const auto& field) { return field.first == wanted; });
      if (other == new_fields.end() || other->second == value) continue;
      if (NeutralizeDesign(name, value).text == NeutralizeDesign(name, other->second).text) {
        by_design = fmt::format("{} → {}", value, other->second);
        continue;
      }
      text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", name, Plain(value),
                          Plain(other->second));
    }
    if (!text.empty() || !by_design.empty()) return text.empty() ? by_design : text;
  }
  if (a.find('\n') != std::string::npos || b.find('\n') != std::string::npos)
    return DescribeTexts(a, b);
  return ChangeText(a, b, 80);
}

ComponentDifference DescribeConfigChange(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> a_lines = SplitLines(a), b_lines = SplitLines(b);
  const auto only_in = [](const std::vector<std::string_view>& lines,
                          const std::vector<std::string_view>& others) {
    std::string text;
    for (const std::string_view line : lines) {
      if (std::find(others.begin(), others.end(), line) == others.end())
        text += Shorten(line, 200) + ' ';
    }
    return Shorten(text, 1000);
  };
  ComponentDifference difference;
  difference.name = "torch._functorch.config";
  difference.a_hash = ToHex(HashBytes(a));
  difference.b_hash = ToHex(HashBytes(b));
  difference.a_value = only_in(a_lines, b_lines);
  difference.b_value = only_in(b_lines, a_lines);
  return difference;
}

std::vector<Cause> FindCauses(std::vector<ComponentDifference> differences,
                              const CauseContext& context) {
  const bool is_python = LooksLikeAnotherPython(differences, context);
  std::map<CauseKind, Cause> causes;
  for (ComponentDifference& difference : differences) {
    difference.cause = KindOf(difference);
    causes[difference.cause].differences.push_back(std::move(difference));
  }
  const bool has_build = is_python || causes.count(CauseKind::kBuild) != 0 ||
                         !Versions("", context.a_torch_version, context.b_torch_version).empty() ||
                         !Versions("", context.a_python_version, context.b_python_version).empty();
  const auto explain = [&](CauseKind by, CauseKind what, auto&& applies) {
    const auto found = causes.find(what);
    if (found == causes.end()) return;
    std::vector<ComponentDifference> rest;
    for (ComponentDifference& difference : found->second.differences) {
      (applies(difference) ? causes[by].explained : rest).push_back(std::move(difference));
    }
    found->second.differences = std::move(rest);
    if (found->second.differences.empty() && found->second.explained.empty()) causes.erase(found);
  };
  const auto always = [](const ComponentDifference&) { return true; };
  const auto equal_text = [](const ComponentDifference& d) {
    return d.a_value && d.a_value == d.b_value;
  };
  const auto is_inference = [](const ComponentDifference& d) { return d.name == kIsInference; };
  if (causes.count(CauseKind::kInputs) != 0 && causes[CauseKind::kInputs].differences.size() > 1)
    explain(CauseKind::kInputs, CauseKind::kInputs, is_inference);
  if (has_build && !causes.empty()) {
    causes[CauseKind::kBuild];
    for (const CauseKind kind :
         {CauseKind::kConfig, CauseKind::kSetting, CauseKind::kComponent, CauseKind::kUnstable})
      explain(CauseKind::kBuild, kind, always);
    for (const CauseKind kind : {CauseKind::kInputs, CauseKind::kGraph})
      explain(CauseKind::kBuild, kind, equal_text);
  }
  // Sizes alone: the inputs are the cause and the graph follows. Otherwise other inputs follow from
  // another graph.
  if (causes.count(CauseKind::kInputs) != 0 && causes.count(CauseKind::kGraph) != 0) {
    const std::vector<ComponentDifference>& graphs = causes[CauseKind::kGraph].differences;
    const bool sizes_only =
        std::all_of(graphs.begin(), graphs.end(), [](const ComponentDifference& d) {
          return d.a_value && d.b_value && DigitsAsZero(*d.a_value) == DigitsAsZero(*d.b_value);
        });
    if (sizes_only) {
      explain(CauseKind::kInputs, CauseKind::kGraph, always);
    } else {
      explain(CauseKind::kGraph, CauseKind::kInputs, always);
    }
  }
  std::vector<Cause> result;
  for (auto& [kind, cause] : causes) {
    cause.kind = kind;
    cause.text = kind == CauseKind::kBuild ? BuildText(cause.differences, context, is_python)
                                           : CauseText(kind, cause.differences);
    cause.is_of_sizes = kind == CauseKind::kInputs && AreOfSizes(cause.differences);
    result.push_back(std::move(cause));
  }
  return result;
}

}  // namespace tlparse

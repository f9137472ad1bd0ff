#include "facts/ranks/aspect_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "facts/text/shorten.h"

namespace tlparse {

std::string FirstTitles(const Job& job, const std::vector<std::int32_t>& slots,
                        const std::vector<RankIndex>& who) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < slots.size() && i < kMost; ++i)
    text += (i == 0 ? "" : ", ") + job.SlotOf(slots[i], who).Title();
  if (slots.size() > kMost) text += fmt::format(" and {} more", slots.size() - kMost);
  return text;
}

std::string KeyText(const CacheFinding& finding, const std::string& where, bool is_reversed,
                    const std::string& whose) {
  const std::string on = whose.empty() ? "" : fmt::format("on {}: ", whose);
  std::string text;
  if (finding.cause.kind == CauseKind::kGraph) {
    const bool has_node = !finding.node.empty() || !finding.against_node.empty();
    text = fmt::format("{}: {}{}", where, on,
                       !has_node     ? finding.cause.text
                       : is_reversed ? NodeChange(finding.node, finding.against_node)
                                     : NodeChange(finding.against_node, finding.node));
  } else {
    const std::string cause = finding.cause.plain();
    text = fmt::format("{}{}: {}", on, Title(finding.cause.kind), cause);
    if (!cause.ends_with(" in " + where)) text += fmt::format(" (in {})", where);
  }
  if (!finding.source.empty())
    text += (finding.cause.kind == CauseKind::kGraph ? ", at " : "; first at ") + finding.source;
  return text;
}

std::vector<RankOption> OptionsOf(const Cause& cause) {
  std::vector<RankOption> options;
  for (const ComponentDifference& one : cause.differences)
    options.push_back({one.name, DescribeChange(one), one.a_value});
  return options;
}

std::string OptionsText(const std::vector<RankOption>& options, bool is_short) {
  constexpr std::size_t kMost = 300;
  std::string text;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (text.size() > kMost) return text + fmt::format("; and {} more", options.size() - i);
    const auto& [name, change, before] = options[i];
    const std::size_t bracket = name.find("_config[");
    const bool has_module = bracket != std::string::npos && name.ends_with(']');
    text += i == 0 ? "" : "; ";
    if (is_short && has_module) {
      const std::size_t begin = name.find('[') + 1;
      text += fmt::format("{} {}", name.substr(begin, name.size() - begin - 1), change);
    } else {
      text += fmt::format("{}: {}", name, change);
    }
  }
  return text;
}

std::string MismatchText(const std::string& graph, const CollectiveMismatch& first,
                         std::size_t count) {
  if (first.kind == MismatchKind::kState) {
    const bool is_here = first.ordinal >= 0;
    return fmt::format("{}: {} {} {}: {}", graph, is_here ? first.item : first.against_item,
                       count > 1 ? fmt::format("and {} more are", count - 1) : "is",
                       is_here ? "in the log here only" : "not in the log", first.reason);
  }
  std::string_view what;
  switch (first.kind) {
    case MismatchKind::kType:
      what = "another collective: ";
      break;
    case MismatchKind::kSize:
      what = "another shape: ";
      break;
    case MismatchKind::kDtype:
      what = "another dtype: ";
      break;
    case MismatchKind::kSyntax:
      what = "other arguments: ";
      break;
    case MismatchKind::kGroup:
      what = "another process group: ";
      break;
    default:
      break;
  }
  return fmt::format("in {}: {}{}{}", graph, what, first.Text(),
                     count > 1 ? fmt::format("; {} differences in all", count) : "");
}

std::string OrderText(const OrderDifference& first) {
  const std::string ran = fmt::format("{}", fmt::join(first.ran, ", "));
  const std::string others = fmt::format("{}", fmt::join(first.against_ran, ", "));
  const std::int64_t place = first.position + 1;
  if (first.against_ran.empty())
    return fmt::format("at #{}: ran {}, which others did not run there", place, ran);
  if (!first.ran.empty())
    return fmt::format("at #{}: ran {} where others ran {}", place, ran, others);
  return first.next.empty()
             ? fmt::format("nothing after #{}, where others ran {}", first.position, others)
             : fmt::format("at #{}: ran {} where others first ran {}", place, first.next, others);
}

RankAspect OfOtherGraph(std::int32_t slot, const std::string& title,
                        const GraphDifference& difference, bool is_state) {
  std::string change =
      difference.differs
          ? NodeChange(difference.a_node, difference.b_node)
          : std::string("the graphs are equal but for the lines of the user's code in them");
  if (difference.differs && !difference.Source().empty()) change += " at " + difference.Source();
  const char* const what = difference.differs ? "the Dynamo graph differs: " : "";
  RankAspect aspect = {AspectArea::kGraphs,
                       fmt::format("{}: {}{}", title, what, change),
                       {slot},
                       std::nullopt,
                       false,
                       is_state};
  aspect.change = fmt::format("{}: {}", title, change);
  if (difference.is_of_groups) aspect.cause = CauseKind::kProcessGroup;
  aspect.is_of_lines = !difference.differs;
  aspect.is_of_parameters = difference.is_of_parameters;
  aspect.is_of_numbers = difference.is_of_numbers;
  // A node that is computed has " = ": this one is an input.
  aspect.is_of_sizes = aspect.is_of_numbers && difference.a_node.find(" = ") == std::string::npos;
  return aspect;
}

}  // namespace tlparse

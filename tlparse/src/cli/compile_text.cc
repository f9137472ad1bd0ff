#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "cli/compile_output.h"
#include "cli/rank_output.h"
#include "cli/terminal.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostOfOneKind = 3;

struct Section {
  std::string name, text;  // without a name it continues the one before
  std::size_t weight = 1;  // how much of the room it may take
};

// "and 2 more (--json)" behind the first ones of a list.
void AddLeftOut(std::size_t count, std::vector<Section>& sections) {
  if (count > kMostOfOneKind)
    sections.push_back({"", fmt::format("and {} more (--json)", count - kMostOfOneKind)});
}

std::string PlaceOf(const CompilePlace& place) {
  std::string text = place.file.substr(place.file.rfind('/') + 1);
  if (place.line > 0) text += fmt::format(":{}", place.line);
  return text;
}

void Append(std::string& text, const std::string& part, std::string_view between = "; ") {
  if (part.empty()) return;
  if (!text.empty()) text += between;
  text += part;
}

std::string WithCode(const std::vector<TracedLine>& lines) {
  std::string text;
  for (const TracedLine& one : lines) {
    Append(text, LinesText({one}));
    if (!one.code.empty()) text += "  " + Shorten(one.code, 80);
  }
  return text;
}

std::string CallersText(const CompileAnswer& answer) {
  std::string text;
  for (const CompilePlace& one : answer.callers) {
    Append(text, fmt::format("{} in {}", PlaceOf(one), one.function), " ← ");
    if (!one.code.empty() && &one == answer.callers.data()) text += ": " + Shorten(one.code, 80);
  }
  return text;
}

std::string BasisText(const TracedLines& traced) {
  return traced.has_graph ? "" : " (it made no graph: lines where it made symbols)";
}

void AddLines(const CompileAnswer& answer, std::vector<Section>& sections) {
  std::string text = LinesText(answer.traced.lines);
  if (text.empty()) text = "no line of the user's is in its records";
  sections.push_back(
      {"traced", text + (answer.traced.lines.empty() ? "" : BasisText(answer.traced)), 2});
  if (answer.has_equal_lines) sections.back().text += "; the others the same";
  for (std::size_t i = 0; i < std::min(answer.other_lines.size(), kMostOfOneKind); ++i) {
    const LinesOfOtherRanks& one = answer.other_lines[i];
    std::string other = fmt::format(
        "{} went {}{}", one.ranks,
        one.traced.lines.empty() ? "no line that is known" : LinesText(one.traced.lines),
        BasisText(one.traced));
    if (!one.only_here.empty())
      Append(other, fmt::format("here, not there: {}", WithCode(one.only_here)), ". ");
    if (!one.only_there.empty())
      Append(other, fmt::format("there, not here: {}", WithCode(one.only_there)), ". ");
    sections.push_back({"", other, 3});
  }
  AddLeftOut(answer.other_lines.size(), sections);
}

// "from ranks 0,1: x: size [8] → [12]"
void AddChanges(const std::vector<OfOtherRanks>& changes, std::vector<Section>& sections) {
  for (std::size_t i = 0; i < std::min(changes.size(), kMostOfOneKind); ++i)
    sections.push_back({"", fmt::format("from {}: {}", changes[i].ranks, changes[i].text), 2});
  AddLeftOut(changes.size(), sections);
}

void AddInputs(const CompileAnswer& answer, std::vector<Section>& sections) {
  if (answer.inputs.empty()) return;
  constexpr std::size_t kMostNamed = 4;
  std::vector<const InputTensor*> order;
  for (const InputTensor& one : answer.inputs) order.push_back(&one);
  std::stable_partition(order.begin(), order.end(),
                        [](const InputTensor* one) { return !one->is_parameter; });
  std::string text = fmt::format("{}: ", Count(order.size(), "tensor"));
  for (std::size_t i = 0; i < order.size() && i < kMostNamed; ++i) {
    const std::string_view dtype = order[i]->dtype;
    text += fmt::format("{}{} {}{}", i == 0 ? "" : ", ", order[i]->name,
                        dtype.substr(dtype.rfind('.') + 1), order[i]->size);
  }
  if (order.size() > kMostNamed) text += fmt::format(", and {} more", order.size() - kMostNamed);
  sections.push_back({"inputs", std::move(text)});
  if (answer.has_equal_inputs) sections.back().text += "; those of the others are alike";
  AddChanges(answer.input_changes, sections);
}

void AddGuards(const CompileAnswer& answer, std::vector<Section>& sections) {
  if (answer.failed_guards.empty()) return;
  sections.push_back(
      {"guards", "compiled again " + FailedEntriesText(answer.failed_guards, "after "), 2});
}

std::string Seconds(std::int64_t us) { return HumanDuration(static_cast<double>(us) / 1e6); }

void AddTimes(const CompileAnswer& answer, std::vector<Section>& sections) {
  std::string text;
  for (const char* const phase : kCompilePhases) {
    const auto found = answer.phases.find(phase);
    if (found == answer.phases.end() || found->second == 0) continue;
    std::string name(phase);
    std::replace(name.begin(), name.end(), '_', ' ');
    Append(text, fmt::format("{} {}", name, Seconds(found->second)), ", ");
  }
  if (text.empty()) text = "not in the log";
  if (answer.least_other_s)
    Append(text, *answer.least_other_s == *answer.most_other_s
                     ? fmt::format("the others {}", HumanDuration(*answer.least_other_s))
                     : fmt::format("the others {} to {}", HumanDuration(*answer.least_other_s),
                                   HumanDuration(*answer.most_other_s)));
  sections.push_back({"time", std::move(text)});
}

void AddCaches(const CompileAnswer& answer, std::vector<Section>& sections) {
  if (answer.lookups.empty()) return;
  std::string text;
  for (const CompileLookup& one : answer.lookups) {
    std::string lookup = one.layer;
    if (!one.direction.empty()) lookup += " " + one.direction;
    lookup += " " + one.state;
    for (const std::string* const why : {&one.bypass_reason, &one.guard, &one.remote_error})
      if (!why->empty()) lookup += fmt::format(" ({})", Shorten(*why, 100));
    Append(text, lookup, ", ");
  }
  sections.push_back({"caches", std::move(text)});
  std::vector<std::string> causes = answer.missed_because;
  for (const OfOtherRanks& one : answer.cache_causes)
    causes.push_back(fmt::format("against {}: {}", one.ranks, one.text));
  for (std::size_t i = 0; i < std::min(causes.size(), kMostOfOneKind); ++i)
    sections.push_back({"", causes[i], 2});
  AddLeftOut(causes.size(), sections);
}

// Options that explain ends and times, where they are not as usual.
std::string TellingOptions(const CompileAnswer& answer) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kUsual = {
      {{"dynamo_config[suppress_errors]", "False"},
       {"dynamo_config[recompile_limit]", "8"},
       {"dynamo_config[cache_size_limit]", "8"},
       {"dynamo_config[assume_static_by_default]", "True"},
       {"dynamo_config[automatic_dynamic_shapes]", "True"},
       {"dynamo_config[capture_scalar_outputs]", "False"},
       {"dynamo_config[compiled_autograd]", "False"},
       {"dynamo_config[optimize_ddp]", "True"},
       {"inductor_config[cpp.cxx]", "[g++]"},
       {"inductor_config[force_disable_caches]", "False"},
       {"inductor_config[fx_graph_cache]", "True"},
       {"inductor_config[max_autotune]", "False"},
       {"inductor_config[freezing]", "False"},
       {"inductor_config[triton.cudagraphs]", "False"}}};
  std::string text;
  for (const auto& [name, usual] : kUsual) {
    const auto found = answer.options.find(std::string(name));
    if (found != answer.options.end() && found->second != usual)
      Append(text, fmt::format("{} = {}", name, Shorten(found->second, 120)));
  }
  return text;
}

void AddOptions(const CompileAnswer& answer, std::vector<Section>& sections) {
  std::string text;
  if (!answer.torch_version.empty()) text = "PyTorch " + answer.torch_version;
  Append(text,
         answer.options.empty() ? "the log does not have its options" : TellingOptions(answer));
  if (text.empty() && answer.option_changes.empty()) return;
  sections.push_back({"options", std::move(text)});
  if (!answer.options_unknown_of.empty())
    Append(sections.back().text,
           "those of " + answer.options_unknown_of + " are not in their logs");
  if (answer.has_equal_options) Append(sections.back().text, "as the others");
  AddChanges(answer.option_changes, sections);
}

// The message keeps its lines as far as it fits.
void AddEnd(const CompileAnswer& answer, std::vector<Section>& sections) {
  std::string text(Name(answer.status));
  if (answer.ends_in_backward) text += ", and the log ends inside its backward";
  for (const OfOtherRanks& one : answer.statuses)
    Append(text, fmt::format("{} {}", one.ranks, one.text));
  if (!answer.without.empty()) Append(text, answer.without + " did not compile it");
  sections.push_back({"status", std::move(text)});
  for (std::size_t i = 0; i < std::min(answer.graph_breaks.size(), kMostOfOneKind); ++i) {
    const CompilePlace& one = answer.graph_breaks[i];
    const std::string place = PlaceOf(one);
    sections.push_back(
        {"graph break", fmt::format("{}{}{}", place, place.empty() ? "" : ": ", one.code), 2});
  }
  AddLeftOut(answer.graph_breaks.size(), sections);
  // A restart of a graph break says the same.
  for (std::size_t i = 0; i < std::min(answer.exceptions.size(), kMostOfOneKind); ++i) {
    const CompileException& one = answer.exceptions[i];
    if (one.is_restart && !answer.graph_breaks.empty()) continue;
    std::string message = one.type;
    Append(message, one.message, ": ");
    const std::string place = PlaceOf(one.place);
    if (!place.empty()) message = fmt::format("at {}: {}", place, message);
    sections.push_back({one.is_restart ? "restart" : "exception", std::move(message), 8});
  }
}

void AddCudaGraphs(const CompileAnswer& answer, std::vector<Section>& sections) {
  std::string text;
  for (const CudaGraphRecordings& one : answer.cuda_graphs.recordings)
    Append(text, fmt::format("{} of the {} recorded in {}", one.count,
                             one.is_backward ? "backward" : "forward", HumanDuration(one.seconds)));
  for (const CudaGraphSkip& one : answer.cuda_graphs.skips)
    Append(text, "none recorded: " + one.reason);
  if (!answer.cuda_graphs.sizes.empty())
    Append(text, fmt::format("sizes {}", fmt::join(answer.cuda_graphs.sizes, ", ")));
  if (!text.empty()) sections.push_back({"CUDA graphs", std::move(text)});
}

void AddNext(const CompileAnswer& answer, std::vector<Section>& sections) {
  std::string text;
  if (!answer.next_label.empty()) {
    text = fmt::format("{} {} ({})", answer.next_label, answer.next_function, answer.next_status);
    if (answer.next_start_us && answer.start_us)
      text += fmt::format(", begun {} after this one",
                          Seconds(*answer.next_start_us - *answer.start_us));
  } else {
    text = "no later compile in this process";
    if (answer.last_record_us && answer.start_us)
      text += fmt::format("; its log ends {} after this one began",
                          Seconds(*answer.last_record_us - *answer.start_us));
  }
  sections.push_back({"next", std::move(text)});
}

// What a section takes when it is printed.
std::size_t PrintedSize(const Section& section, std::size_t most) {
  const std::size_t text = section.name.size() + std::min(section.text.size(), most);
  return text + (text / 70 + 1) * 7;
}

// Cuts the longest sections, in proportion to their weight, until all fit.
void FitSections(std::vector<Section>& sections, std::size_t room) {
  constexpr std::size_t kLeast = 50;
  for (std::size_t most = 600;; most -= most / 8) {
    std::size_t size = 0;
    for (const Section& one : sections) size += PrintedSize(one, most * one.weight);
    if (size > room && most > kLeast) continue;
    for (Section& one : sections) one.text = ShortenMiddle(one.text, most * one.weight);
    return;
  }
}

std::string Heading(const CompileAnswer& answer) {
  std::string text =
      fmt::format("{} {} on {}{}: {}", answer.label, answer.function.function, answer.who,
                  answer.role.empty() ? "" : " (" + answer.role + ")",
                  answer.ends_in_backward ? "its backward is unfinished" : Name(answer.status));
  if (answer.start_us)
    text += fmt::format(", begun {:%H:%M:%S}.{:03} UTC",
                        fmt::gmtime(static_cast<std::time_t>(*answer.start_us / 1'000'000)),
                        *answer.start_us / 1000 % 1000);
  return text;
}

std::string LogText(const CompileAnswer& answer) {
  std::string text = PlaceOf(answer.function);
  Append(text, fmt::format("log {}", PlaceOf({answer.log, {}, {}, answer.log_line})));
  Append(text, fmt::format("pid {}", answer.pid));
  if (answer.launch_count > 1)
    Append(text, fmt::format("launch {} of {}", answer.launch, answer.launch_count));
  return text;
}

}  // namespace

void PrintCompile(const CompileAnswer& answer) {
  std::vector<Section> sections = {{"function", LogText(answer)}};
  if (const std::string callers = CallersText(answer); !callers.empty())
    sections.push_back({"called from", callers, 2});
  AddLines(answer, sections);
  AddInputs(answer, sections);
  AddGuards(answer, sections);
  AddTimes(answer, sections);
  AddCaches(answer, sections);
  AddOptions(answer, sections);
  AddEnd(answer, sections);
  AddCudaGraphs(answer, sections);
  AddNext(answer, sections);
  const std::string heading = Shorten(Heading(answer), 200);
  FitSections(sections, kMostCompileText - heading.size() - 10);
  PrintHeading(heading);
  for (const Section& one : sections) {
    const bool is_more = one.name.empty();
    PrintWrapped(is_more ? one.text : fmt::format("{}: {}", one.name, one.text), is_more ? 4 : 2,
                 is_more ? 6 : 4);
  }
}

}  // namespace tlparse

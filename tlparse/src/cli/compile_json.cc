#include <optional>
#include <vector>

#include "base/fields.h"
#include "cli/compile_output.h"
#include "cli/compile_status_fields.h"
#include "cli/schemas.h"

namespace tlparse {
namespace {

constexpr std::string_view kStatesOfLookups[] = {"hit",    "miss",     "guard_miss",
                                                 "bypass", "disabled", "remote_error"};

struct NextCompile {
  std::string_view compile, function, status;
  std::optional<std::int64_t> start_us;
};

std::optional<NextCompile> NextOf(const CompileAnswer& of) {
  if (of.next_label.empty()) return std::nullopt;
  return NextCompile{of.next_label, of.next_function, of.next_status, of.next_start_us};
}

struct BreakOfGraph {
  const CompilePlace* place = nullptr;
};

std::vector<BreakOfGraph> BreaksOf(const CompileAnswer& of) {
  std::vector<BreakOfGraph> breaks;
  for (const CompilePlace& place : of.graph_breaks) breaks.push_back({&place});
  return breaks;
}

}  // namespace

template <>
struct FieldsOf<CompilePlace> {
  using Of = CompilePlace;
  static constexpr std::string_view name = "place";
  static constexpr FieldList list{
      Field{"file", OrNull{&Of::file}},
      Field{"line", Positive{&Of::line}},
      Field{"function", OrNull{&Of::function}},
      Field{"code", OrNull{&Of::code}},
  };
};

template <>
struct FieldsOf<BreakOfGraph> {
  using Of = BreakOfGraph;
  static constexpr FieldList list{
      Field{"cause", [](const Of& of) -> const std::string& { return of.place->code; }},
      Field{"file", [](const Of& of) { return OrNull{&CompilePlace::file}(*of.place); }},
      Field{"line", [](const Of& of) { return Positive{&CompilePlace::line}(*of.place); }},
  };
};

template <>
struct FieldsOf<CudaGraphRecordings> {
  using Of = CudaGraphRecordings;
  static constexpr FieldList list{
      Field{"is_backward", &Of::is_backward},
      Field{"count", &Of::count},
      Field{"seconds", &Of::seconds},
  };
};

template <>
struct FieldsOf<CudaGraphSkip> {
  using Of = CudaGraphSkip;
  static constexpr FieldList list{
      Field{"reason", &Of::reason},
      Field{"file", OrNull{&Of::file}},
      Field{"line", Positive{&Of::line}},
  };
};

template <>
struct FieldsOf<CudaGraphs> {
  using Of = CudaGraphs;
  static constexpr FieldList list{
      Field{"recordings", &Of::recordings, "when the compiled code ran, for each size of inputs"},
      Field{"skips", &Of::skips, "why none was recorded"},
      Field{"sizes", &Of::sizes,
            "for which graphs were recorded, where a text of TORCH_LOGS=cudagraphs tells it: "
            "integers among the inputs"},
  };
};

template <>
struct FieldsOf<TracedLine> {
  using Of = TracedLine;
  static constexpr FieldList list{
      Field{"file", &Of::file},
      Field{"line", &Of::line},
      Field{"code", OrNull{&Of::code}},
  };
};

template <>
struct FieldsOf<TracedLines> {
  using Of = TracedLines;
  static constexpr FieldList list{
      Field{"has_graph", &Of::has_graph},
      Field{"lines", &Of::lines},
  };
};

template <>
struct FieldsOf<LinesOfOtherRanks> {
  using Of = LinesOfOtherRanks;
  static constexpr FieldList list{
      Field{"ranks", &Of::ranks},
      Inlined{&Of::traced},
      Field{"only_here", &Of::only_here},
      Field{"only_there", &Of::only_there},
  };
};

template <>
struct FieldsOf<OfOtherRanks> {
  using Of = OfOtherRanks;
  static constexpr FieldList list{
      Field{"ranks", &Of::ranks},
      Field{"text", &Of::text},
  };
};

template <>
struct FieldsOf<InputTensor> {
  using Of = InputTensor;
  static constexpr FieldList list{
      Field{"name", &Of::name},
      Field{"dtype", &Of::dtype},
      Field{"size", &Of::size},
      Field{"is_parameter", &Of::is_parameter},
  };
};

template <>
struct FieldsOf<FailedEntry> {
  using Of = FailedEntry;
  static constexpr FieldList list{
      Field{"after", OrNull{&Of::label}, "label of the earlier compile"},
      Field{"guard", [](const Of& of) -> const std::string& { return of.reason.text; }},
  };
};

template <>
struct FieldsOf<CompileLookup> {
  using Of = CompileLookup;
  static constexpr FieldList list{
      Field{"layer", &Of::layer},
      Field{"state", &Of::state, "", kStatesOfLookups},
      Field{"direction", OrNull{&Of::direction}},
      Field{"key", OrNull{&Of::key}},
      Field{"bypass_reason", OrNull{&Of::bypass_reason}},
      Field{"guard", OrNull{&Of::guard}, "that failed"},
      Field{"remote_error", OrNull{&Of::remote_error}},
  };
};

template <>
struct FieldsOf<CompileException> {
  using Of = CompileException;
  static constexpr FieldList list{
      Field{"is_restart", &Of::is_restart, "the compile began again after it"},
      Field{"type", OrNull{&Of::type}},
      Field{"message", OrNull{&Of::message}, "whole"},
      Field{"place", &Of::place},
  };
};

template <>
struct FieldsOf<NextCompile> {
  using Of = NextCompile;
  static constexpr FieldList list{
      Field{"compile", &Of::compile},
      Field{"function",
            [](const Of& of) {
              return of.function.empty() ? std::nullopt : std::optional(of.function);
            }},
      Field{"status", &Of::status},
      Field{"start_us", &Of::start_us},
  };
};

template <>
struct FieldsOf<CompileAnswer> {
  using Of = CompileAnswer;
  static constexpr std::string_view description =
      "One compile on one rank. Others are the ranks of its role that have the same compile. Times "
      "are microseconds since the epoch, UTC; null: unknown.";
  static constexpr FieldList list{
      Field{"run", &Of::run},
      Field{"launch", AtLeast<1>(&Of::launch)},
      Field{"launch_count", AtLeast<1>(&Of::launch_count)},
      Field{"compile", &Of::label, "its label; 1/0#2: of its second use after a reset"},
      Field{"rank", &Of::rank},
      Field{"who", &Of::who, "the rank, log or process in words"},
      Field{"role", OrNull{&Of::role}, "null: ranks have one role, or none is known"},
      Field{"status", &Of::status},
      Field{"ends_in_backward", &Of::ends_in_backward,
            "the log ends inside the compile of its backward"},
      Field{"function", &Of::function},
      Field{"start_us", &Of::start_us},
      Field{"pid", &Of::pid},
      Field{"process_id", &Of::process_id},
      Field{"compile_id", &Of::id},
      Field{"log", &Of::log},
      Field{"log_line", Positive{&Of::log_line}, "of its first record"},
      Field{"callers", &Of::callers,
            "frames of the user's above it, innermost first; the log may lack those next to it"},
      Field{"traced", &Of::traced,
            "lines of the user's that nodes of its graph and guards come from; without a graph "
            "those at which it made symbols"},
      Field{"other_lines", &Of::other_lines, "others that traced other lines"},
      Field{"inputs", &Of::inputs},
      Field{"input_changes", &Of::input_changes,
            "from the inputs of others to these; at most 16 others are compared"},
      Field{"failed_guards", &Of::failed_guards, "why it was compiled again"},
      Field{"phases_us", &Of::phases},
      Field{"least_other_s", &Of::least_other_s, "whole time of the others that finished it"},
      Field{"most_other_s", &Of::most_other_s},
      Field{"lookups", &Of::lookups},
      Field{"cache_causes", &Of::cache_causes, "why lookups ended otherwise than those of others"},
      Field{"missed_because", &Of::missed_because,
            "the earlier keys with the fewest differences, and what differs"},
      Field{"statuses", &Of::statuses, "status of the others"},
      Field{"without", OrNull{&Of::without}, "ranks of the role that do not have the compile"},
      Field{"graph_breaks", &BreaksOf},
      Field{"cuda_graphs", &Of::cuda_graphs},
      Field{"exceptions", &Of::exceptions},
      Field{"next", &NextOf, "the compile that the process began next; null: none"},
      Field{"last_record_us", &Of::last_record_us, "of the process"},
      Field{"torch_version", OrNull{&Of::torch_version}},
      Field{"python_version", OrNull{&Of::python_version}},
      Field{"option_changes", &Of::option_changes, "from the options of others to these"},
      Field{"options_unknown_of", OrNull{&Of::options_unknown_of},
            "others whose metrics of this compile have no options"},
      Field{"options", &Of::options,
            "as the metrics of the compile have them; empty: not in the log"},
  };
};

JsonWriter CompileJson(const CompileAnswer& answer) { return ToJson(answer); }
std::string CompileSchema() { return SchemaOf<CompileAnswer>("tlparse compile --json"); }

}  // namespace tlparse

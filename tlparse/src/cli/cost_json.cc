#include <algorithm>
#include <span>

#include "base/fields.h"
#include "cli/cost_output.h"
#include "cli/schemas.h"

namespace tlparse {

TimeName NameOf(CostTime time) {
  switch (time) {
    case CostTime::kKernels:
      break;
    case CostTime::kCallsOnCpu:
      return {"graph_calls_on_cpu", "CPU time"};
    case CostTime::kOpsOnCpu:
      return {"ops_on_cpu", "CPU time"};
    case CostTime::kOpsOnDevice:
      return {"ops_on_device", "kernel time"};
    case CostTime::kModulesOnCpu:
      return {"modules_on_cpu", "CPU time"};
  }
  return {"kernels", "kernel time"};
}

namespace {

struct InCost {
  std::string_view by;
  std::size_t top = 0;
};

constexpr std::string_view kWordsOfBy[] = {"line", "kernel", "node", "graph", "op", "module"};
constexpr std::string_view kTimes[] = {"kernels", "graph_calls_on_cpu", "ops_on_cpu",
                                       "ops_on_device", "modules_on_cpu"};

template <double CostProfile::*member>
std::optional<double> IfDevices(const CostProfile& of) {
  return of.devices.empty() ? std::nullopt : std::optional(of.*member);
}

constexpr std::string_view kOutsideKinds[] = {"annotation", "op", "neither"};
constexpr std::size_t kMostOutside = 10;

std::span<const CostProfile::Outside> TopOutside(const CostProfile& of) {
  return std::span(of.outside).first(std::min(kMostOutside, of.outside.size()));
}

double OutsideRestUs(const CostProfile& of) {
  double us = 0;
  for (std::size_t i = kMostOutside; i < of.outside.size(); ++i) us += of.outside[i].us;
  return us;
}

std::span<const CostRow> TopRows(const CostAnswer& of, const InCost& in) {
  return std::span(of.rows).first(std::min(in.top, of.rows.size()));
}

}  // namespace

template <>
struct FieldsOf<CostProfile::Device> {
  using Of = CostProfile::Device;
  static constexpr FieldList list{
      Field{"device", &Of::device},
      Field{"kernels", &Of::kernels, "that ran in the device's window, wholly or in part"},
      Field{"has_own_steps", &Of::has_own_steps,
            "the file marks the steps on the device: its window is theirs, else that of the "
            "profile"},
      Field{"window_us", &Of::window_us},
      Field{"busy_us", &Of::busy_us, "some kernel or copy ran"},
      Field{"idle_us", &Of::idle_us, "none did"},
  };
};

template <>
struct FieldsOf<CostProfile::Outside> {
  using Of = CostProfile::Outside;
  static constexpr FieldList list{
      Field{
          "kind", [](const Of& of) { return kOutsideKinds[static_cast<std::size_t>(of.kind)]; },
          "annotation: the innermost record_function() that was open. op: none was, the outermost "
          "op. neither: Python, or a wait for another thread.",
          kOutsideKinds},
      Field{"name", OrNull{&Of::name}, "null: neither"},
      Field{"us", &Of::us},
  };
};

template <>
struct FieldsOf<CostProfile> {
  using Of = CostProfile;
  static constexpr FieldList list{
      Field{"path", &Of::path},
      Field{"rank", &Of::rank},
      Field{"launch", &Of::launch,
            "ordinal of the launch of its process; null: no log of the process"},
      Field{"steps", &Of::steps, "0: the profile marks none"},
      Field{"start_us", [](const Of& of) { return static_cast<double>(of.start_ns) / 1e3; },
            "since the epoch, UTC"},
      Field{"window_us", &Of::window_us},
      Field{"compiled_us", &Of::compiled_us, "a call of a compiled graph was open on the CPU"},
      Field{"unmarked_us", &Of::unmarked_us,
            "none was, but a kernel of Inductor ran or was enqueued: the code of an AOTInductor "
            "package, whose calls no profile shows, or of calls that the file lost"},
      Field{"outside_us", &Of::outside_us,
            "neither; where unmarked_us is above 0, some of it may be compiled code too"},
      Field{"outside", &TopOutside,
            "in what the thread of the steps was during outside_us: the ten longest parts; empty: "
            "the profile marks no steps"},
      Field{"outside_rest_us", &OutsideRestUs, "of the other parts"},
      Field{"compile_us", &Of::compile_us,
            "a compile of the process was under way, as its log tells; null: no log of the "
            "process"},
      Field{"kernel_us", &Of::kernel_us,
            "sum of the kernel runs that the window enqueued; null: none"},
      Field{"joined_kernel_us", &Of::joined_kernel_us,
            "of those that belong to a kernel of a log or package"},
      Field{"device_in_calls_us", &IfDevices<&Of::device_in_calls_us>,
            "kernels on devices that calls of compiled graphs enqueued; null: none ran on a "
            "device"},
      Field{"device_outside_us", &IfDevices<&Of::device_outside_us>,
            "those that something else enqueued"},
      Field{"device_unknown_us", &IfDevices<&Of::device_unknown_us>,
            "those whose launch is not in the file, and kernels of Inductor without a graph call "
            "in it: a call of a compiled graph may have enqueued them"},
      Field{"device_replay_us", &IfDevices<&Of::device_replay_us>,
            "those of replays of CUDA graphs outside of such calls"},
      Field{"device_in_graphs_us", &IfDevices<&Of::device_in_graphs_us>,
            "of all kernels on devices those that replays of CUDA graphs ran, as far as the file "
            "holds their launches"},
      Field{"replays", &Of::replays, "of CUDA graphs, whose kernels these are"},
      Field{"wait_us", &Of::wait_us,
            "waits for collectives (wait_tensor) on the CPU, which are no kernels"},
      Field{"collective_us", &Of::collective_us,
            "of the kernels on devices those of collectives, which wait for other ranks too"},
      Field{"problems", &Of::problems, "what of the file is not counted: it is cut or damaged"},
      Field{"devices", &Of::devices},
  };
};

template <>
struct FieldsOf<CostRow> {
  using Of = CostRow;
  static constexpr FieldList list{
      Field{"name", OrNull{&Of::name},
            "kernel, node, op; of a graph its function; of a line its code; of a module its path "
            "(Model_0/Encoder_0), null: kernels that were enqueued while no module was open"},
      Field{"label", OrNull{&Of::label},
            "compile id of the log; of kernels and graphs without a log that of their region; of "
            "lines only where the line is not known"},
      Field{"region", OrNull{&Of::region},
            "kernels, graphs: compile id in the name of the profile's region (Torch-Compiled "
            "Region: 0/0) in which they were enqueued or ran; of a backward that of its forward; "
            "null: the profile has none"},
      Field{"generation", &Of::generation,
            "of the compile id: how often torch._dynamo.reset() came before"},
      Field{"rank", &Of::rank, "kernels, nodes, graphs"},
      Field{"launch", &Of::launch, "kernels, nodes, graphs: ordinal"},
      Field{"key", OrNull{&Of::key},
            "cache key of a graph, of kernels that of the graph whose call enqueued them, by the "
            "log or the profile (## Call CompiledFxGraph KEY ##)"},
      Field{"direction", OrNull{&Of::direction}},
      Field{"file", OrNull{&Of::file},
            "of a line; of a Triton kernel that of its source, if the profile names it "
            "(kernel_file)"},
      Field{"line", &Of::line},
      Field{"function", OrNull{&Of::function}},
      Field{"kernel_id", &Of::kernel_id},
      Field{"graph_id", &Of::graph_id},
      Field{"debug_handle", &Of::debug_handle},
      Field{"lines", OrNull{&Of::lines}, "of a kernel: file:line, …"},
      Field{"grid", OrNull{&Of::grid}},
      Field{"calls", &Of::calls},
      Field{"inclusive_us", &Of::inclusive_us,
            "all of the kernels' time, to each line and node; ops and modules with those inside"},
      Field{"share_us", &Of::share_us,
            "the time that `time` names, divided among the rows: adds up over them"},
      Field{"share", &Of::share, "of the sum of share_us, 0 to 1"},
      Field{"longest_us", &Of::longest_us, "kernels: of one run; graphs: of one call"},
      Field{"device_us", &Of::device_us,
            "graphs and ops: device kernels that they enqueued; modules: kernels, without those "
            "of the modules inside"},
      Field{"cpu_us", &Of::cpu_us, "ops and modules: on the CPU, without those inside"},
      Field{"compile_us", &Of::compile_us,
            "of all graphs of the compile's forward, or of its backward where the log measured "
            "that (a backward that it did not has null), in the row of the costliest of them; "
            "null in the others"},
      Field{"estimated_us", &Of::estimated_us, "kernels: of one run, as the compiler expected"},
      Field{"peak_bytes", &Of::peak_bytes,
            "lines, kernels, nodes and graphs: alive at the peak of a recording of the allocator "
            "of these processes (tlparse memory), of several the most; of a node all blocks of "
            "each of its kernels; null: none says that it held anything"},
      Field{"join_note", OrNull{&Of::join_note},
            "why a row belongs to no kernel or graph of the log, or a backward has no compile "
            "time"},
  };
};

template <>
struct FieldsOf<CostAnswer> {
  using Of = CostAnswer;
  static constexpr FieldList list{
      Field{"by", [](const Of&, const InCost& in) { return in.by; }, "", kWordsOfBy},
      Field{"time", [](const Of& of) { return NameOf(of.time).name; },
            "What share_us is a time of, and what rows are sorted by. kernels: runs of kernels "
            "(lines, kernels, nodes; modules where devices ran any). graph_calls_on_cpu: calls of "
            "graphs, as the CPU waited for them. ops_on_cpu: ops, each without the ops inside it; "
            "no kernel ran on a device. ops_on_device: device kernels, each counted for the "
            "innermost op that enqueued it; kernels that no op enqueued have a row for each "
            "reason (join_note), without a name, whose calls are their number. modules_on_cpu: "
            "modules, each without the modules inside it; no device ran a kernel.",
            kTimes},
      Field{"profiles", &Of::profiles,
            "What is counted: of each profile its steps, or all of it if it marks none."},
      Field{"rows", &TopRows,
            "By share_us, highest first; members that a question does not have are null."},
      Field{"row_count", [](const Of& of) { return of.rows.size(); }, "rows without --top"},
      Field{"notes", &Of::notes},
  };
};

JsonWriter CostJson(const CostAnswer& answer, std::string_view by, std::size_t top) {
  return ToJson(answer, InCost{by, top});
}
std::string CostSchema() { return SchemaOf<CostAnswer, InCost>("tlparse cost --json"); }

}  // namespace tlparse

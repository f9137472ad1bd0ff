// Where the time of the profiled steps went.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/job/asked_participant.h"
#include "store/database.h"

namespace tlparse {

enum class CostBy : std::uint8_t { kLine, kKernel, kNode, kGraph, kOp, kModule };

// What CostRow::share_us measures.
enum class CostTime : std::uint8_t {
  kKernels,       // runs of kernels: lines, kernels, nodes; modules where devices ran any
  kCallsOnCpu,    // calls of graphs on the CPU
  kOpsOnCpu,      // ops on the CPU, each without the ops inside it; no op enqueued device work
  kOpsOnDevice,   // device kernels that ops enqueued, each counted for the innermost op
  kModulesOnCpu,  // modules on the CPU, each without the modules inside it
};

struct CostOptions {
  std::int64_t run_id = 0;
  CostBy by = CostBy::kLine;
  AskedParticipant asked;
  std::optional<std::int64_t> profile_id;  // this one alone
  std::vector<std::int64_t> process_ids;   // profiles of these processes only; empty: all
  std::optional<std::int64_t> first_step;  // of ProfilerStep#n; nothing: all steps of each profile
  std::optional<std::int64_t> last_step;
};

// What the time outside of calls of compiled graphs was.
enum class OutsideKind : std::uint8_t {
  kAnnotation,  // the innermost record_function() that was open
  kOp,          // none was: the outermost op
  kNeither,     // Python, or a wait for another thread
};

// The counted part of one profile: its steps, or all of it if it marks none.
struct CostProfile {
  // Of the thread of the steps.
  struct Outside {
    OutsideKind kind = OutsideKind::kNeither;
    std::string name;  // kNeither: empty
    double us = 0;
  };
  struct Device {
    std::int64_t device = 0;
    std::int64_t kernels = 0;  // that ran in that window, wholly or in part
    // Where the file marks the steps on the device, from the first to the end of the last; else the
    // profile's window.
    bool has_own_steps = false;
    double window_us = 0;
    double busy_us = 0;  // some kernel or copy ran in that window
    double idle_us = 0;  // none ran
  };
  std::int64_t id = 0;
  std::string path;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> launch;      // ordinal; nothing: no log of the process
  std::int64_t steps = 0;                  // 0: the profile marks none
  std::optional<std::int64_t> first_step;  // numbers of the steps that are counted
  std::optional<std::int64_t> last_step;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  double window_us = 0;
  double compiled_us = 0;  // some graph call was open on the CPU
  // None was, but a kernel of Inductor ran on the CPU, or one was enqueued: the code of an AOTInductor
  // package, whose calls no profile shows, or of calls that the file lost.
  double unmarked_us = 0;
  double outside_us = 0;  // neither; with unmarked_us some of it may be compiled code too
  // Its parts by what the thread of the steps was in, longest first: they add up to outside_us.
  // Empty: the profile marks no steps.
  std::vector<Outside> outside;
  // A compile of the process was under way, by its log; nothing: no log.
  std::optional<double> compile_us;
  // Sum of the kernel runs that the window enqueued, on all devices and threads; nothing: the profile recorded none.
  std::optional<double> kernel_us;
  double joined_kernel_us = 0;  // of those that belong to a kernel of a log or package
  // Time of kernels on devices by what enqueued them: calls of compiled graphs; something else; not
  // in the file, which lacks the call that enqueued the kernel, or the graph call around it.
  double device_in_calls_us = 0;
  double device_outside_us = 0;
  double device_unknown_us = 0;
  double device_replay_us = 0;     // of what is left: replays of CUDA graphs outside of such calls
  double device_in_graphs_us = 0;  // of all of these: what replays of CUDA graphs ran
  std::int64_t replays = 0;        // of CUDA graphs, whose work the file holds
  // Waits for collectives (wait_tensor) on the CPU, which are no kernels; of the kernels on devices
  // those of collectives, which wait for other ranks too.
  double wait_us = 0;
  double collective_us = 0;
  std::optional<std::int64_t> process_id;  // that was measured; nothing: no log of it
  std::vector<std::string> problems;       // what is missing in the file: cut, damaged
  std::vector<Device> devices;
};

// Members that do not apply to a question stay empty.
struct CostRow {
  std::string name;    // kernel, node, op; of a graph its function; of a line its code; of a
                       // module its path, empty: kernels of no module
  std::string label;   // compile; of kernels and graphs without a log that of their region
  std::string region;  // kernels, graphs: label of the region of the profile in which they ran
  // Of the label: how often torch._dynamo.reset() came before.
  std::optional<std::int64_t> generation;
  std::optional<std::int64_t> rank;    // kernels, nodes, graphs
  std::optional<std::int64_t> launch;  // the same
  std::string key;                     // cache key of a graph, or of that of a kernel
  std::string direction;               // of the graph
  std::string file;  // lines; kernels of Triton: the file of their source, as the profile names it
  std::optional<std::int64_t> line;
  std::string function;
  std::optional<std::int64_t> kernel_id, graph_id, debug_handle;
  std::string lines;  // of a kernel: file:line, …
  std::string grid, block;
  std::int64_t calls = 0;
  double inclusive_us = 0;
  double share_us = 0;               // adds up over the rows
  double share = 0;                  // of all rows' share_us, 0 … 1
  std::optional<double> longest_us;  // kernels: of one run; graphs: of one call
  std::optional<double> device_us;   // graphs, ops; modules: kernels, without the modules inside
  std::optional<double> cpu_us;      // ops, modules: without those inside
  // Of all graphs of its compile's forward, or of its backward where the log measured that; in the
  // row of the costliest of them only. A backward that was not measured has none.
  std::optional<double> compile_us;
  std::optional<double> estimated_us;  // kernels: of one run, by the compiler
  // Lines, kernels, nodes, graphs: alive at the peak of the processes' memory (peak_bytes.h).
  std::optional<std::int64_t> peak_bytes;
  // Of kernels why they have no kernel_id; of graphs why there is no graph or no compile time.
  std::string join_note;
};

struct CostAnswer {
  std::vector<CostProfile> profiles;
  CostTime time = CostTime::kKernels;
  std::vector<CostRow> rows;  // by share_us, highest first
  std::vector<std::string> notes;
};

// kNotFound: the run has no profile (of this rank, with these steps).
Result<CostAnswer> Cost(Database& database, const CostOptions& options);
// Several questions about the same profiles, one answer for each; `options.by` is ignored.
Result<std::vector<CostAnswer>> Costs(Database& database, const CostOptions& options,
                                      std::span<const CostBy> questions);

// Whether the profile names modules: without them CostBy::kModule has no answer.
Result<bool> HasModules(Database& database, std::int64_t profile_id);

}  // namespace tlparse

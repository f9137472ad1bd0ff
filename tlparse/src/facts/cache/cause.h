// Explains why two cache keys differ: groups differing components by cause, the most significant
// first; causes that follow from another one are counted under it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tlparse {

// In the order in which they are reported: the most helpful first.
enum class CauseKind : std::uint8_t {
  kBuild,           // another torch, Python or CUDA
  kConfig,          // a compiler option
  kSetting,         // a setting of the process: default dtype, thread count, determinism, …
  kComponent,       // a component of a cache that is not PyTorch's
  kProcessGroup,    // the graphs differ in the names of process groups only
  kGraph,           // the graphs differ
  kInputs,          // shape, stride, dtype, … of inputs
  kGuardMiss,       // entries exist, but the guards of all fail
  kRemoteError,     // the remote store gave no usable answer
  kBypass,          // the cache was bypassed
  kUnstable,        // texts are equal, hashes are not: part of the value is not in the text
  kMissingCompile,  // no such compile on one side
  kMissingLookup,   // one side has the compile, but not the lookup
  kUnknown,         // keys differ, nothing in the log does
  // Expected differences of a job of several ranks, or of a cache: notes.
  kDevice,    // device index
  kRankPath,  // a path that holds the rank
  kStorage,   // same key, one side has no entry
  kUnlogged,  // keys differ, no logged component does (DTensor of 2.14): not a
              // divergence of inputs
};
std::string_view Name(CauseKind kind);   // "build", "config", … in JSON and SQL
std::string_view Title(CauseKind kind);  // "another build", …
// Notes neither set ranks apart nor fail a check.
bool IsNote(CauseKind kind);
// Notes, and names of process groups: healthy ranks differ in them.
bool IsExpected(CauseKind kind);

// A component whose hash differs, or that one side lacks. Side a is the one that is compared with
// (the majority, the earlier run).
struct ComponentDifference {
  std::string name;
  std::optional<std::string> a_hash, b_hash;  // nullopt: not on that side
  std::optional<std::string> a_value, b_value;
  CauseKind cause = CauseKind::kUnknown;
};

struct Cause {
  CauseKind kind = CauseKind::kUnknown;
  std::string text;  // one line: what differs, from what to what
  std::vector<ComponentDifference> differences;
  // Differences that this cause explains (another build changes hundreds of config hashes).
  std::vector<ComponentDifference> explained;
  bool is_of_sizes = false;  // kInputs: in numbers alone, as where ranks got other sizes of data
  bool is_of_first_stage = false;  // kInputs: as of a pipeline, whose first input needs no gradient
  // kGuardMiss, kRemoteError, kBypass: what one side has and the other has not, without which side;
  // and whether that is side a.
  std::string reason = {};
  bool is_of_first = false;
  // kMissingCompile of recompiles: "because …" of one, "twice (…)" of several; empty: not known.
  std::string recompiled = {};
  // The text without the side.
  const std::string& plain() const { return reason.empty() ? text : reason; }
};

// "is_inference False → True: gradients are not needed, as under torch.no_grad()", if that is among
// what the cause names or explains; else empty.
std::string GradientChange(const Cause& cause);

// What is known about the two sides in addition to the components.
struct CauseContext {
  std::string a_torch_version, b_torch_version;  // empty: unknown
  std::string a_python_version, b_python_version;
};

// Groups the differences. Deterministic; a pure function of its arguments.
std::vector<Cause> FindCauses(std::vector<ComponentDifference> differences,
                              const CauseContext& context);

// The change between two values of one component: "shape [8, 16] → [12, 16]", "64 → 13".
std::string DescribeChange(const ComponentDifference& difference);

// Two texts of torch._functorch.config as a difference of that name: the values are the lines that
// only one side has.
ComponentDifference DescribeConfigChange(std::string_view a, std::string_view b);

}  // namespace tlparse

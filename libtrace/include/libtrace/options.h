// Options of a trace, and every environment variable that libtrace reads.
//
//   variable                 meaning                                                    default
//   TORCH_TRACE=<dir>        trace into files in this directory (as PyTorch)            off
//   TORCH_DTRACE=<dir>       the same, with detail records; wins over TORCH_TRACE       off
//   LIBTRACE_DIR=<dir>       trace this library only; wins over both                    off
//   LIBTRACE_DETAIL=1        detail records, whichever directory is used                0
//   LIBTRACE_DISABLE=1       never trace, regardless of other variables                 0
//   RANK=<n>                 rank of this process until SetRank() says otherwise        none
//   LIBTRACE_ASYNC=block|drop|off  write from a thread of our own; what to do when the  off
//                            queue is full
//   LIBTRACE_QUEUE_BYTES=<n> size of that queue                                         64 MiB
//   LIBTRACE_ROTATE_BYTES=<n>  begin a new file when one is this large; 0 = never       0
//   LIBTRACE_BUDGET_BYTES=<n>  delete our oldest files beyond this sum; 0 = never       0
//   LIBTRACE_MAX_PAYLOAD_BYTES=<n>  larger payloads are left out, and counted           1 GiB
//   LIBTRACE_LIMITS=<kind>=100/s,<kind>=1/50  at most 100 records of a kind in a second; none
//                            one of 50; the others are left out, and counted
//   LIBTRACE_STACKS=off|site|full  stack of records outside a compile: none, the call   site
//                            site, the C++ stack
//   LIBTRACE_PROVENANCE=off|default|full  how much libtrace::torch records about where  default
//                            kernels and nodes come from
//   LIBTRACE_SOURCE_ROOT=<dir>  prefix cut off the file names of prefixes               none
//   LIBTRACE_CUPTI=<file>    the CUPTI that libtrace::cuda opens instead of the         none
//                            installed one
//
// Sizes take a suffix K, M or G (powers of 1024). A value that cannot be read is reported once
// (on_error); the default is used. The caches have no variables: their options are arguments. In a
// set-user-ID program no variable has an effect, RANK neither.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libtrace/call_site.h"
#include "libtrace/export.h"
#include "libtrace/loss.h"

namespace libtrace LIBTRACE_EXPORT {

class Sink;  // libtrace/sink.h

enum class AsyncMode {
  kOff,    // Emit() writes the record itself
  kBlock,  // Emit() waits for room at most Options::max_block, then drops
  kDrop,   // Emit() drops when there is no room
};

enum class StackMode { kOff, kCallSite, kBacktrace };
enum class ProvenanceLevel { kOff, kDefault, kFull };

// Kind of a record: its key, the name of an artifact, or the name of a timed span or an instant. A
// span is written or left out as a whole. What readers need to tell compiles apart
// (`dynamo_start`, `compilation_metrics`) is better not limited.
struct RecordLimit {
  std::string kind{};
  uint32_t per_second = 0;  // 0 = any number
  uint32_t one_of = 1;      // the first of so many is written
};

struct Options {
  // Directory of the files `dedicated_log_torch_trace_[rank_<N>_]<8 random>.log`, mode 0600. It is
  // created with its parents when the first record is written, not by a program that emits nothing.
  std::string directory{};
  // Instead of files, see libtrace/sink.h.
  std::shared_ptr<Sink> sink{};

  bool detail = false;  // records of the D class (PyTorch's dtrace_structured)
  std::optional<uint32_t> rank{};
  StackMode stacks = StackMode::kCallSite;
  ProvenanceLevel provenance = ProvenanceLevel::kDefault;
  std::string source_root{};

  AsyncMode async = AsyncMode::kOff;
  uint64_t queue_size_bytes = uint64_t{64} << 20;
  std::chrono::milliseconds max_block{5000};
  std::chrono::milliseconds max_exit_delay{2000};  // for writing the queue at exit

  uint64_t rotate_size_bytes = 0;
  uint64_t budget_size_bytes = 0;
  uint64_t max_payload_size_bytes = uint64_t{1} << 30;

  // Kinds of record of which not all are written. Nothing is built for one that is left out; it is
  // counted (LossKind::kLimited), and the log says how many. The last limit of a kind counts.
  std::vector<RecordLimit> limits{};

  // Called once per kind of loss and once per unusable option, with one sentence; never while a
  // lock of ours is held; may throw (ignored) and may emit. Default: one line on stderr.
  std::function<void(LossKind, const std::string& message)> on_error{};

  // What FromEnvironment could not read, in words; reported by Start. "" = nothing.
  std::string complaints{};

  // What the environment asks for. `directory` is empty if it asks for nothing.
  static Options FromEnvironment();
};

}  // namespace LIBTRACE_EXPORT

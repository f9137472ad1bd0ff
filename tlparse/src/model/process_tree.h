// Which processes of a run are children of others: workers of a DataLoader, of the compiler, of a
// pool, and what a rank forked. A child may have its rank's number, since it inherits RANK; it is no
// rank, and no later start of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/process_origin.h"

namespace tlparse {

enum class ChildKind : std::uint8_t {
  kNone,
  kLoaderWorker,
  kCompileWorker,
  kPoolWorker,
  kForked,
  kProgram  // another program, which a rank started
};
// "loader_worker", …: values of process.child_kind; empty for kNone.
std::string_view Name(ChildKind kind);

struct TreeProcess {
  std::int64_t id = 0;
  std::int64_t log_file_id = 0;
  std::int64_t pid = 0;
  bool is_thread_id = false;             // `pid` is one of a thread
  std::optional<std::int64_t> rank;      // nothing: its log names none
  std::optional<std::int64_t> start_us;  // first and last record, since the epoch
  std::optional<std::int64_t> end_us;
  // Number of its first interned string, frame of its first compile: above 0, a forked process goes
  // on from its parent's numbers. Nothing: it has none.
  std::optional<std::int64_t> first_string_number, first_frame_id;
  ProcessOrigin origin = ProcessOrigin::kUnknown;
  // By run.json: of a process that has no rank, the next of its parents that has one and a log; 0: none, or
  // it is not known.
  std::int64_t started_by = 0;

  // What FindChildren sets.
  ChildKind kind = ChildKind::kNone;
  std::int64_t parent_id = 0;  // 0: none, or not known
  std::string evidence;        // of a child: a clause
};

// run.json alone says which process started another. Logs show forks, and what a stack begins with.
// A log whose numbers do not begin at 0 may also lack its beginning: without another process of its
// rank (or, without rank, of the run) that can be its parent it is no child. The parent is the
// process of the same rank that is no child and that lived when the child began, else the one that
// began or ended nearest to that.
void FindChildren(std::vector<TreeProcess>& processes);

}  // namespace tlparse

// Lines of a text as their processes wrote them. The programs that collect what several processes print put a time, a host or the
// name of the process in front: torchrun --tee, mpirun, srun --label, Ray, systemd's journal, Docker, Kubernetes, build servers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "inputs/torch_logs/rich_traceback.h"
#include "inputs/torch_logs/tracebacks.h"

namespace tlparse {

struct CollectedLine {
  std::string_view
      text;  // without what a progress bar wrote before it, and without colours if it begins with one
  // Which process wrote it, as a title says it: "Local rank 0", "Task 3 of srun", "WorkerDict (pid 25889)", "trainer-1". Empty: the
  // line names none.
  std::string process;
  std::optional<std::int64_t> local_rank;  // of torchrun
  bool has_time = false;                   // in front
};

class LineUnwrapper {
 public:
  // The line without what stands in front. Its text is valid until the next call, and as long as `line`.
  CollectedLine Unwrap(std::string_view line);

 private:
  void TakeLearned(std::string_view& text, CollectedLine& line);

  std::string plain_;
  std::set<std::string, std::less<>> learned_;  // what stood in front of a traceback
};

// The traceback that the lines of each process of a text end with.
class ProcessTracebacks {
 public:
  struct Process {
    LastTraceback last;
    RichTraceback rich;
    std::optional<std::int64_t> local_rank;
    bool has_plain = false;  // lines without a time in front
  };
  // `is_of_log`: see LastTraceback.
  void Add(const CollectedLine& line, std::int64_t number, bool is_of_log = false);
  // By name; those of lines without a name have the empty one.
  const std::map<std::string, Process>& processes() const { return processes_; }

 private:
  std::map<std::string, Process> processes_;
};

// Whether the text, the end of a file or all of it, ends with the traceback of one of its processes.
bool EndsWithTraceback(std::string_view text);

}  // namespace tlparse

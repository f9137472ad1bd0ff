// Python stacks as faulthandler and py-spy write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/process_watch.h"
#include "runner/recorded_variables.h"

namespace tlparse {

// Where the main thread is: in the code of the user, and which function of a library that has called:
// "/app/train.py:21 in validate, which called barrier". Empty: no frame is known.
std::string MainFrame(std::string_view stacks);

// In which thread a fatal signal came, and where that was, as faulthandler writes it. A thread that runs no
// Python code has no place: then it is that of the main thread.
struct Fault {
  std::string_view
      thread;  // "main", "python" (another), "native" (no Python code); empty: none came
  std::string at;
  int signal = 0;  // that they were written at; 0: nothing was
};
Fault FaultOf(std::string_view stacks);

// Of the other threads, as faulthandler writes them, those that are in the code of the user: "3 other
// threads of rank 2 (pid 5088) are at /app/serve.py:9 in handle, which called acquire".
std::vector<std::string> OtherFrames(std::string_view stacks, std::string_view whose);

// "rank 2 (pid 5088)"; "pid 5088".
std::string Whose(const WatchedProcess& process);

// The file from a byte on; empty: nothing is there.
std::string TextFrom(const std::string& path, std::int64_t from);
void AppendText(const std::string& path, std::string_view text);

// After the command: where its processes were when a signal came that ended them, by what they wrote
// into the folder of ends. The stacks are added to the file of stacks; the folder is removed.
void TakeLastStacks(const RecordPlaces& places, std::vector<WatchedProcess>& processes);

}  // namespace tlparse

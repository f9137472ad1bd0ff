// Python stacks as faulthandler and py-spy write them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tlparse {

// Of one thread, whose innermost frame comes first: where it is in the code of the user, and which function of a
// library that has called: "/app/train.py:21 in validate, which called barrier". Empty: no frame is known.
std::string FrameOfThread(std::string_view stack);

// Of the main thread.
std::string MainFrame(std::string_view stacks);

// Whether the main thread is in a function of torch.distributed that waits for other ranks, which the
// user's code has called.
bool IsInCollective(std::string_view stacks);

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

}  // namespace tlparse

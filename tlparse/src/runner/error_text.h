// What is printed to standard error where that is a file: the program has the file, and this one
// reads it afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "inputs/torch_logs/abort_text.h"
#include "runner/process_watch.h"

namespace tlparse {

class ErrorText {
 public:
  ErrorText();  // before the command prints

  // What was printed since by C++ and the C library before they aborted a process: to the command's
  // standard error, and to files of their own that processes have, as torchrun --redirects makes
  // them. Nothing where it is a terminal or a pipe.
  std::vector<AbortText> Aborts(const std::vector<WatchedProcess>& processes) const;

 private:
  std::int64_t from_ = -1;  // byte of the file; -1: it is none
};

}  // namespace tlparse

// What the command prints to standard error, where that is a file: it has the file, and this program reads it afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "inputs/torch_logs/abort_text.h"

namespace tlparse {

class ErrorText {
 public:
  ErrorText();  // before the command prints

  // What was printed since by C++ and the C library before they aborted a process; nothing where standard error is
  // a terminal or a pipe.
  std::vector<AbortText> Aborts() const;

 private:
  std::int64_t from_ = -1;  // byte of the file; -1: it is none
};

}  // namespace tlparse

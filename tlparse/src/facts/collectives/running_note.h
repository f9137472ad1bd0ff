// What is said of waits whose dumps may be of a job that runs.
#pragma once

#include <string>

namespace tlparse {

// Takes it out of a text: it is known that the job failed or hung.
void TakeOutMayRun(std::string& text);

}  // namespace tlparse

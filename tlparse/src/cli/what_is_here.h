// What `tlparse` without arguments could do where it was called.
#pragma once

#include <string>

namespace tlparse {

// One sentence about the logs and reports in the working directory, by their names: what to call. Empty: there are none.
std::string WhatIsHere();

}  // namespace tlparse

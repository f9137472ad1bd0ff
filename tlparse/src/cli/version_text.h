// What `tlparse --version` prints.
#pragma once

#include <string>

namespace tlparse {

// "tlparse 0.1.0"; `with_parts`: and a line for the database's schema, the page, each library and the compiler.
std::string VersionText(bool with_parts);

}  // namespace tlparse

#pragma once

#include <string>
#include <string_view>

namespace tlparse {

// Without line breaks, with padding.
std::string Base64(std::string_view bytes);

}  // namespace tlparse

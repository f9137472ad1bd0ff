// What a push without text shows.
#pragma once

#include <string>
#include <string_view>

#include "fleet/fleet_schema.h"

namespace tlparse {

// Whether the texts of a column are sent as they are: names, places, states and versions.
bool IsShown(const FleetTable& table, std::string_view column);

// What stands for a text that is not to be shown: its XXH3-128, hexadecimal.
std::string HiddenText(std::string_view text);

}  // namespace tlparse

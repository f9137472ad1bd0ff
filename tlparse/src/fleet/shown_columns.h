// Which texts a push with --without-text still sends.
#pragma once

#include <string>
#include <string_view>

#include "fleet/fleet_schema.h"

namespace tlparse {

// Whether the texts of a column are sent: names, places, states and versions.
bool IsShown(const FleetTable& table, std::string_view column);

// The replacement of a text that is not sent: its XXH3-128, hexadecimal.
std::string HiddenText(std::string_view text);

}  // namespace tlparse

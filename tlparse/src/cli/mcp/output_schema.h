// JSON Schemas of the answers of `tlparse mcp`, made of those of --json.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tlparse {

// Of what Fit makes of a document of schemas/json/<stem>.schema.json: no member is required, and
// what is deep in it may be anything. `omitted`: members that Fit leaves out. Empty stem: of any
// document.
std::string OutputSchema(std::string_view stem, std::span<const std::string_view> omitted = {});

}  // namespace tlparse

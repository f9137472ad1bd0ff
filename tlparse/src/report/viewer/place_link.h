// Where the page shows the line that a finding names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "findings/findings.h"
#include "store/database.h"

namespace tlparse {

struct PlaceLink {
  // provenance: the Python lines of `graph_id`; text: `line` of `record_id`; guards, compile: of
  // `compile_id`. Empty: no page shows it.
  std::string_view view;
  std::optional<std::int64_t> graph_id, compile_id, record_id, line;
};

// Looks in the first of `compiles`, ids of those that the finding is about (finding_compiles.h).
Result<PlaceLink> FindPlaceLink(Database& database, std::span<const std::int64_t> compiles,
                                const FindingPlace& place);

}  // namespace tlparse

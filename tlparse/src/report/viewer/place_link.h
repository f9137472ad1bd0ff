// Where the page shows the line that a finding names.
#pragma once

#include <cstdint>
#include <optional>
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

// Looks in the compiles that the finding names, those of its ranks first. `finding.place` must be
// set.
Result<PlaceLink> FindPlaceLink(Database& database, std::int64_t run_id, const Finding& finding);

}  // namespace tlparse

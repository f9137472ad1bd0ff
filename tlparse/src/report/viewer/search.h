// Answer of GET /api/search of `tlparse serve`: where a text occurs in a run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "facts/job/asked_participant.h"
#include "store/database.h"

namespace tlparse {

// JSON, schemas/json/viewer/search_answer.schema.json. `kind`: graph, code, guard or log; empty: all.
// kUsage: the text is too short, or there is no such kind.
Result<std::string> SearchAnswer(Database& database, std::int64_t run_id, std::string_view text,
                                 std::string_view kind, const AskedParticipant& asked = {});

}  // namespace tlparse

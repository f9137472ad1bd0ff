// What an empty answer stands on: an input that cannot show a thing does not show that it is not so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// What the member "not_looked_for" of an answer is.
inline constexpr std::string_view kWhyNone = "what the inputs cannot show, and why";

// "not looked for: no structured trace is among the input (TORCH_TRACE=<directory> writes one)" of a
// run, or of a database whose runs all lack logs; empty: the logs were looked through. `else_where`:
// what to say of text of TORCH_LOGS, if that is among the input.
Result<std::string> NotLookedFor(Database& database, const std::optional<std::int64_t>& run_id,
                                 std::string_view else_where);

// "sends and receives: …" of dumps of gloo, which do not hold them; empty: there were none.
Result<std::string> NoMessages(Database& database, std::int64_t run_id);

}  // namespace tlparse

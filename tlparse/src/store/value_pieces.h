// Reads large values piece by piece.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"

namespace tlparse {

class Database;

// Hands the TEXT or BLOB in `column` of the row `id` of `table` to `use`, in pieces of up to 256 KB
// of which none ends inside a UTF-8 sequence, so that a value of any size takes no more memory than
// a piece. kDatabase if there is no such row.
Result<void> ReadInPieces(Database& database, const char* table, const char* column,
                          std::int64_t id, const std::function<void(std::string_view)>& use);

}  // namespace tlparse

// Quotes values for queries to ClickHouse; nothing else puts values into queries.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "store/hash128.h"

namespace tlparse {

// 'text' with its quotes. Any bytes, NUL and invalid UTF-8 included, are kept and cannot end the
// literal.
std::string QuoteText(std::string_view text);
// `name` with its quotes, for databases, tables and columns.
std::string QuoteName(std::string_view name);
// unhex('0123…'), a FixedString(16).
std::string QuoteHash(const Hash128& hash);
// (1, 2, 3); (NULL) for an empty list: no value is IN it.
std::string QuoteList(std::span<const std::uint64_t> numbers);
// Whether `text` is a UUID as 8-4-4-4-12 hexadecimal digits, of either case.
bool IsUuid(std::string_view text);
// toUUID('…'); `uuid` must be one.
std::string QuoteUuid(std::string_view uuid);
// toDate('2026-11-22'); `day` is days since 1970.
std::string QuoteDay(std::int64_t day);

// 2026-11-22 of days since 1970, and back (-1: not a day of 1970 … 2105, which ClickHouse can
// keep).
std::string DayText(std::int64_t day);
std::int64_t ParseDay(std::string_view text);

}  // namespace tlparse

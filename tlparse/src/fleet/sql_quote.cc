#include "fleet/sql_quote.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>

#include "base/ascii.h"

namespace tlparse {
namespace {

void AppendEscaped(std::string_view text, char quote, std::string& out) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  out += quote;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\' || c == quote) {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  out += quote;
}

}  // namespace

std::string QuoteText(std::string_view text) {
  std::string quoted;
  quoted.reserve(text.size() + 2);
  AppendEscaped(text, '\'', quoted);
  return quoted;
}

std::string QuoteName(std::string_view name) {
  std::string quoted;
  AppendEscaped(name, '`', quoted);
  return quoted;
}

std::string QuoteHash(const Hash128& hash) { return "unhex('" + ToHex(hash) + "')"; }

std::string QuoteList(std::span<const std::uint64_t> numbers) {
  std::string list = "(";
  for (const std::uint64_t number : numbers) {
    if (list.size() > 1) list += ',';
    list += std::to_string(number);
  }
  if (numbers.empty()) list += "NULL";
  return list + ")";
}

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_dash ? text[i] != '-' : HexDigit(text[i]) < 0) return false;
  }
  return true;
}

std::string QuoteUuid(std::string_view uuid) { return "toUUID(" + QuoteText(uuid) + ")"; }

std::string QuoteDay(std::int64_t day) { return "toDate('" + DayText(day) + "')"; }

std::string DayText(std::int64_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day}}};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

std::int64_t ParseDay(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return -1;
  std::array<int, 3> parts{};
  const std::array<std::pair<std::size_t, std::size_t>, 3> places{{{0, 4}, {5, 2}, {8, 2}}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const char c : text.substr(places[i].first, places[i].second)) {
      if (c < '0' || c > '9') return -1;
      parts[i] = parts[i] * 10 + (c - '0');
    }
  }
  const std::chrono::year_month_day date{std::chrono::year{parts[0]},
                                         std::chrono::month{static_cast<unsigned>(parts[1])},
                                         std::chrono::day{static_cast<unsigned>(parts[2])}};
  if (!date.ok() || parts[0] < 1970 || parts[0] > 2105) return -1;
  return std::chrono::sys_days{date}.time_since_epoch().count();
}

}  // namespace tlparse

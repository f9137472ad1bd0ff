#include "log/glog_prefix.h"

#include <cstring>

#include "base/ascii.h"

namespace tlparse {

namespace {

// Digits from `at`; nothing if there is none or they exceed 18 digits.
std::optional<std::int64_t> Digits(std::string_view text, std::size_t& at) {
  const std::size_t begin = at;
  std::int64_t value = 0;
  while (at < text.size() && IsDigit(text[at])) {
    if (at - begin == 18) return std::nullopt;
    value = value * 10 + (text[at++] - '0');
  }
  if (at == begin) return std::nullopt;
  return value;
}

}  // namespace

std::optional<RankPrefix> ParseRankPrefix(std::string_view line) {
  constexpr std::string_view kOpening = "[rank";
  if (!line.starts_with(kOpening)) return std::nullopt;
  std::size_t at = kOpening.size();
  const std::optional<std::int64_t> rank = Digits(line, at);
  if (!rank || line.substr(at, 2) != "]:") return std::nullopt;
  return RankPrefix{*rank, at + 2};
}

std::optional<GlogPrefix> ParseGlogPrefix(std::string_view line) {
  GlogPrefix prefix;
  if (!line.empty() && line.front() == '[') {
    const std::optional<RankPrefix> rank = ParseRankPrefix(line);
    if (!rank) return std::nullopt;
    prefix.rank = rank->rank;
    line.remove_prefix(rank->length);
  }
  // "V1121 08:30:01.123000 4": level, 20 characters of time, a space, a digit.
  if (line.size() < 24 || std::strchr("VIWEC", line[0]) == nullptr || line[0] == '\0' ||
      line[21] != ' ')
    return std::nullopt;
  const std::optional<PrefixTimeUs> time = ParsePrefixTime(line.substr(1, 20));
  if (!time && !HasPrefixTimeShape(line.substr(1, 20))) return std::nullopt;
  prefix.has_time = time.has_value();
  prefix.time_us = time.value_or(0);
  std::size_t at = 22;
  while (at < line.size() && line[at] == ' ') ++at;
  const std::optional<std::int64_t> pid = Digits(line, at);
  if (!pid || at >= line.size() || line[at] != ' ') return std::nullopt;
  prefix.pid = *pid;
  const std::size_t path_begin = ++at;
  // The path may hold anything, "C:\x.py:12] {" too: it ends at the first ":<digits>] {" after at
  // least one character.
  for (std::size_t close = path_begin + 1;
       (close = line.find("] {", close)) != std::string_view::npos; ++close) {
    std::size_t digits = close;
    while (digits > path_begin && IsDigit(line[digits - 1])) --digits;
    if (digits == close || digits < path_begin + 2 || line[digits - 1] != ':' ||
        close - digits > 18)
      continue;
    prefix.path = line.substr(path_begin, digits - 1 - path_begin);
    std::size_t number = digits;
    prefix.source_line = *Digits(line, number);
    prefix.json = line.substr(close + 2);
    return prefix;
  }
  return std::nullopt;
}

}  // namespace tlparse

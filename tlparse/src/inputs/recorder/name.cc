#include "inputs/recorder/name.h"

#include <charconv>

#include "base/ascii.h"

namespace tlparse {

namespace {

std::string_view Stem(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view extension : {".gz", ".zst", ".json", ".pickle", ".pkl"}) {
      if (!name.ends_with(extension)) continue;
      name.remove_suffix(extension.size());
      again = true;
    }
  }
  return name;
}

}  // namespace

bool IsDumpName(std::string_view path) {
  constexpr std::string_view kMark = "trace_rank_";
  const std::string_view name = Stem(path);
  const std::size_t mark = name.rfind(kMark);
  return mark != name.npos && mark + kMark.size() < name.size() &&
         name.find_first_not_of("0123456789", mark + kMark.size()) == name.npos;
}

std::optional<std::int64_t> RankFromDumpName(std::string_view path) {
  constexpr std::size_t kMostDigits = 6;
  const std::string_view name = Stem(path);
  const auto digits_at = [&](std::size_t at) {
    std::size_t end = at;
    while (end < name.size() && IsDigit(name[end])) ++end;
    return name.substr(at, end - at);
  };
  std::string_view digits;
  for (std::size_t at = name.rfind("rank"); at != name.npos && digits.empty();
       at = at == 0 ? name.npos : name.rfind("rank", at - 1)) {
    std::size_t from = at + 4;
    if (from < name.size() && (name[from] == '_' || name[from] == '-')) ++from;
    digits = digits_at(from);
  }
  if (digits.empty()) {
    const std::size_t before = name.find_last_not_of("0123456789");
    if (before == name.npos || std::string_view("_-.").find(name[before]) == std::string_view::npos)
      return std::nullopt;
    digits = name.substr(before + 1);
  }
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  std::int64_t rank = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  return rank;
}

}  // namespace tlparse

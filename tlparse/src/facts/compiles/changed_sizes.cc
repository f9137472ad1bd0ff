#include "facts/compiles/changed_sizes.h"

#include <algorithm>
#include <charconv>

#include "facts/contents/compile_inputs.h"

namespace tlparse {
namespace {

// "[8, 16]"; -1: no number, as s0 is.
std::vector<std::int64_t> NumbersOf(std::string_view sizes) {
  std::vector<std::int64_t> numbers;
  if (sizes.size() < 3) return numbers;
  sizes = sizes.substr(1, sizes.size() - 2);
  while (!sizes.empty()) {
    const std::size_t comma = std::min(sizes.find(','), sizes.size());
    const std::string_view one = sizes.substr(0, comma);
    std::int64_t number = -1;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), number);
    numbers.push_back(error == std::errc() && end == one.data() + one.size() ? number : -1);
    sizes.remove_prefix(std::min(comma + 2, sizes.size()));
  }
  return numbers;
}

}  // namespace

std::optional<ChangedSize> SizeIn(std::string_view text) {
  constexpr std::string_view kSize = "size ", kOf = " of ";
  const std::size_t of = text.find(kOf);
  if (!text.starts_with(kSize) || of == std::string_view::npos) return std::nullopt;
  ChangedSize size{.tensor = std::string(text.substr(of + kOf.size()))};
  std::from_chars(text.data() + kSize.size(), text.data() + of, size.index);
  return size;
}

Result<SizeChanges> FindSizeChanges(Database& database, std::int64_t before_id,
                                    std::int64_t now_id) {
  ASSIGN_OR_RETURN(const std::vector<InputTensor> earlier, LoadInputs(database, before_id));
  ASSIGN_OR_RETURN(const std::vector<InputTensor> inputs, LoadInputs(database, now_id));
  SizeChanges changes;
  for (const InputTensor& own : inputs) {
    const auto other = std::find_if(earlier.begin(), earlier.end(),
                                    [&](const InputTensor& one) { return one.name == own.name; });
    if (other == earlier.end() || other->size == own.size) continue;
    if (own.is_parameter) {
      changes.are_of_modules = true;
      continue;
    }
    const std::vector<std::int64_t> before = NumbersOf(other->size), now = NumbersOf(own.size);
    if (before.size() != now.size()) continue;
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (before[i] != now[i] && before[i] > 1 && now[i] > 1)
        changes.sizes.push_back({own.name, static_cast<std::int64_t>(i)});
    }
  }
  return changes;
}

}  // namespace tlparse

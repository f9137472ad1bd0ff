#include "facts/contents/code_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>

#include "base/ascii.h"
#include "facts/text/text_diff.h"

namespace tlparse {
namespace {

// The largest number that follows one of the places where `mark` is; nothing: there is none.
template <typename FindNumber>
std::optional<int> LargestAfter(std::string_view code, std::string_view mark,
                                const FindNumber& find_number) {
  std::optional<int> largest;
  for (std::size_t at = code.find(mark); at != std::string_view::npos; at = code.find(mark, at)) {
    at += mark.size();
    const std::size_t begin = find_number(at);
    if (begin == std::string_view::npos || begin >= code.size() || !IsDigit(code[begin])) continue;
    int number = 0;
    const auto [end, error] =
        std::from_chars(code.data() + begin, code.data() + code.size(), number);
    if (error == std::errc()) largest = std::max(largest.value_or(0), number);
  }
  return largest;
}

// at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16)):
// the last argument is how many are loaded, a whole vector or the rest at the end of a loop. Where
// nothing is loaded the loops tell: x0+=static_cast<int64_t>(16L).
std::optional<int> FloatsOfVector(std::string_view code) {
  constexpr std::string_view kCast = ", static_cast<int64_t>(", kLoad = "Vectorized<float>::loadu(",
                             kStep = "+=static_cast<int64_t>(";
  if (code.find("Vectorized<float>") == std::string_view::npos) return std::nullopt;
  if (code.find(kLoad) == std::string_view::npos)
    return LargestAfter(code, kStep, [](std::size_t at) { return at; });
  return LargestAfter(code, kLoad, [&](std::size_t at) {
    const std::size_t end = code.find(";", at);
    const std::size_t cast = code.rfind(kCast, end);
    return end == std::string_view::npos || cast == std::string_view::npos || cast < at
               ? std::string_view::npos
               : cast + kCast.size();
  });
}

// #pragma omp parallel num_threads(2)
std::optional<int> Threads(std::string_view code) {
  return LargestAfter(code, "num_threads(", [](std::size_t at) { return at; });
}

// Without lines of Python that are comments, and with names of fused kernels by their order.
std::string WithoutKernelNames(std::string_view code) {
  constexpr std::string_view kFused = "_fused_";
  std::map<std::string, std::size_t, std::less<>> known;
  std::string result;
  for (const std::string_view line : SplitLines(code)) {
    if (Trimmed(line).starts_with("# ")) continue;
    std::size_t kept = 0;
    for (std::size_t at = line.find(kFused); at != std::string_view::npos;
         at = line.find(kFused, std::max(kept, at + 1))) {
      std::size_t begin = at, end = at;
      while (begin > kept && IsWordCharacter(line[begin - 1])) --begin;
      while (end < line.size() && IsWordCharacter(line[end])) ++end;
      const auto [name, is_new] =
          known.try_emplace(std::string(line.substr(begin, end - begin)), known.size());
      result.append(line.substr(kept, begin - kept)).append(fmt::format("fused_{}", name->second));
      kept = end;
    }
    result.append(line.substr(kept)).append("\n");
  }
  return result;
}

}  // namespace

bool AreEqualButForNames(std::string_view a, std::string_view b) {
  return WithoutKernelNames(a) == WithoutKernelNames(b);
}

std::string TargetChange(std::string_view a, std::string_view b) {
  const std::optional<int> old_floats = FloatsOfVector(a), new_floats = FloatsOfVector(b);
  if (old_floats && new_floats && old_floats != new_floats)
    return fmt::format("for vectors of {} floats instead of {}", *new_floats, *old_floats);
  const std::optional<int> old_threads = Threads(a), new_threads = Threads(b);
  if (old_threads && new_threads && old_threads != new_threads)
    return fmt::format("for {} threads instead of {}", *new_threads, *old_threads);
  return {};
}

}  // namespace tlparse

#include "cli/bounded_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/plural.h"

namespace tlparse {
namespace {

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

std::size_t IndentOf(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

}  // namespace

std::string Captured(const std::function<void()>& print) {
  char* bytes = nullptr;
  std::size_t size = 0;
  std::FILE* const memory = open_memstream(&bytes, &size);
  if (memory == nullptr) return {};
  std::FILE* const before = std::exchange(stdout, memory);
  print();
  stdout = before;
  std::fclose(memory);
  std::string text(bytes, size);
  std::free(bytes);  // NOLINT: allocated by open_memstream
  return text;
}

std::size_t CountCharacters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string FirstLines(std::string_view text, std::size_t most, std::string_view how) {
  if (CountCharacters(text) <= most) return std::string(text);
  const std::vector<std::string_view> lines = SplitLines(text);
  const std::size_t room = most - std::min(most, how.size() + 40);
  std::size_t size = 0, count = 0;
  while (count < lines.size() && size + CountCharacters(lines[count]) <= room)
    size += CountCharacters(lines[count++]);
  // A heading without what it is of says nothing.
  while (count > 1 && count < lines.size() && IndentOf(lines[count - 1]) < IndentOf(lines[count]))
    --count;
  std::string first;
  for (std::size_t i = 0; i < count; ++i) first += lines[i];
  return first + fmt::format("and {}: {}\n", Count(lines.size() - count, "more line"), how);
}

void PrintBounded(bool all, std::string_view how, const std::function<void()>& print) {
  if (all) return print();
  const std::string text = FirstLines(Captured(print), kMostAnswerText, how);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace tlparse

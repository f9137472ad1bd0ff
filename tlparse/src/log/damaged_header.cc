#include "log/damaged_header.h"

#include <algorithm>
#include <cstddef>

#include "base/ascii.h"
#include "base/utf8.h"
#include "log/glog_prefix.h"

namespace tlparse {

namespace {

constexpr std::string_view kPrefixShape = "V0000 00:00:00.000000 0";
constexpr std::size_t kMostWrong = 2;  // characters of the shape

// Characters of the line that are not those of a prefix's level, date and time.
std::size_t CountWrong(std::string_view line) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < std::min(line.size(), kPrefixShape.size()); ++i) {
    const char shape = kPrefixShape[i];
    const bool is_right = shape == 'V'   ? IsUpperCase(line[i])
                          : shape == '0' ? IsDigit(line[i])
                                         : line[i] == shape;
    wrong += is_right ? 0 : 1;
  }
  return wrong;
}

bool HasShapeOfPrefix(std::string_view line) {
  return line.size() >= kPrefixShape.size() && CountWrong(line) <= kMostWrong;
}

// "…:12] [0/0] [__guards] text", "…:12] [__guards] text": what follows the prefix of TORCH_LOGS.
bool HasTagOfTorchLogs(std::string_view line) {
  const std::size_t end = line.find("] [");
  if (end == std::string_view::npos || end == 0 || !IsDigit(line[end - 1])) return false;
  const std::string_view tag = line.substr(end + 3, 2);
  return !tag.empty() && (IsDigit(tag[0]) || tag[0] == '!' || tag == "__");
}

// A member `"name": ` whose name is a record key, or one of those that only an envelope has.
bool HasEnvelopeMember(std::string_view line, EnvelopeParser::IsRecordKey is_record_key) {
  constexpr std::size_t kMostName = 64;
  for (std::size_t end = line.find("\": "); end != std::string_view::npos;
       end = line.find("\": ", end + 1)) {
    const std::size_t from = end - std::min(end, kMostName);
    const std::size_t quote = line.substr(from, end - from).rfind('"');
    if (quote == std::string_view::npos) continue;
    const std::string_view name = line.substr(from + quote + 1, end - from - quote - 1);
    if (name == "has_payload" || name == "frame_compile_id" ||
        (is_record_key != nullptr && is_record_key(name)))
      return true;
  }
  return false;
}

}  // namespace

bool IsDamagedHeader(std::string_view line, EnvelopeParser::IsRecordKey is_record_key) {
  if (const std::optional<RankPrefix> rank = ParseRankPrefix(line))
    line.remove_prefix(rank->length);
  if (HasTagOfTorchLogs(line)) return false;
  return (HasShapeOfPrefix(line) || line.find("] {\"") != std::string_view::npos) &&
         HasEnvelopeMember(line, is_record_key);
}

bool IsStartOfHeader(std::string_view line) {
  // "V1122": a month and a day.
  constexpr std::size_t kLeast = 5;
  if (line.size() < kLeast || line.front() != 'V' || line.find("] ") != std::string_view::npos)
    return false;
  return CountWrong(line) == 0;
}

bool HasForeignBytes(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < 0x20; }) ||
         !IsTextSafe(text);
}

bool IsNoise(std::string_view text) {
  constexpr std::string_view kPrinted = "\a\b\t\n\v\f\r\x1b";
  constexpr std::size_t kLeast = 32;  // of random bytes 26 in 256 are other control characters
  const auto count = std::count_if(text.begin(), text.end(), [&](char c) {
    return (c >= 0 && c < 0x20 && kPrinted.find(c) == kPrinted.npos) || c == 0x7f;
  });
  return count > 0 && static_cast<std::size_t>(count) * kLeast >= text.size();
}

bool DiffersInOneCharacter(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size() && count < 2; ++i) {
    if (a[i] == b[i]) continue;
    if (IsDigit(a[i]) || IsDigit(b[i])) return false;
    ++count;
  }
  return count == 1;
}

}  // namespace tlparse

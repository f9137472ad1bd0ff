#include "inputs/size_estimate.h"

#include "base/input.h"

namespace tlparse {
namespace {

// Bytes of text for each byte on disk.
struct TextRatio {
  double gzip, zstd;
};
// Logs of one compile each compressed 6 to 9 times with gzip and 22 to 38 times with zstd;
// profiles 11 to 17 and 13 to 25 times.
constexpr TextRatio kLogText = {8, 28};
constexpr TextRatio kProfileText = {14, 18};
constexpr double kMostTextFactor = 28;

// Bytes of the database for each byte of text: logs took 1.0 to 1.2, profiles 0.01 to 0.17.
constexpr double kOfLog = 1.1;
constexpr double kOfProfile = 0.12;

// Files with a size that is known: regular ones.
template <typename Visit>
void ForEach(const FoundInputs& found, const Visit& visit) {
  for (const FoundLog& log : found.logs) {
    if (log.size_bytes > 0) visit(InputKind::kLog, log.path, log.size_bytes);
  }
  for (const RuntimeInput& input : found.runtime) {
    if (input.size_bytes > 0) visit(input.kind, input.path, input.size_bytes);
  }
}

}  // namespace

std::int64_t EstimateDatabaseBytes(InputKind kind, std::string_view compression,
                                   std::int64_t size_bytes) {
  const bool is_profile = kind == InputKind::kProfile;
  const TextRatio& ratio = is_profile ? kProfileText : kLogText;
  const double text = compression == "gzip" ? ratio.gzip : compression == "zstd" ? ratio.zstd : 1;
  return static_cast<std::int64_t>(static_cast<double>(size_bytes) * text *
                                   (is_profile ? kOfProfile : kOfLog));
}

std::int64_t EstimateDatabaseBytes(const FoundInputs& found) {
  std::int64_t plain = 0;
  ForEach(found, [&](InputKind kind, const std::string&, std::int64_t size_bytes) {
    plain += EstimateDatabaseBytes(kind, "none", size_bytes);
  });
  if (static_cast<double>(plain) * kMostTextFactor < kAnnouncedDatabaseBytes) return plain;
  std::int64_t sum = 0;
  ForEach(found, [&](InputKind kind, const std::string& path, std::int64_t size_bytes) {
    // A file that cannot be opened adds nothing; the load says why.
    const auto input = OpenInput(path);
    if (input) sum += EstimateDatabaseBytes(kind, (*input)->compression(), size_bytes);
  });
  return sum;
}

}  // namespace tlparse

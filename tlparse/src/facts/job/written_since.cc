#include "facts/job/written_since.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "queries/facts/job/written_since.h"

namespace tlparse {
namespace {

struct Since {
  std::string_view what;
  int major = 0, minor = 0;
};

// As the sources of the releases from 2.6 on say (scripts/new-names.sh lists what one can write).
Since SinceWhen(VersionedInput input) {
  switch (input) {
    case VersionedInput::kKernelNodes:
      return {"which graph nodes a kernel was made of (with provenance tracking)", 2, 7};
    case VersionedInput::kGraphOrder:
      return {"the order in which graphs run", 2, 9};
    case VersionedInput::kAotAutogradLookups:
      return {"the lookups of AOTAutograd's cache", 2, 7};
    case VersionedInput::kGlooDumps:
      return {"recorder dumps of gloo", 2, 8};
  }
  return {};
}

// Whether "2.10.0+cu128" is at least `since`; what is no version is.
bool IsAtLeast(std::string_view version, const Since& since) {
  int major = 0, minor = 0;
  const char* const end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return true;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return true;
  return major != since.major ? major > since.major : minor >= since.minor;
}

}  // namespace

Result<std::string> WhyNotWritten(Database& database, std::optional<std::int64_t> run_id,
                                  VersionedInput input) {
  const Since since = SinceWhen(input);
  std::string older;
  bool has_unknown = false;
  FOR_EACH_ROW(const VersionOfLogs& row, Query<VersionOfLogs>(database, {.run_id = run_id})) {
    if (!row.torch_version) {
      has_unknown = true;
    } else if (IsAtLeast(*row.torch_version, since)) {
      return std::string();
    } else {
      older += fmt::format("{}{}", older.empty() ? "" : ", ", *row.torch_version);
    }
  }
  const std::string written =
      fmt::format("PyTorch writes {} since {}.{}", since.what, since.major, since.minor);
  if (!older.empty()) return fmt::format("the log is of PyTorch {}; {}", older, written);
  if (has_unknown)
    return fmt::format(
        "{}; the log does not say its version, as those of PyTorch 2.9 and older do not", written);
  return std::string();
}

}  // namespace tlparse

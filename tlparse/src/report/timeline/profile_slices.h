// What profiles measured, as slices of a timeline: annotations, compiled code, ops, Python frames,
// calls that queue device work, kernels and copies, with the flows from such a call to its work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "report/timeline/tracks.h"
#include "store/database.h"

namespace tlparse {

// The part of a run that is written.
struct TimelinePart {
  std::optional<std::int64_t> from_ns, to_ns;  // what runs between them
  std::optional<std::string> compiles;  // ids, a JSON list; nothing: all, and what is of none
};

// The profile's process, as it is in the file.
struct ProfileProcess {
  std::int64_t pid = 0;
  std::string name;
  std::optional<std::int64_t> system_pid;
};

// `shift_ns`: added to the times.
Result<void> AddProfileSlices(Database& database, TimelineTracks& tracks,
                              const ProfileProcess& process, std::int64_t profile_id,
                              const TimelinePart& part, std::int64_t shift_ns);

// The members of a JSON object, one after another.
class TimelineArgs {
 public:
  void Clear() { text_.clear(); }
  void Add(std::string_view key, std::optional<std::int64_t> value);
  void AddText(std::string_view key, std::string_view text);  // empty: not added
  void AddRaw(std::string_view key, std::string_view json);   // empty: not added
  // Empty if there is no member; until the next call of another function.
  std::string_view text();

 private:
  void AddKey(std::string_view key);
  std::string text_;
};

}  // namespace tlparse

#include "report/tree/profile_events.h"

#include <fmt/format.h>

#include "queries/report/tree/profile_events.h"
#include "report/timeline/profile_slices.h"

namespace tlparse {

Result<void> AddProfileEvents(Database& database, std::int64_t process_id, std::int64_t pid,
                              TimelineTracks& tracks) {
  FOR_EACH_ROW(const ProfileOfProcess& profile,
               Query<ProfileOfProcess>(database, {.process_id = process_id})) {
    RETURN_IF_ERROR(AddProfileSlices(database, tracks, {pid, std::to_string(pid), profile.pid},
                                     profile.id, {}, 0));
  }
  return {};
}

Result<void> AddEventsWithoutLog(Database& database, std::int64_t run_id, bool by_rank,
                                 TimelineTracks& tracks) {
  FOR_EACH_ROW(const ProfileWithoutLog& profile,
               Query<ProfileWithoutLog>(database, {.run_id = run_id, .by_rank = by_rank})) {
    RETURN_IF_ERROR(AddProfileSlices(database, tracks,
                                     {profile.number, std::to_string(profile.number), profile.pid},
                                     profile.id, {}, 0));
  }
  return {};
}

}  // namespace tlparse

#include "report/participant.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "report/tree/file_name.h"
#include "store/database.h"

namespace tlparse {

Result<std::vector<Participant>> FindParticipants(Database& database, std::int64_t run_id,
                                                  bool force_directories) {
  ASSIGN_OR_RETURN(std::vector<RunParticipant> found, LoadParticipants(database, run_id));
  const bool in_root = found.size() == 1 && !force_directories;
  std::vector<Participant> participants;
  std::map<std::int64_t, UniqueNames> names;  // by launch
  for (RunParticipant& one : found) {
    Participant participant;
    static_cast<RunParticipant&>(participant) = std::move(one);
    participant.title = participant.rank ? fmt::format("Rank {}", *participant.rank)
                                         : fmt::format("Log {}", participant.stem);
    std::string name = participant.rank ? fmt::format("rank_{}", *participant.rank)
                                        : fmt::format("log_{}", participant.stem);
    if (participant.rank && participant.log_number > 1) {
      name += fmt::format("_{}", participant.log_number);
      participant.title += fmt::format(" (log {})", participant.log_number);
    }
    if (participant.launch > 1) participant.title += fmt::format(", launch {}", participant.launch);
    if (!in_root) {
      participant.directory = names[participant.launch].Next(name, "");
      if (participant.launch > 1)
        participant.directory =
            fmt::format("launch_{}/{}", participant.launch, participant.directory);
    }
    participants.push_back(std::move(participant));
  }
  return participants;
}

Result<Directory> MakeDirectory(const Directory& root, const Participant& participant) {
  const std::string_view path = participant.directory;
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return root.Child(path);
  ASSIGN_OR_RETURN(const Directory launch, root.Child(path.substr(0, slash)));
  return launch.Child(path.substr(slash + 1));
}

}  // namespace tlparse

#include "cli/collectives_messages.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/rank_output.h"
#include "cli/terminal.h"

namespace tlparse {

std::string RankOfGroup(const IssuedJob& job, const MessageGroup& group, std::int64_t rank) {
  const auto found = group.rank_of.find(rank);
  return found == group.rank_of.end() ? fmt::format("{} of the group", rank)
                                      : job.ranks[found->second].name;
}

void PrintMessages(const IssuedJob& job) {
  const std::vector<MessageLine> lines = MessageLines(job);
  for (std::size_t i = 0; i < lines.size();) {
    const MessageGroup& group = *lines[i].group;
    PrintWrapped(fmt::format("{}: sends and receives", group.Title()), 2, 4);
    Table table({{"from"},
                 {"to"},
                 {"sends", Table::Align::kRight},
                 {"receives", Table::Align::kRight},
                 {"not ended"}});
    for (; i < lines.size() && lines[i].group == &group; ++i) {
      const MessageLine& line = lines[i];
      std::string open;
      if (line.open_sends > 0) open = Count(line.open_sends, "send");
      if (line.open_receives > 0)
        open += (open.empty() ? "" : ", ") + Count(line.open_receives, "receive");
      table.Add({RankOfGroup(job, group, line.from), RankOfGroup(job, group, line.to),
                 fmt::format("{}", line.sent), fmt::format("{}", line.received), open});
    }
    table.Print();
  }
}

void PrintProfiledMessages(const IssuedJob& job) {
  if (job.profiled_messages.empty()) return;
  const auto time = [](const std::optional<std::int64_t>& ns) {
    return ns ? HumanDuration(static_cast<double>(*ns) / 1e9) : std::string();
  };
  PrintHeading("sends and receives in the profiles, whose peers are not in them");
  Table table({{"rank", Table::Align::kRight},
               {"sends", Table::Align::kRight},
               {"in sends", Table::Align::kRight},
               {"receives", Table::Align::kRight},
               {"in receives", Table::Align::kRight}});
  for (const ProfiledMessages& one : job.profiled_messages)
    table.Add({fmt::format("{}", one.rank), fmt::format("{}", one.sends), time(one.send_ns),
               fmt::format("{}", one.receives), time(one.receive_ns)});
  table.Print();
}

}  // namespace tlparse

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

namespace {

std::string TimeIn(const std::optional<std::int64_t>& ns) {
  return ns ? HumanDuration(static_cast<double>(*ns) / 1e9) : std::string();
}

void PrintProfiledPairs(const std::vector<ProfiledPair>& pairs) {
  const auto count = [](const std::optional<std::int64_t>& number) {
    return number ? fmt::format("{}", *number) : std::string("no profile");
  };
  PrintHeading("sends and receives in the profiles");
  Table table({{"from", Table::Align::kRight},
               {"to", Table::Align::kRight},
               {"sends", Table::Align::kRight},
               {"in sends", Table::Align::kRight},
               {"receives", Table::Align::kRight},
               {"in receives", Table::Align::kRight}});
  for (const ProfiledPair& one : pairs)
    table.Add({fmt::format("{}", one.from), fmt::format("{}", one.to), count(one.sends),
               TimeIn(one.send_ns), count(one.receives), TimeIn(one.receive_ns)});
  table.Print();
}

}  // namespace

void PrintProfiledMessages(const IssuedJob& job) {
  const ProfiledTraffic& traffic = job.profiled_traffic;
  if (!traffic.pairs.empty()) PrintProfiledPairs(traffic.pairs);
  if (traffic.ranks.empty() || traffic.has_all_peers) return;
  PrintHeading(traffic.pairs.empty()
                   ? "sends and receives in the profiles, whose peers are not in them"
                   : "of all sends and receives in the profiles, some whose peers are not in them");
  Table table({{"rank", Table::Align::kRight},
               {"sends", Table::Align::kRight},
               {"in sends", Table::Align::kRight},
               {"receives", Table::Align::kRight},
               {"in receives", Table::Align::kRight},
               {"without a peer", Table::Align::kRight}});
  for (const ProfiledMessages& one : traffic.ranks)
    table.Add({fmt::format("{}", one.rank), fmt::format("{}", one.sends), TimeIn(one.send_ns),
               fmt::format("{}", one.receives), TimeIn(one.receive_ns),
               fmt::format("{}", one.without_peer)});
  table.Print();
}

}  // namespace tlparse

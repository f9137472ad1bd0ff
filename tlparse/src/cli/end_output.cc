#include "cli/end_output.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "cli/rank_output.h"
#include "cli/terminal.h"

namespace tlparse {
namespace {

// What is said of one process, of several.
std::string OfSeveral(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"its log ends", "their logs end"},
      {"its log is damaged", "their logs are damaged"},
      {"it ended with", "they ended with"},
      {" ended it ", " ended them "},
      {"it lived on", "they lived on"}};
  for (const auto& [one, several] : kWords) {
    const std::size_t at = text.find(one);
    if (at != std::string::npos) text.replace(at, one.size(), several);
  }
  return text;
}

// A launcher ends the others within seconds.
bool IsLongAfter(const TreeEnd& end, const TreeNode* other) {
  constexpr std::int64_t kTogetherUs = 30'000'000;
  return end.last_us && other != nullptr && other->end && other->end->last_us &&
         *end.last_us > *other->end->last_us + kTogetherUs;
}

}  // namespace

std::string RanksOfRows(const std::vector<const ProcessStatus*>& rows) {
  std::vector<std::int64_t> plain;
  std::string others;
  for (const ProcessStatus* const row : rows) {
    if (row->rank && row->name == std::to_string(*row->rank)) {
      plain.push_back(*row->rank);
    } else if (others.size() < 40 && !row->name.empty()) {
      others += (others.empty() ? "" : ",") + row->name;
    }
  }
  std::sort(plain.begin(), plain.end());
  plain.erase(std::unique(plain.begin(), plain.end()), plain.end());
  const std::string text = ShortenMiddle(FormatRankRanges(plain), 40);
  return text + (text.empty() || others.empty() ? "" : ",") + others;
}

void PrintEnds(const std::vector<ProcessStatus>& statuses, const JobTree& tree) {
  std::unordered_map<std::int64_t, std::string> names;
  for (const ProcessStatus& row : statuses)
    names[row.process_id] = row.rank ? "rank " + row.name : fmt::format("process {}", row.pid);
  std::map<std::string, std::vector<const ProcessStatus*>> by_text;
  std::vector<std::string> order;
  for (const ProcessStatus& row : statuses) {
    const TreeNode* const node = tree.Find(row.process_id);
    if (node == nullptr || !node->end) continue;
    if (!node->child_kind.empty() && node->end->kind == "silent") continue;
    std::string kind = node->end->kind;
    const auto by =
        node->end->ended_by_process_id ? names.find(*node->end->ended_by_process_id) : names.end();
    if (by != names.end()) {
      kind +=
          fmt::format(", ended {} {}",
                      IsLongAfter(*node->end, tree.Find(by->first)) ? "after" : "with", by->second);
    } else if (node->end->is_bystander) {
      kind += ", ended with another";
    }
    const std::string text = fmt::format(
        "{}: {}", kind, node->end->evidence.substr(0, node->end->evidence.find("; rank ")));
    std::vector<const ProcessStatus*>& rows = by_text[text];
    if (rows.empty()) order.push_back(text);
    rows.push_back(&row);
  }
  constexpr std::size_t kMostEnds = 12;
  for (std::size_t i = 0; i < order.size() && i < kMostEnds; ++i) {
    const std::vector<const ProcessStatus*>& rows = by_text[order[i]];
    const bool is_one = rows.size() == 1;
    std::string who = RanksOfRows(rows);
    if (!who.empty()) {
      who = fmt::format("rank{} {}", is_one ? "" : "s", who);
    } else {
      for (const ProcessStatus* const row : rows)
        who += fmt::format("{}{}", who.empty() ? (is_one ? "process " : "processes ") : ", ",
                           row->pid);
    }
    PrintWrapped(fmt::format("end of {}: {}", ShortenMiddle(who, 100),
                             ShortenMiddle(is_one ? order[i] : OfSeveral(order[i]), 300)),
                 0, 2);
  }
  if (order.size() > kMostEnds)
    PrintWrapped(fmt::format("and {} more ends (--json)", order.size() - kMostEnds), 0, 2);
}

std::string DayTimeText(const std::optional<std::int64_t>& us) {
  if (!us) return "";
  return fmt::format("{:%H:%M:%S}.{:03}", fmt::gmtime(static_cast<std::time_t>(*us / 1'000'000)),
                     *us / 1000 % 1000);
}

bool HasGoneOn(const Hang& hang, const std::vector<ProcessExit>& exits) {
  const auto is_after = [&](const ProcessExit& one) {
    return one.rank && one.ended_us.value_or(0) > hang.time_us;
  };
  return !hang.was_ended && std::any_of(exits.begin(), exits.end(), is_after) &&
         std::all_of(exits.begin(), exits.end(),
                     [&](const ProcessExit& one) { return !is_after(one) || one.exit_code == 0; });
}

void PrintHangs(const std::vector<Hang>& hangs, const std::vector<ProcessExit>& exits) {
  for (const Hang& hang : hangs) {
    const std::string places = hang.PlacesText();
    const bool has_gone_on = HasGoneOn(hang, exits);
    PrintWrapped(
        fmt::format("{}: at {} UTC {} (run.json){}{}{}", has_gone_on ? "seemed to hang" : "hang",
                    DayTimeText(hang.time_us), hang.why, places.empty() ? "" : ": ", places,
                    hang.was_ended ? "; tlparse run ended the command then"
                    : has_gone_on  ? "; it went on"
                                   : ""),
        0, 2);
  }
}

}  // namespace tlparse

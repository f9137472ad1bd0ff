#include "cli/watch_view.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <tuple>

#include "cli/rank_output.h"
#include "cli/terminal.h"
#include "cli/watch_alert.h"
#include "cli/watch_events.h"
#include "facts/job/participants.h"
#include "queries/cli/watch_view.h"

namespace tlparse {

namespace {

constexpr std::size_t kMostFindings = 8;  // on the screen
constexpr std::size_t kMostClasses = 20;

std::string DurationOfUs(std::int64_t us) {
  const std::int64_t seconds = us / 1'000'000;
  return seconds < 120 ? fmt::format("{} s", seconds)
                       : fmt::format("{} min {} s", seconds / 60, seconds % 60);
}

std::string Line(const Finding& finding) {
  return fmt::format("{}: {}", Name(finding.severity), finding.title);
}

}  // namespace

WatchView::WatchView(WatchViewOptions options, std::vector<WatchAlert> alerts, std::string command)
    : options_(std::move(options)), alerts_(std::move(alerts)), command_(std::move(command)) {}

bool WatchView::HasError() const {
  return std::any_of(standing_.begin(), standing_.end(), [](const auto& one) {
    return one.second.finding.severity == FindingSeverity::kError;
  });
}

std::vector<Finding> WatchView::Findings() const {
  std::vector<Finding> findings;
  for (const std::string& id : order_) findings.push_back(standing_.at(id).finding);
  return findings;
}

Result<void> WatchView::LoadCache(Database& database) {
  cache_.clear();
  FOR_EACH_ROW(const LookupsOfProcess& row, Query<LookupsOfProcess>(database)) {
    cache_[row.process_id] = {row.hits, row.lookups};
  }
  return {};
}

Result<void> WatchView::Read(Database& database) {
  StatusOptions options;
  options.run = options_.run;
  ASSIGN_OR_RETURN(const FirstRow<AnyProcess> process, First(Query<AnyProcess>(database)));
  if (!process) return {};
  ASSIGN_OR_RETURN(status_, AnalyzeStatus(database, options));
  return LoadCache(database);
}

void WatchView::Look(const LiveJob& live) {
  live_ = live;
  if (!HasRows()) return;
  is_running_ = IsRunning(status_, live_);
  RunAlerts();
}

Result<void> WatchView::Find(Database& database) {
  found_running_ = is_running_;
  found_failed_ = FailedCount();
  FindingsOptions options;
  options.run = options_.run;
  options.world_size = options_.world_size;
  ASSIGN_OR_RETURN(std::vector<Finding> findings, is_running_
                                                      ? FindLiveFindings(database, options, live_)
                                                      : FindFindings(database, options));
  Compare(std::move(findings));
  RunAlerts();
  return {};
}

std::ptrdiff_t WatchView::FailedCount() const {
  return std::count_if(status_.rows.begin(), status_.rows.end(),
                       [](const ProcessStatus& row) { return row.state == RankState::kFailed; });
}

bool WatchView::HasTurned() const {
  return is_running_ != found_running_ || FailedCount() != found_failed_;
}

bool WatchView::MayBeStuck() const {
  return is_running_ &&
         std::any_of(status_.rows.begin(), status_.rows.end(), [&](const ProcessStatus& row) {
           const auto log = live_.logs.find(row.log_path);
           return row.state == RankState::kCompiling && log != live_.logs.end() &&
                  log->second.quiet_us >= kLeastStuckUs && !log->second.is_removed;
         });
}

bool WatchView::IsChanged(const Finding& before, const Finding& now) {
  return before.severity != now.severity || before.ranks != now.ranks || before.logs != now.logs ||
         before.compiles != now.compiles;
}

// New and changed findings, and findings that are no longer there. Of several with one id the most
// urgent counts.
void WatchView::Compare(std::vector<Finding> findings) {
  const auto now = std::chrono::steady_clock::now();
  std::map<std::string, Standing> standing;
  order_.clear();
  for (Finding& finding : findings) {
    const std::string id = finding.id;
    if (standing.contains(id)) continue;
    order_.push_back(id);
    const auto known = standing_.find(id);
    Standing& entry = standing[id];
    if (known == standing_.end()) {
      entry.since = now;
      opened_.push_back(finding);
    } else {
      entry.since = known->second.since;
      entry.alerted = std::move(known->second.alerted);
      if (IsChanged(known->second.finding, finding)) changed_.push_back(finding);
    }
    entry.finding = std::move(finding);
  }
  for (auto& [id, entry] : standing_) {
    if (!standing.contains(id)) settled_.push_back(std::move(entry.finding));
  }
  standing_ = std::move(standing);
}

void WatchView::RunAlerts() {
  if (alerts_.empty()) return;
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  const auto now = std::chrono::steady_clock::now();
  for (auto& [id, entry] : standing_) {
    for (std::size_t index = 0; index < alerts_.size(); ++index) {
      const WatchAlert& alert = alerts_[index];
      if (alert.kind != entry.finding.kind || now - entry.since < std::chrono::seconds(alert.age_s))
        continue;
      if (entry.alerted.insert(index).second && !command_.empty())
        RunForFinding(command_, entry.finding);
    }
  }
}

// Since its innermost event began, or since its last compile ended, until now.
std::int64_t WatchView::ElapsedUs(const ProcessStatus& row) const {
  if (!row.last_record_us) return 0;
  const auto log = live_.logs.find(row.log_path);
  return *row.last_record_us -
         std::min(row.since_us.value_or(*row.last_record_us), *row.last_record_us) +
         (log == live_.logs.end() ? 0 : log->second.quiet_us);
}

// Ranks in the same state.
struct WatchView::Class {
  std::vector<std::int64_t> ranks;
  std::size_t logs = 0;  // processes without rank
  std::int64_t longest_us = 0, least_done = INT64_MAX, most_done = 0;
  Cache cache;
};

std::string WatchView::LineOf(const ProcessStatus& row, const Class& one) const {
  std::string line;
  if (one.ranks.size() == 1) line = fmt::format("rank {}", one.ranks.front());
  if (one.ranks.size() > 1)
    line = fmt::format("{} ranks ({})", one.ranks.size(), FormatRankRanges(one.ranks));
  if (one.logs > 0)
    line += (line.empty() ? "" : ", ") + Count(one.logs, "process") + " without rank";
  const std::string title = row.Title();
  line += row.state == RankState::kCompiling ? (is_running_ ? ": in " : ": ended inside ") + title
          : row.state == RankState::kFailed  ? ": failed in " + title
          : row.compile.empty()              ? ": no compile yet"
                                             : ": after " + title;
  if (!row.phase.empty()) line += ", " + row.phase;
  if (is_running_) line += ", for " + DurationOfUs(one.longest_us);
  line += one.least_done == one.most_done
              ? "; done: " + std::to_string(one.least_done)
              : fmt::format("; done: {} to {}", one.least_done, one.most_done);
  if (one.cache.lookups > 0)
    line += fmt::format("; cache hits: {} of {}", one.cache.hits, one.cache.lookups);
  return line;
}

// The ranks and processes whose logs were all removed; empty: none.
std::string WatchView::RemovedLine() const {
  std::set<std::int64_t> removed, kept;
  std::size_t without_rank = 0;
  for (const ProcessStatus& row : status_.rows) {
    const auto log = live_.logs.find(row.log_path);
    const bool is_removed = log != live_.logs.end() && log->second.is_removed;
    if (row.rank) (is_removed ? removed : kept).insert(*row.rank);
    if (!row.rank && is_removed) ++without_rank;
  }
  std::erase_if(removed, [&](std::int64_t rank) { return kept.contains(rank); });
  std::string whose;
  if (!removed.empty())
    whose = fmt::format("{} {}", removed.size() == 1 ? "rank" : "ranks",
                        FormatRankRanges({removed.begin(), removed.end()}));
  if (without_rank > 0)
    whose += (whose.empty() ? "" : ", ") + Count(without_rank, "process") + " without rank";
  return whose.empty() ? whose : whose + ": the log was removed, shown as of its last record";
}

std::vector<std::string> WatchView::StatusLines() const {
  std::map<std::tuple<RankState, std::string, std::string>, std::pair<const ProcessStatus*, Class>>
      classes;
  std::set<std::int64_t> seen;
  for (const ProcessStatus& row : status_.rows) {
    auto& [first, one] = classes[{row.state, row.Title(), row.phase}];
    if (first == nullptr) first = &row;
    // By rank: one that has several logs is one rank.
    if (row.rank && (one.ranks.empty() || one.ranks.back() != *row.rank))
      one.ranks.push_back(*row.rank);
    if (row.rank) seen.insert(*row.rank);
    if (!row.rank) ++one.logs;
    one.longest_us = std::max(one.longest_us, ElapsedUs(row));
    one.least_done = std::min(one.least_done, row.compiles_done);
    one.most_done = std::max(one.most_done, row.compiles_done);
    if (const auto cache = cache_.find(row.process_id); cache != cache_.end()) {
      one.cache.hits += cache->second.hits;
      one.cache.lookups += cache->second.lookups;
    }
  }
  // The largest first, then by their first rank; those without rank last.
  std::vector<std::tuple<std::size_t, std::int64_t, std::string>> lines;
  for (const auto& [key, entry] : classes) {
    const auto& [row, one] = entry;
    lines.emplace_back(one.ranks.size() + one.logs, one.ranks.empty() ? INT64_MAX : one.ranks[0],
                       LineOf(*row, one));
  }
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return std::get<0>(a) != std::get<0>(b) ? std::get<0>(a) > std::get<0>(b)
                                            : std::get<1>(a) < std::get<1>(b);
  });
  std::vector<std::string> texts;
  for (auto& [count, rank, text] : lines) texts.push_back(std::move(text));
  if (texts.size() > kMostClasses) {
    const std::size_t more = texts.size() - kMostClasses;
    texts.resize(kMostClasses);
    texts.push_back(fmt::format("and {} more groups", more));
  }
  std::vector<std::int64_t> missing;
  for (std::int64_t rank = 0; rank < options_.world_size.value_or(0); ++rank) {
    if (!seen.contains(rank)) missing.push_back(rank);
  }
  if (std::string line = RemovedLine(); !line.empty()) texts.push_back(std::move(line));
  if (!missing.empty())
    texts.push_back(fmt::format("{} {}: no log yet", missing.size() == 1 ? "rank" : "ranks",
                                FormatRankRanges(missing)));
  if (texts.empty()) texts.emplace_back("no record yet");
  if (!is_running_)
    texts.insert(
        texts.begin(),
        "the logs, or their last records, are an hour old or older: shown as a job that has ended");
  return texts;
}

void WatchView::Say(const std::string& text) {
  screen_.Leave();
  std::fprintf(stderr, "tlparse: %s\n", Printable(text).c_str());
}

void WatchView::Publish(LiveState& page) const {
  WatchedJob job;
  job.world_size = options_.world_size;
  if (is_running_) job.live = live_;
  std::string findings;
  for (const std::string& id : order_) findings += id + standing_.at(id).finding.title + '\n';
  page.SetView(StatusLines(), std::move(job), findings);
}

void WatchView::Show(bool is_last) {
  if (options_.json) return ShowJson();
  if (options_.only_findings) {
    if (!is_last) ShowLines({});
    return ClearNews();
  }
  const std::vector<std::string> lines = StatusLines();
  if (WatchScreen::IsPossible() && !is_last) {
    ShowScreen(lines);
  } else {
    ShowLines(lines);
  }
  ClearNews();
}

void WatchView::ClearNews() {
  opened_.clear();
  changed_.clear();
  settled_.clear();
}

void WatchView::ShowScreen(const std::vector<std::string>& lines) {
  std::vector<ScreenLine> findings;
  for (std::size_t index = 0; index < std::min(order_.size(), kMostFindings); ++index) {
    const Finding& finding = standing_.at(order_[index]).finding;
    findings.push_back({Line(finding), finding.severity == FindingSeverity::kError ? Style::kRed
                                       : finding.severity == FindingSeverity::kWarning
                                           ? Style::kYellow
                                           : Style::kDim});
  }
  if (order_.size() > kMostFindings) {
    findings.push_back(
        {fmt::format("and {}", Count(order_.size() - kMostFindings, "more finding")), Style::kDim});
  }
  screen_.Show(lines, findings);
}

// The times alone are no change.
void WatchView::ShowLines(const std::vector<std::string>& lines) {
  std::vector<std::string> keys;
  for (const std::string& line : lines) {
    const std::size_t from = line.rfind(", for "), to = line.find(';', from);
    keys.push_back(from == std::string::npos || to == std::string::npos
                       ? line
                       : line.substr(0, from) + line.substr(to));
  }
  const std::string now = fmt::format("{:%H:%M:%S}", fmt::gmtime(std::time(nullptr)));
  const auto print = [&now](const std::string& text) {
    std::printf("%s %s\n", now.c_str(), Printable(text).c_str());
  };
  if (keys != shown_lines_) {
    for (const std::string& line : lines) print(line);
  }
  shown_lines_ = std::move(keys);
  for (const Finding& finding : opened_) print(Line(finding));
  for (const Finding& finding : changed_) print("changed: " + Line(finding));
  for (const Finding& finding : settled_) print("settled: " + finding.title);
  std::fflush(stdout);
}

void WatchView::ShowJson() {
  const auto print = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
  if (!status_.rows.empty() && shown_running_ != is_running_) {
    print(JobEvent(is_running_));
    shown_running_ = is_running_;
  }
  for (const ProcessStatus& row : status_.rows) {
    const Cache cache = cache_.contains(row.process_id) ? cache_.at(row.process_id) : Cache();
    std::string line = StatusEvent(row, cache.hits, cache.lookups);
    std::string& shown = shown_[row.process_id];
    if (shown == line) continue;
    shown = std::move(line);
    print(shown);
  }
  for (const Finding& finding : opened_) print(FindingEvent("open", finding));
  for (const Finding& finding : changed_) print(FindingEvent("changed", finding));
  for (const Finding& finding : settled_) print(FindingEvent("settled", finding));
  ClearNews();
  std::fflush(stdout);
}

void WatchView::ShowEnd(const std::string& database) {
  if (!options_.json) return;
  std::printf("%s\n", EndEvent(database).c_str());
  std::fflush(stdout);
}

}  // namespace tlparse

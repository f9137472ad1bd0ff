// The output of `tlparse watch`: the state of the ranks, and new and resolved findings.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/watch_alert.h"
#include "cli/watch_screen.h"
#include "facts/job/status.h"
#include "findings/live.h"
#include "report/live_state.h"
#include "store/database.h"

namespace tlparse {

struct WatchViewOptions {
  std::string run;
  std::optional<std::int64_t> world_size;
  bool json = false;
  bool only_findings = false;  // no lines of the state of the ranks, no screen
};

class WatchView {
 public:
  WatchView(WatchViewOptions options, std::vector<WatchAlert> alerts, std::string command);

  // Reads the state of the ranks from the database.
  Result<void> Read(Database& database);
  // What was read, with the state of the files.
  void Look(const LiveJob& live);
  bool HasRows() const { return !status_.rows.empty(); }
  // Makes the findings, after Look has read rows.
  Result<void> Find(Database& database);
  // Whether, since the findings were made, a compile has failed, or the job has ended or runs again.
  bool HasTurned() const;
  // Whether findings may change although no rows are added: a rank is quiet inside a compile.
  bool MayBeStuck() const;
  // Prints the changes since the last call as lines; on a terminal redraws the screen.
  void Show(bool is_last);
  // Prints a sentence about the watch itself to standard error.
  void Say(const std::string& text);
  // Hands the current state to the page.
  void Publish(LiveState& page) const;
  // The `{"event": "end", …}` of --json.
  void ShowEnd(const std::string& database);
  bool HasError() const;
  // The findings that are open, the most urgent first.
  std::vector<Finding> Findings() const;

 private:
  struct Cache {
    std::int64_t hits = 0, lookups = 0;
  };
  struct Standing {
    Finding finding;
    std::chrono::steady_clock::time_point since;
    std::set<std::size_t> alerted;  // indexes of alerts_
  };
  Result<void> LoadCache(Database& database);
  std::ptrdiff_t FailedCount() const;
  static bool IsChanged(const Finding& before, const Finding& now);
  void Compare(std::vector<Finding> findings);
  void ClearNews();
  void RunAlerts();
  struct Class;
  std::string LineOf(const ProcessStatus& row, const Class& one) const;
  std::string RemovedLine() const;
  std::vector<std::string> StatusLines() const;
  std::int64_t ElapsedUs(const ProcessStatus& row) const;
  void ShowScreen(const std::vector<std::string>& lines);
  void ShowLines(const std::vector<std::string>& lines);
  void ShowJson();

  WatchViewOptions options_;
  std::vector<WatchAlert> alerts_;
  std::string command_;
  StatusAnswer status_;
  LiveJob live_;
  bool is_running_ = true;
  bool found_running_ = true;  // is_running_ and FailedCount when the findings were made
  std::ptrdiff_t found_failed_ = 0;
  std::map<std::int64_t, Cache> cache_;              // by process
  std::map<std::string, Standing> standing_;         // findings by id
  std::vector<std::string> order_;                   // their ids, the most urgent first
  std::vector<Finding> opened_, changed_, settled_;  // since the last Show
  std::map<std::int64_t, std::string> shown_;        // by process: the last output of --json
  std::optional<bool> shown_running_;                // the last `job` event of --json
  std::vector<std::string> shown_lines_;
  WatchScreen screen_;
};

}  // namespace tlparse

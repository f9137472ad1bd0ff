// The state that a watch shows on its page: the revision of the database, and the state of the ranks.
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "findings/live.h"

namespace tlparse {

// What answers about a job need beside the database.
struct WatchedJob {
  std::optional<LiveJob> live;             // nothing: the job is shown as one that has ended
  std::optional<std::int64_t> world_size;  // how many ranks there should be
};

class LiveState {
 public:
  struct WatchedRun {
    std::int64_t run_id = 0;
    std::string run_uuid;
    std::string source;    // what is watched
    std::string database;  // its path
  };
  explicit LiveState(WatchedRun run);

  // The logs were checked for new bytes; `has_changed`: rows were committed.
  void SetLooked(bool has_changed);
  // The state of the ranks, a line for those in the same state. `findings`: any text that differs when
  // the findings or their sentences differ.
  void SetView(std::vector<std::string> lines, WatchedJob job, const std::string& findings);
  // The watch has ended; the database is being completed.
  void SetEnding();
  // The database is complete. `text`: what stays, in one or two sentences.
  void SetEnd(const std::string& text);
  // Returns when each page that asked lately has received the end, or after a few seconds.
  void WaitUntilEndIsKnown();
  // Ends every call of Wait.
  void Stop();

  // The state as JSON (schemas/json/viewer/live.schema.json). Waits up to two seconds for one whose
  // sequence is not `after`, unless four others wait. `page` names the page that asks.
  std::string Wait(std::int64_t after, const std::string& page);
  // Counts the page as present: it loads data although it does not call Wait.
  void Note(const std::string& page);

  std::int64_t revision() const;
  std::int64_t looked_at_us() const;
  WatchedJob watched() const;
  std::int64_t run_id() const { return run_.run_id; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Page {
    Clock::time_point asked;
    bool knows_end = false;
  };
  enum class Phase : std::uint8_t { kFollowing, kEnding, kEnded };
  void Change();
  Page& PageOf(const std::string& name);
  std::string Json() const;

  const WatchedRun run_;
  const std::string process_;  // another for each start of the program
  mutable std::mutex mutex_;   // guards all below
  std::condition_variable changed_, end_known_;
  std::int64_t sequence_ = 1;  // of this state: every change makes it larger
  std::int64_t revision_ = 1;  // of the database
  std::int64_t view_ = 1;      // of the findings
  Phase phase_ = Phase::kFollowing;
  std::int64_t looked_at_us_ = 0, lines_at_us_ = 0;  // since the epoch
  std::vector<std::string> lines_;
  WatchedJob watched_;
  std::string findings_, end_;
  std::map<std::string, Page> pages_;
  std::size_t waiting_ = 0;
  bool is_stopped_ = false;
};

}  // namespace tlparse

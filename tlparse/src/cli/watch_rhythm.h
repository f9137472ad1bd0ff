// When a watch reads its logs, the state of the ranks and the findings.
#pragma once

#include <chrono>
#include <optional>

namespace tlparse {

// Steady time, as many times faster than the system's as TLPARSE_WATCH_RATE says (1 to 100; for
// tests, which would wait otherwise).
struct WatchClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<WatchClock>;
  static constexpr bool is_steady = true;

  static time_point now();
  // How long `time` takes.
  static std::chrono::microseconds Real(duration time);
};

class WatchRhythm {
 public:
  using Clock = WatchClock;

  // `is_looked_at`: the state is shown on a screen or a page, or other programs wait for it.
  explicit WatchRhythm(bool is_looked_at) : is_looked_at_(is_looked_at) {}

  // A step began then and has ended. `has_changed`: the database.
  void NoteStep(Clock::time_point began, bool has_changed);
  // When the next step begins.
  Clock::time_point NextStep() const;

  // The state was read, the findings were made; `cpu_s`: what it cost.
  void NoteView(double cpu_s);
  void NoteFindings(double cpu_s);
  bool IsViewDue() const;
  // Whether the database has changed since the state was read.
  bool HasNewsToView() const { return has_news_to_view_; }
  // `has_turned`, `may_be_stuck`: see WatchView.
  bool AreFindingsDue(bool has_turned, bool may_be_stuck) const;

 private:
  bool is_looked_at_;
  Clock::time_point began_, changed_;  // the latest step, the latest one that changed the database
  Clock::duration took_{}, took_before_{};
  std::optional<Clock::time_point> viewed_, found_;
  bool has_news_to_view_ = false, has_news_to_find_ = false;
  double view_cpu_s_ = 0, findings_cpu_s_ = 0;
};

}  // namespace tlparse

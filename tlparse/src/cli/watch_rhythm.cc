#include "cli/watch_rhythm.h"

#include <algorithm>
#include <cstdlib>

namespace tlparse {

namespace {

// What is written is in the database after this time at most. A step finds what was written before
// it began, so the next one ends before this time has passed.
constexpr std::chrono::milliseconds kMostAge(2000);
constexpr std::chrono::milliseconds kAgeMargin(150);
// Each step costs CPU even if little was written: they are as far apart as that allows.
constexpr std::chrono::milliseconds kLeastPause(20);
// Between two reads of the state of the ranks: for a screen, for lines, and without new rows.
constexpr std::chrono::milliseconds kLeastView(1500);
constexpr std::chrono::milliseconds kLeastLines(3500);
constexpr std::chrono::seconds kMostView(5);
// Findings cost what the database is large, not what was added. While logs grow they are this far
// apart; they are made sooner when no log has grown for so long, or when the state of the ranks asks
// for them.
constexpr std::chrono::seconds kBetweenFindings(15);
constexpr std::chrono::seconds kQuietLogs(3);
// Neither is made again before this many times the CPU that it took has passed.
constexpr double kTimesCost = 100;

std::chrono::duration<double> PauseAfter(double cpu_s) {
  return std::chrono::duration<double>(kTimesCost * cpu_s);
}

int ClockRate() {
  static const int rate = [] {
    const char* const text = std::getenv("TLPARSE_WATCH_RATE");
    return text == nullptr ? 1 : std::clamp(std::atoi(text), 1, 100);
  }();
  return rate;
}

}  // namespace

WatchClock::time_point WatchClock::now() {
  return time_point(std::chrono::steady_clock::now().time_since_epoch() * ClockRate());
}

std::chrono::microseconds WatchClock::Real(duration time) {
  return std::chrono::ceil<std::chrono::microseconds>(time / ClockRate());
}

void WatchRhythm::NoteStep(Clock::time_point began, bool has_changed) {
  began_ = began;
  took_before_ = took_;
  took_ = Clock::now() - began;
  if (!has_changed) return;
  changed_ = Clock::now();
  has_news_to_view_ = has_news_to_find_ = true;
}

WatchRhythm::Clock::time_point WatchRhythm::NextStep() const {
  const auto longest = std::max(took_, took_before_);
  return std::max<Clock::time_point>(Clock::now() + kLeastPause,
                                     began_ + kMostAge - kAgeMargin - longest * 5 / 4);
}

void WatchRhythm::NoteView(double cpu_s) {
  viewed_ = Clock::now();
  has_news_to_view_ = false;
  view_cpu_s_ = cpu_s;
}

void WatchRhythm::NoteFindings(double cpu_s) {
  found_ = Clock::now();
  has_news_to_find_ = false;
  findings_cpu_s_ = cpu_s;
}

bool WatchRhythm::IsViewDue() const {
  if (!viewed_) return true;
  const auto age = Clock::now() - *viewed_;
  return age >= (!has_news_to_view_ ? kMostView
                 : is_looked_at_    ? kLeastView
                                    : kLeastLines) &&
         age >= PauseAfter(view_cpu_s_);
}

bool WatchRhythm::AreFindingsDue(bool has_turned, bool may_be_stuck) const {
  if (!found_) return true;
  const auto now = Clock::now();
  const auto age = now - *found_;
  if (age < PauseAfter(findings_cpu_s_)) return false;
  if (has_turned || (may_be_stuck && age >= kMostView)) return true;
  return has_news_to_find_ && (age >= kBetweenFindings || now - changed_ >= kQuietLogs);
}

}  // namespace tlparse

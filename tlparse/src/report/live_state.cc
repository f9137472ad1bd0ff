#include "report/live_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/json_writer.h"

namespace tlparse {

namespace {

// A call that waits holds a thread of the server and one of the few connections that a browser
// opens.
constexpr std::size_t kMostWaiting = 4;
constexpr std::chrono::seconds kLongestWait(2);
constexpr std::size_t kMostPages = 64;
constexpr std::chrono::seconds kPageIsThere(6);  // after it asked last
constexpr std::chrono::seconds kLongestEnd(8);

std::int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string RandomName() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace

LiveState::LiveState(WatchedRun run)
    : run_(std::move(run)), process_(RandomName()), looked_at_us_(NowUs()) {}

void LiveState::Change() {
  ++sequence_;
  changed_.notify_all();
}

void LiveState::SetLooked(bool has_changed) {
  const std::lock_guard lock(mutex_);
  looked_at_us_ = NowUs();
  if (!has_changed) return;
  ++revision_;
  Change();
}

void LiveState::SetView(std::vector<std::string> lines, WatchedJob job,
                        const std::string& findings) {
  const std::lock_guard lock(mutex_);
  lines_ = std::move(lines);
  lines_at_us_ = NowUs();
  watched_ = std::move(job);
  if (findings != findings_) ++view_;
  findings_ = findings;
  Change();
}

void LiveState::SetEnding() {
  const std::lock_guard lock(mutex_);
  phase_ = Phase::kEnding;
  Change();
}

void LiveState::SetEnd(const std::string& text) {
  const std::lock_guard lock(mutex_);
  phase_ = Phase::kEnded;
  end_ = text;
  looked_at_us_ = NowUs();
  watched_.live.reset();
  ++revision_;
  Change();
}

void LiveState::WaitUntilEndIsKnown() {
  std::unique_lock lock(mutex_);
  const auto all_know = [this] {
    const auto now = Clock::now();
    return std::all_of(pages_.begin(), pages_.end(), [now](const auto& entry) {
      return entry.second.knows_end || now - entry.second.asked > kPageIsThere;
    });
  };
  end_known_.wait_for(lock, kLongestEnd, all_know);
}

void LiveState::Stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
}

LiveState::Page& LiveState::PageOf(const std::string& name) {
  if (pages_.size() >= kMostPages && !pages_.contains(name)) {
    pages_.erase(std::min_element(pages_.begin(), pages_.end(), [](const auto& a, const auto& b) {
      return a.second.asked < b.second.asked;
    }));
  }
  Page& page = pages_[name];
  page.asked = Clock::now();
  return page;
}

void LiveState::Note(const std::string& page) {
  const std::lock_guard lock(mutex_);
  PageOf(page);
}

std::string LiveState::Wait(std::int64_t after, const std::string& page) {
  std::unique_lock lock(mutex_);
  if (phase_ == Phase::kEnded && after == sequence_) {
    PageOf(page).knows_end = true;
    end_known_.notify_all();
    return Json();
  }
  PageOf(page);
  if (waiting_ < kMostWaiting) {
    ++waiting_;
    changed_.wait_for(lock, kLongestWait, [&] { return sequence_ != after || is_stopped_; });
    --waiting_;
  }
  return Json();
}

std::int64_t LiveState::revision() const {
  const std::lock_guard lock(mutex_);
  return revision_;
}

std::int64_t LiveState::looked_at_us() const {
  const std::lock_guard lock(mutex_);
  return looked_at_us_;
}

WatchedJob LiveState::watched() const {
  const std::lock_guard lock(mutex_);
  return watched_;
}

std::string LiveState::Json() const {
  constexpr const char* kPhases[] = {"following", "ending", "ended"};
  JsonWriter json;
  json.BeginObject().Key("process").String(process_).Key("run").String(run_.run_uuid);
  json.Key("source").String(run_.source).Key("database").String(run_.database);
  json.Key("phase").String(kPhases[static_cast<int>(phase_)]);
  json.Key("sequence").Int(sequence_).Key("revision").Int(revision_).Key("view").Int(view_);
  json.Key("looked_at_us").Int(looked_at_us_).Key("now_us").Int(NowUs());
  json.Key("lines").BeginArray();
  for (const std::string& line : lines_) json.String(line);
  json.EndArray()
      .Key("lines_at_us")
      .OptionalInt(lines_.empty() ? std::nullopt : std::optional(lines_at_us_));
  json.Key("end").OptionalString(end_.empty() ? std::nullopt : std::optional(end_)).EndObject();
  return json.Take();
}

}  // namespace tlparse

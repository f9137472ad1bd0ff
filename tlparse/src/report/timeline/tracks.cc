#include "report/timeline/tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/json_writer.h"

namespace tlparse {
namespace {

// More than these at once share the last one.
constexpr std::size_t kMostLanes = 1000;
// A time further from the base is damage: about ten years.
constexpr std::int64_t kMostSinceBaseNs = std::int64_t{1} << 58;

// Nanoseconds as microseconds, exactly.
void AppendUs(std::int64_t ns, std::string& out) {
  if (ns < 0) out += '-';
  const std::uint64_t size =
      ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  fmt::format_to(std::back_inserter(out), FMT_STRING("{}"), size / 1000);
  if (size % 1000 != 0) fmt::format_to(std::back_inserter(out), FMT_STRING(".{:03}"), size % 1000);
}

bool IsNumberOfSystem(std::optional<std::int64_t> number) {
  return number && *number > 0 && *number < TimelineTracks::kFirstOwnNumber;
}

}  // namespace

std::int64_t TimelineTracks::AddProcess(std::optional<std::int64_t> pid, std::string name) {
  const std::int64_t number =
      IsNumberOfSystem(pid) && !pids_.contains(*pid) ? *pid : next_number_++;
  pids_.insert(number);
  unnamed_.emplace(number, std::move(name));
  return number;
}

std::int64_t TimelineTracks::OtherProcess(std::int64_t of, std::optional<std::int64_t> pid,
                                          const std::string& name) {
  const auto [found, is_new] = others_.try_emplace({of, name});
  if (is_new) found->second = AddProcess(pid, name);
  return found->second;
}

TimelineTrack& TimelineTracks::TrackOf(std::int64_t pid, const std::string& key,
                                       std::string_view name, std::optional<std::int64_t> tid) {
  const auto [found, is_new] = tracks_.try_emplace({pid, key});
  TimelineTrack& track = found->second;
  if (!is_new) return track;
  track.pid = pid;
  track.name = name;
  if (IsNumberOfSystem(tid) && tids_.insert({pid, *tid}).second) track.tid = tid;
  return track;
}

Result<void> TimelineTracks::NameProcess(std::int64_t pid) {
  const auto process = unnamed_.find(pid);
  if (process == unnamed_.end()) return {};
  std::string name;
  AppendJsonString(process->second, name);
  unnamed_.erase(process);
  RETURN_IF_ERROR(Name("process_name", pid, 0, "name", name));
  return Name("process_sort_index", pid, 0, "sort_index", std::to_string(process_count_++));
}

// A thread is named before its first event.
Result<void> TimelineTracks::AddLane(TimelineTrack& track, std::optional<std::int64_t> tid) {
  RETURN_IF_ERROR(NameProcess(track.pid));
  TimelineTrack::Lane& lane = track.lanes_.emplace_back();
  lane.begin_ns = lane.end_ns = INT64_MIN;
  lane.tid = tid ? *tid : next_number_++;
  std::string name;
  AppendJsonString(track.lanes_.size() == 1
                       ? track.name
                       : fmt::format("{} (overlapping, {})", track.name, track.lanes_.size()),
                   name);
  return Name("thread_name", track.pid, lane.tid, "name", name);
}

Result<std::size_t> TimelineTracks::LaneOf(TimelineTrack& track, std::int64_t start_ns,
                                           std::int64_t end_ns) {
  if (track.lanes_.empty()) RETURN_IF_ERROR(AddLane(track, track.tid));
  if (std::exchange(track.pass_, pass_) != pass_) {
    for (TimelineTrack::Lane& lane : track.lanes_) {
      lane.begin_ns = lane.end_ns;
      lane.open.clear();
    }
  }
  std::size_t at = 0;
  for (; at + 1 < kMostLanes; ++at) {
    if (at == track.lanes_.size()) RETURN_IF_ERROR(AddLane(track, {}));
    TimelineTrack::Lane& lane = track.lanes_[at];
    while (!lane.open.empty() && lane.open.back() <= start_ns) lane.open.pop_back();
    if (start_ns >= lane.begin_ns && (lane.open.empty() || end_ns <= lane.open.back())) break;
  }
  TimelineTrack::Lane& lane = track.lanes_[at];
  lane.open.push_back(end_ns);
  lane.end_ns = std::max(lane.end_ns, end_ns);
  return at;
}

Result<void> TimelineTracks::Name(std::string_view what, std::int64_t pid, std::int64_t tid,
                                  std::string_view key, std::string_view value) {
  return add_(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"{}":{}}}}})", what,
                          pid, tid, key, value));
}

bool TimelineTracks::Begin(std::string_view phase, std::string_view category, std::string_view name,
                           std::int64_t pid, std::int64_t tid, std::int64_t time_ns) {
  std::int64_t since = 0;
  if (__builtin_sub_overflow(time_ns, base_ns_, &since) ||
      (base_ns_ != 0 && (since > kMostSinceBaseNs || since < -kMostSinceBaseNs))) {
    ++left_out_;
    return false;
  }
  event_.clear();
  event_ += R"({"ph":")";
  event_ += phase;
  event_ += R"(","cat":")";
  event_ += category;
  event_ += R"(","name":)";
  AppendJsonString(name, event_);
  fmt::format_to(std::back_inserter(event_), FMT_STRING(R"(,"pid":{},"tid":{},"ts":)"), pid, tid);
  AppendUs(since, event_);
  return true;
}

Result<void> TimelineTracks::End(std::string_view args) {
  if (!args.empty()) {
    event_ += R"(,"args":)";
    event_ += args;
  }
  event_ += '}';
  return add_(event_);
}

Result<std::int64_t> TimelineTracks::AddSlice(TimelineTrack& track, const Slice& slice) {
  std::int64_t end_ns = 0;
  if (__builtin_add_overflow(slice.start_ns, slice.duration_ns, &end_ns)) end_ns = INT64_MAX;
  ASSIGN_OR_RETURN(const std::size_t lane, LaneOf(track, slice.start_ns, end_ns));
  const std::int64_t tid = track.lanes_[lane].tid;
  if (!Begin("X", slice.category, slice.name, track.pid, tid, slice.start_ns)) return tid;
  event_ += R"(,"dur":)";
  AppendUs(slice.duration_ns, event_);
  RETURN_IF_ERROR(End(slice.args));
  return tid;
}

Result<void> TimelineTracks::AddInstant(TimelineTrack& track, const Slice& instant) {
  if (track.lanes_.empty()) RETURN_IF_ERROR(AddLane(track, track.tid));
  if (!Begin("i", instant.category, instant.name, track.pid, track.lanes_.front().tid,
             instant.start_ns))
    return {};
  event_ += R"(,"s":"t")";
  return End(instant.args);
}

Result<void> TimelineTracks::AddFlow(char phase, std::int64_t id, const TimelineTrack& track,
                                     std::int64_t tid, std::int64_t start_ns) {
  if (!Begin({&phase, 1}, "launch", "launch", track.pid, tid, start_ns)) return {};
  fmt::format_to(std::back_inserter(event_), FMT_STRING(R"(,"id":{})"), id);
  if (phase == 'f') event_ += R"(,"bp":"e")";
  return End({});
}

Result<void> TimelineTracks::AddCounter(std::int64_t pid, std::string_view name,
                                        std::int64_t time_ns, std::string_view args) {
  RETURN_IF_ERROR(NameProcess(pid));
  return Begin("C", "memory", name, pid, 0, time_ns) ? End(args) : Result<void>();
}

}  // namespace tlparse

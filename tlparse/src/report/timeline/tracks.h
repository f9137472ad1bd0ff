// The processes and threads of a file in the trace-event format, and its slices, each on a thread
// where it is inside the slice that is open there, or after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tlparse {

// Takes one JSON object.
using AddEvent = std::function<Result<void>(std::string_view)>;

// Slices that are written one after another, by their start. What overlaps is on further lanes:
// threads whose names say so.
class TimelineTrack {
 public:
  std::int64_t pid = 0;
  std::string name;
  std::optional<std::int64_t> tid;  // of the system; nothing: not known, or used by another one

 private:
  friend class TimelineTracks;
  struct Lane {
    std::int64_t tid = 0;
    std::int64_t begin_ns = 0;       // the first moment that this pass may use
    std::int64_t end_ns = 0;         // of all that is on it
    std::vector<std::int64_t> open;  // ends, the innermost last
  };
  std::vector<Lane> lanes_;
  std::int64_t pass_ = 0;
};

// Writes the events of one file. Times are relative to `base_ns`.
class TimelineTracks {
 public:
  // Linux numbers processes and threads below.
  static constexpr std::int64_t kFirstOwnNumber = 5'000'000;

  TimelineTracks(AddEvent add, std::int64_t base_ns) : add_(std::move(add)), base_ns_(base_ns) {}

  // The number of a process in the file: the system's, unless another one has it. It is named before
  // its first event.
  std::int64_t AddProcess(std::optional<std::int64_t> pid, std::string name);
  // The number of a device, or of another process, that belongs to process `of`; `name` is its own.
  std::int64_t OtherProcess(std::int64_t of, std::optional<std::int64_t> pid,
                            const std::string& name);
  // `key`: within the process. The thread's number is `tid` if that is one, and free.
  TimelineTrack& TrackOf(std::int64_t pid, const std::string& key, std::string_view name,
                         std::optional<std::int64_t> tid = {});
  // Before slices that do not follow those before them.
  void BeginPass() { ++pass_; }

  struct Slice {
    std::string_view category, name;
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::string_view args;  // a JSON object; empty: none
  };
  // Returns the slice's tid.
  Result<std::int64_t> AddSlice(TimelineTrack& track, const Slice& slice);
  // Without a duration.
  Result<void> AddInstant(TimelineTrack& track, const Slice& instant);
  // `phase`: s, where the flow leaves the slice that begins then, or f, where it arrives.
  Result<void> AddFlow(char phase, std::int64_t id, const TimelineTrack& track, std::int64_t tid,
                       std::int64_t start_ns);
  // `args`: a JSON object, a number for each series.
  Result<void> AddCounter(std::int64_t pid, std::string_view name, std::int64_t time_ns,
                          std::string_view args);

  std::int64_t base_ns() const { return base_ns_; }
  std::int64_t left_out() const { return left_out_; }  // their times cannot be written

 private:
  Result<std::size_t> LaneOf(TimelineTrack& track, std::int64_t start_ns, std::int64_t end_ns);
  Result<void> AddLane(TimelineTrack& track, std::optional<std::int64_t> tid);
  Result<void> NameProcess(std::int64_t pid);
  Result<void> Name(std::string_view what, std::int64_t pid, std::int64_t tid, std::string_view key,
                    std::string_view value);
  // False: it is not added, and counted.
  bool Begin(std::string_view phase, std::string_view category, std::string_view name,
             std::int64_t pid, std::int64_t tid, std::int64_t time_ns);
  Result<void> End(std::string_view args);

  AddEvent add_;
  std::int64_t base_ns_;
  std::int64_t left_out_ = 0;
  std::int64_t next_number_ = kFirstOwnNumber;
  std::int64_t pass_ = 0;
  std::int64_t process_count_ = 0;
  std::set<std::int64_t> pids_;
  std::map<std::pair<std::int64_t, std::string>, std::int64_t> others_;
  std::map<std::int64_t, std::string> unnamed_;  // processes without an event so far
  std::set<std::pair<std::int64_t, std::int64_t>> tids_;
  std::map<std::pair<std::int64_t, std::string>, TimelineTrack> tracks_;
  std::string event_;
};

}  // namespace tlparse

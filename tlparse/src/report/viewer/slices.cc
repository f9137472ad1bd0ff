#include "report/viewer/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "queries/report/viewer/slices.h"
#include "report/viewer/chunk.h"

namespace tlparse {
namespace {

// About 35 bytes each. A run of very many profiles gets fewer of each.
constexpr std::int64_t kMostSlices = 100'000;
constexpr std::int64_t kLeastSlices = 500;
constexpr std::int64_t kMostSlicesOfRun = 1'000'000;
constexpr std::int64_t kStretches = 2000;
constexpr std::size_t kMostTracks = 200;

using TrackKey = std::array<std::int64_t, 4>;  // kind, thread or -1, device or -1, stream or -1

struct Stretch {
  std::int64_t count = 0;
  double ns = 0;
};

struct Track {
  std::size_t index = 0;
  std::vector<Stretch> stretches;  // empty: nothing was left out
};

struct Span {
  std::int64_t slices = 0;
  std::int64_t start_ns = 0;
  std::int64_t stretch_ns = 1;
};

// Times of a damaged file may lie too far apart for the difference to be a number.
std::int64_t Since(std::int64_t later, std::int64_t earlier) {
  std::int64_t difference = 0;
  return __builtin_sub_overflow(later, earlier, &difference) ? INT64_MAX : difference;
}

TrackKey KeyOf(const SliceOfProfile& slice) {
  return {slice.kind, slice.thread_id.value_or(-1), slice.device.value_or(-1),
          slice.stream.value_or(-1)};
}

class SliceWriter {
 public:
  SliceWriter(Database& database, std::int64_t profile_id, std::int64_t most)
      : database_(database), profile_id_(profile_id), most_(most) {}

  Result<std::string> Write(std::int64_t origin_us) {
    RETURN_IF_ERROR(ReadTracks());
    if (span_.slices > most_) RETURN_IF_ERROR(AddStretches());
    ASSIGN_OR_RETURN(const std::int64_t shortest_ns, AddSlices());
    AddStrips();
    writer_.BeginTable("span",
                       {"start_us", "slices", "kept", "shortest_ns", "stretch_ns", "tracks"}, {});
    writer_.AddReal(OffsetUs(span_.start_ns, origin_us));
    writer_.AddNumber(span_.slices);
    writer_.AddNumber(kept_);
    writer_.AddNumber(shortest_ns);
    writer_.AddNumber(span_.stretch_ns);
    writer_.AddNumber(track_count_);
    RETURN_IF_ERROR(AddTracks());
    return writer_.Finish();
  }

 private:
  std::string Longest() const {
    return fmt::format("1 ORDER BY duration_ns DESC, start_ns LIMIT {}", most_);
  }

  QueryRows<SliceOfProfile> Slices(std::string_view which) {
    return Query<SliceOfProfile>(database_, {.profile_id = profile_id_, .which = which});
  }

  // How many slices there are, from when to when, and on which tracks; beyond the limit the tracks
  // with the fewest slices are left out.
  Result<void> ReadTracks() {
    std::map<TrackKey, std::int64_t> counts;
    std::int64_t last_ns = 0;
    FOR_EACH_ROW(const SliceOfProfile& slice, Slices("1")) {
      ++counts[KeyOf(slice)];
      const std::int64_t at = slice.start_ns;
      span_.start_ns = span_.slices == 0 ? at : std::min(span_.start_ns, at);
      last_ns = span_.slices == 0 ? at : std::max(last_ns, at);
      ++span_.slices;
    }
    span_.stretch_ns = Since(last_ns, span_.start_ns) / kStretches + 1;
    track_count_ = static_cast<std::int64_t>(counts.size());
    std::vector<std::pair<std::int64_t, TrackKey>> order;
    for (const auto& [key, count] : counts) order.emplace_back(count, key);
    std::sort(order.rbegin(), order.rend());
    for (std::size_t i = 0; i < order.size() && i < kMostTracks; ++i)
      tracks_.emplace(order[i].second, Track());
    std::size_t index = 0;
    for (auto& [key, track] : tracks_) track.index = index++;
    return {};
  }

  void AddToStretch(Track& track, const SliceOfProfile& slice, std::int64_t sign) {
    if (track.stretches.empty()) track.stretches.resize(kStretches + 1);
    const std::int64_t at = std::clamp<std::int64_t>(
        Since(slice.start_ns, span_.start_ns) / span_.stretch_ns, 0, kStretches);
    Stretch& stretch = track.stretches[static_cast<std::size_t>(at)];
    stretch.count += sign;
    stretch.ns += static_cast<double>(sign) * static_cast<double>(slice.duration_ns);
  }

  // All slices, those that are kept among them.
  Result<void> AddStretches() {
    FOR_EACH_ROW(const SliceOfProfile& slice, Slices("1")) {
      const auto found = tracks_.find(KeyOf(slice));
      if (found != tracks_.end()) AddToStretch(found->second, slice, 1);
    }
    return {};
  }

  // Tells the duration of the shortest one.
  Result<std::int64_t> AddSlices() {
    writer_.BeginTable("slice", {"track", "start_ns", "duration_ns", "graph_id", "call"}, {"name"});
    std::int64_t shortest_ns = 0;
    ASSIGN_OR_RETURN(PreparedQuery<NameOfSlice> names, PreparedQuery<NameOfSlice>::Make(database_));
    FOR_EACH_ROW(const SliceOfProfile& slice, Slices(Longest())) {
      const auto found = tracks_.find(KeyOf(slice));
      if (found == tracks_.end()) continue;
      ++kept_;
      if (span_.slices > most_) AddToStretch(found->second, slice, -1);
      shortest_ns = slice.duration_ns;
      writer_.AddNumber(static_cast<std::int64_t>(found->second.index));
      writer_.AddNumber(Since(slice.start_ns, span_.start_ns));
      writer_.AddNumber(slice.duration_ns);
      writer_.AddNumber(slice.graph_id);
      writer_.AddNumber(slice.call);
      ASSIGN_OR_RETURN(const FirstRow<NameOfSlice> name,
                       First(names.Run({.id = slice.name_id.value_or(0)})));
      writer_.AddText(name ? std::optional(name->text) : std::nullopt);
    }
    return shortest_ns;
  }

  void AddStrips() {
    writer_.BeginTable("strip", {"track", "stretch", "count", "ns"}, {});
    for (const auto& [key, track] : tracks_) {
      for (std::size_t i = 0; i < track.stretches.size(); ++i) {
        const Stretch& stretch = track.stretches[i];
        if (stretch.count <= 0) continue;
        writer_.AddNumber(static_cast<std::int64_t>(track.index));
        writer_.AddNumber(static_cast<std::int64_t>(i));
        writer_.AddNumber(stretch.count);
        writer_.AddReal(stretch.ns);
      }
    }
  }

  Result<void> AddTracks() {
    ASSIGN_OR_RETURN(PreparedQuery<ThreadOfSlice> threads,
                     PreparedQuery<ThreadOfSlice>::Make(database_));
    writer_.BeginTable("track", {"kind", "device", "stream"}, {"tid", "thread_name"});
    const auto number = [](std::int64_t value) {
      return value < 0 ? std::nullopt : std::optional(value);
    };
    for (const auto& [key, track] : tracks_) {
      writer_.AddNumber(key[0]);
      writer_.AddNumber(number(key[2]));
      writer_.AddNumber(number(key[3]));
      ASSIGN_OR_RETURN(const FirstRow<ThreadOfSlice> thread, First(threads.Run({.id = key[1]})));
      writer_.AddText(thread ? std::optional(thread->tid) : std::nullopt);
      writer_.AddText(thread ? thread->name : std::nullopt);
    }
    return {};
  }

  Database& database_;
  std::int64_t profile_id_;
  std::int64_t most_;
  Span span_;
  std::map<TrackKey, Track> tracks_;
  std::int64_t track_count_ = 0;
  std::int64_t kept_ = 0;
  ChunkWriter writer_;
};

}  // namespace

Result<std::int64_t> RowsOfProfile(Database& database, std::int64_t run_id,
                                   const RowBudget& budget) {
  ASSIGN_OR_RETURN(const FirstRow<TimelineProfiles> profiles,
                   First(Query<TimelineProfiles>(database, {.run_id = run_id})));
  return std::clamp(budget.of_run / std::max<std::int64_t>(profiles ? profiles->count : 0, 1),
                    budget.least, budget.most);
}

Result<std::string> SlicesChunk(Database& database, std::int64_t run_id, std::int64_t profile_id,
                                std::int64_t origin_us) {
  ASSIGN_OR_RETURN(const std::int64_t most,
                   RowsOfProfile(database, run_id, {kMostSlicesOfRun, kLeastSlices, kMostSlices}));
  return SliceWriter(database, profile_id, most).Write(origin_us);
}

}  // namespace tlparse

#include "facts/memory/over_time.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "facts/memory/moments.h"
#include "facts/memory/steps.h"
#include "queries/facts/memory/after_peak.h"
#include "queries/facts/memory/over_time.h"

namespace tlparse {
namespace {

constexpr std::int64_t kMostStretches = 800;
constexpr std::size_t kMostHolders = 8;

class OverTime {
 public:
  OverTime(Database& database, std::int64_t snapshot_id)
      : database_(database), snapshot_id_(snapshot_id) {}

  Result<std::vector<MemoryPoint>> Read() {
    ASSIGN_OR_RETURN(const FirstRow<RecordingOverTime> row,
                     First(Query<RecordingOverTime>(database_, {.snapshot_id = snapshot_id_})));
    if (!row) return std::move(points_);
    profile_id_ = row->profile_id;
    RETURN_IF_ERROR(ChoosePoints(*row));
    RETURN_IF_ERROR(AddHolders());
    return std::move(points_);
  }

 private:
  // A site, and whether its blocks were there before: without a site that is all that is known.
  using Holder = std::pair<std::int64_t, bool>;
  using Changes = std::map<std::size_t, BytesAlive>;  // by point

  std::int64_t StretchOf(const RecordingOverTime& of, std::int64_t ordinal,
                         std::optional<std::int64_t> time_ns) const {
    if (of.start_ns && of.taken_ns && time_ns) {
      const std::int64_t width = (*of.taken_ns - *of.start_ns) / kMostStretches + 1;
      return std::clamp<std::int64_t>((*time_ns - *of.start_ns) / width, 0, kMostStretches - 1);
    }
    return ordinal / (of.event_count / kMostStretches + 1);
  }

  Result<void> ChoosePoints(const RecordingOverTime& of) {
    const std::int64_t last = of.event_count - 1;
    QueryRows<TimeOfEvent> events = Query<TimeOfEvent>(database_, {.snapshot_id = snapshot_id_});
    bool has_next = events.Next();
    MemoryPoint best;
    std::int64_t stretch = -1;
    const auto take = [&](std::int64_t ordinal, std::int64_t bytes) {
      MemoryPoint point;
      point.ordinal = ordinal;
      point.size_bytes = bytes;
      while (has_next && events.row().ordinal < ordinal) has_next = events.Next();
      if (has_next && events.row().ordinal == ordinal) point.time_ns = events.row().time_ns;
      if (ordinal < 0) point.time_ns = of.start_ns;
      if (ordinal < 0 || ordinal == last || ordinal == of.oom_ordinal) points_.push_back(point);
      if (ordinal < 0) return;
      const std::int64_t own = std::max(stretch, StretchOf(of, ordinal, point.time_ns));
      if (own != stretch && stretch >= 0) points_.push_back(best);
      if (own != stretch || bytes > best.size_bytes) best = point;
      stretch = own;
    };
    RETURN_IF_ERROR(ForEachMoment(database_, snapshot_id_, of.event_count, take));
    if (stretch >= 0) points_.push_back(best);
    if (const std::unique_ptr<Error> error = events.TakeError())
      return tl::unexpected<Error>(std::move(*error));
    std::sort(points_.begin(), points_.end(),
              [](const MemoryPoint& a, const MemoryPoint& b) { return a.ordinal < b.ordinal; });
    const auto same = [](const MemoryPoint& a, const MemoryPoint& b) {
      return a.ordinal == b.ordinal;
    };
    points_.erase(std::unique(points_.begin(), points_.end(), same), points_.end());
    return {};
  }

  // The first point after the event.
  std::size_t PointAfter(std::int64_t ordinal) const {
    const auto found = std::lower_bound(
        points_.begin(), points_.end(), ordinal,
        [](const MemoryPoint& point, std::int64_t event) { return point.ordinal < event; });
    return static_cast<std::size_t>(found - points_.begin());
  }

  Result<void> AddHolders() {
    std::map<Holder, Changes> holders;
    FOR_EACH_ROW(const LifeByOrdinal& life,
                 Query<LifeByOrdinal>(database_, {.snapshot_id = snapshot_id_})) {
      const std::size_t begin = PointAfter(life.alloc_ordinal.value_or(-1));
      const std::size_t end = life.free_ordinal ? PointAfter(*life.free_ordinal) : points_.size();
      if (begin >= end) continue;
      Changes& changes = holders[{life.site_id, life.site_id == 0 && !life.alloc_ordinal}];
      BytesAlive& added = changes[begin];
      added.size_bytes += life.size_bytes;
      ++added.allocations;
      BytesAlive& removed = changes[end];
      removed.size_bytes -= life.size_bytes;
      --removed.allocations;
    }
    std::unordered_map<std::int64_t, std::size_t> categories;
    FOR_EACH_ROW(const CategoryOfSite& site,
                 Query<CategoryOfSite>(database_, {.profile_id = profile_id_})) {
      categories[site.site_id] = static_cast<std::size_t>(site.category);
    }
    for (const auto& [holder, changes] : holders) {
      const auto known = categories.find(holder.first);
      AddHolder(holder, changes,
                known == categories.end() ? static_cast<std::size_t>(MemoryCategory::kUnknown)
                                          : known->second);
    }
    return {};
  }

  void AddHolder(const Holder& holder, const Changes& changes, std::size_t category) {
    BytesAlive alive;
    for (auto change = changes.begin(); change != changes.end(); ++change) {
      alive.size_bytes += change->second.size_bytes;
      alive.allocations += change->second.allocations;
      if (alive.allocations == 0) continue;
      const auto next = std::next(change);
      const std::size_t end = next == changes.end() ? points_.size() : next->first;
      for (std::size_t i = change->first; i < end; ++i) {
        points_[i].categories[category] += alive.size_bytes;
        Keep(points_[i].holders,
             {holder.first, holder.second, alive.size_bytes, alive.allocations});
      }
    }
  }

  static void Keep(std::vector<MemoryHolder>& holders, const MemoryHolder& holder) {
    const auto at = std::upper_bound(
        holders.begin(), holders.end(), holder,
        [](const MemoryHolder& a, const MemoryHolder& b) { return a.size_bytes > b.size_bytes; });
    holders.insert(at, holder);
    if (holders.size() > kMostHolders) holders.pop_back();
  }

  Database& database_;
  const std::int64_t snapshot_id_;
  std::int64_t profile_id_ = 0;
  std::vector<MemoryPoint> points_;
};

}  // namespace

Result<std::vector<MemoryPoint>> ReadMemoryOverTime(Database& database, std::int64_t snapshot_id) {
  return OverTime(database, snapshot_id).Read();
}

}  // namespace tlparse

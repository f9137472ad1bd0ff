#include "facts/cost/outside.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "queries/facts/cost/outside.h"

namespace tlparse {
namespace {

using Interval = std::pair<std::int64_t, std::int64_t>;

struct Named {
  Interval time;
  std::string name;
};

// Of the window, what is in none of the intervals, which are sorted by their start.
std::vector<Interval> Gaps(const CostProfile& profile, const std::vector<Interval>& inside) {
  std::vector<Interval> gaps;
  std::int64_t from = profile.start_ns;
  for (const auto& [start, end] : inside) {
    if (start > from) gaps.emplace_back(from, start);
    from = std::max(from, end);
  }
  if (from < profile.end_ns) gaps.emplace_back(from, profile.end_ns);
  return gaps;
}

// Events of one thread, by their start, outer before inner: for each moment the innermost.
std::vector<Named> Innermost(const std::vector<Named>& events) {
  std::vector<Named> pieces;
  std::vector<const Named*> open;
  std::int64_t now = 0;
  const auto add = [&](std::int64_t until) {
    if (until > now) pieces.push_back({{now, until}, open.back()->name});
    now = std::max(now, until);
  };
  const auto close_until = [&](std::int64_t time) {
    while (!open.empty() && open.back()->time.second <= time) {
      add(open.back()->time.second);
      open.pop_back();
    }
  };
  for (const Named& event : events) {
    close_until(event.time.first);
    if (!open.empty()) add(event.time.first);
    now = std::max(now, event.time.first);
    open.push_back(&event);
  }
  close_until(INT64_MAX);
  return pieces;
}

// The same for the outermost.
std::vector<Named> Outermost(std::vector<Named> events) {
  std::vector<Named> pieces;
  std::int64_t end = INT64_MIN;
  for (Named& event : events) {
    event.time.first = std::max(event.time.first, end);
    if (event.time.first >= event.time.second) continue;
    end = event.time.second;
    pieces.push_back(std::move(event));
  }
  return pieces;
}

// Adds to each name its part of the gaps and returns what no piece covers; both are disjoint and
// sorted.
std::vector<Interval> Divide(const std::vector<Interval>& gaps, const std::vector<Named>& pieces,
                             std::map<std::string, std::int64_t>& ns_of_name) {
  std::vector<Interval> left;
  auto piece = pieces.begin();
  for (const auto& [start, end] : gaps) {
    std::int64_t from = start;
    while (piece != pieces.end() && piece->time.second <= start) ++piece;
    for (auto at = piece; at != pieces.end() && at->time.first < end; ++at) {
      const std::int64_t first = std::max(from, at->time.first);
      const std::int64_t last = std::min(end, at->time.second);
      if (first > from) left.emplace_back(from, first);
      ns_of_name[at->name] += last - first;
      from = last;
    }
    if (from < end) left.emplace_back(from, end);
  }
  return left;
}

template <typename Row>
Result<std::vector<Named>> EventsOf(QueryRows<Row> rows) {
  std::vector<Named> events;
  FOR_EACH_ROW(const Row& row, std::move(rows)) {
    events.push_back({{row.start_ns, row.end_ns}, std::string(row.name)});
  }
  return events;
}

void AddParts(CostProfile& profile, OutsideKind kind,
              const std::map<std::string, std::int64_t>& ns_of_name) {
  for (const auto& [name, ns] : ns_of_name)
    profile.outside.push_back({kind, name, static_cast<double>(ns) / 1e3});
}

}  // namespace

Result<void> FillOutside(Database& database, CostProfile& profile,
                         const std::vector<Interval>& inside) {
  if (profile.steps == 0 || !profile.first_step || !profile.last_step) return {};
  ASSIGN_OR_RETURN(const FirstRow<StepThread> thread,
                   First(Query<StepThread>(database, {.profile_id = profile.id,
                                                      .first_step = *profile.first_step,
                                                      .last_step = *profile.last_step})));
  if (!thread) return {};
  ASSIGN_OR_RETURN(const std::vector<Named> annotations,
                   EventsOf(Query<AnnotationOfThread>(database, {.profile_id = profile.id,
                                                                 .thread_id = thread->thread_id,
                                                                 .start_ns = profile.start_ns,
                                                                 .end_ns = profile.end_ns})));
  ASSIGN_OR_RETURN(std::vector<Named> ops,
                   EventsOf(Query<OpOfThread>(database, {.profile_id = profile.id,
                                                         .thread_id = thread->thread_id,
                                                         .start_ns = profile.start_ns,
                                                         .end_ns = profile.end_ns})));
  std::map<std::string, std::int64_t> of_annotations, of_ops;
  std::vector<Interval> left =
      Divide(Gaps(profile, inside), Innermost(annotations), of_annotations);
  left = Divide(left, Outermost(std::move(ops)), of_ops);
  AddParts(profile, OutsideKind::kAnnotation, of_annotations);
  AddParts(profile, OutsideKind::kOp, of_ops);
  std::int64_t rest_ns = 0;
  for (const auto& [start, end] : left) rest_ns += end - start;
  if (rest_ns > 0)
    profile.outside.push_back({OutsideKind::kNeither, {}, static_cast<double>(rest_ns) / 1e3});
  std::stable_sort(profile.outside.begin(), profile.outside.end(),
                   [](const auto& a, const auto& b) { return a.us > b.us; });
  return {};
}

}  // namespace tlparse

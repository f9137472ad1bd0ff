#include "facts/compiles/event_times.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "queries/facts/compiles/event_times.h"

namespace tlparse {
namespace {

constexpr double kClockSlackUs = 1;  // of events that end together

struct OpenTime {
  double start_us = 0, end_us = 0;
  std::size_t group = 0;
  std::optional<std::int64_t> name_id;  // nothing: the time of a compile
  std::size_t name = 0, node = 0;       // of an event: indexes into ProcessTimes
};

// Goes through the beginnings in order, and attributes the time between two moments.
class TimeSweep {
 public:
  void AddEvent(const TimedEventOfProcess& row) {
    const std::size_t group = GroupOf(row.compile_id);
    ++times_.compiles[group].events;
    events_.push_back({row.start_us, row.start_us + row.duration_us, group, row.name_id});
    texts_.try_emplace(row.name_id, row.name);
  }

  void AddCompile(std::int64_t id, std::optional<std::int64_t> start_us,
                  std::optional<std::int64_t> duration_us) {
    if (!start_us || duration_us.value_or(0) <= 0) return;
    const auto start = static_cast<double>(*start_us);
    compiles_.push_back(
        {start, start + static_cast<double>(*duration_us), GroupOf(id), std::nullopt});
  }

  ProcessTimes Finish() {
    std::stable_sort(compiles_.begin(), compiles_.end(),
                     [](const auto& a, const auto& b) { return a.start_us < b.start_us; });
    std::size_t next_compile = 0;
    for (OpenTime& event : events_) {
      for (; next_compile < compiles_.size() && compiles_[next_compile].start_us <= event.start_us;
           ++next_compile)
        Open(compiles_[next_compile]);
      AdvanceTo(event.start_us);
      event.node = NodeOf(event);
      event.name = NameOf(event);
      ++times_.nodes[event.node].count;
      TimeOfName& name = times_.names[event.name];
      ++name.count;
      name.max_us = std::max(name.max_us, event.end_us - event.start_us);
      Open(event);
    }
    for (; next_compile < compiles_.size(); ++next_compile) Open(compiles_[next_compile]);
    while (!open_.empty()) AdvanceTo(FirstEnd());
    return std::move(times_);
  }

 private:
  std::size_t GroupOf(std::optional<std::int64_t> compile_id) {
    const auto [at, is_new] = groups_.try_emplace(compile_id.value_or(0), times_.compiles.size());
    if (is_new) times_.compiles.push_back({.compile_id = compile_id});
    return at->second;
  }

  // Under the event that began last of those that contain this one.
  std::size_t NodeOf(const OpenTime& event) {
    std::optional<std::size_t> parent;
    for (auto outer = open_.rbegin(); outer != open_.rend() && !parent; ++outer) {
      if (outer->name_id && outer->group == event.group && outer->name_id != event.name_id &&
          outer->end_us + kClockSlackUs >= event.end_us)
        parent = outer->node;
    }
    const auto key = std::make_tuple(event.group, parent ? *parent + 1 : 0, *event.name_id);
    const auto [at, is_new] = nodes_.try_emplace(key, times_.nodes.size());
    if (is_new) {
      const std::string& name = texts_.at(*event.name_id);
      const TimedPhase outer = parent ? times_.nodes[*parent].phase : TimedPhase::kOther;
      times_.nodes.push_back({.parent = parent,
                              .group = event.group,
                              .name = name,
                              .phase = PhaseInside(name, outer)});
    }
    return at->second;
  }

  std::size_t NameOf(const OpenTime& event) {
    const TimeNode& node = times_.nodes[event.node];
    const auto [at, is_new] =
        names_.try_emplace({node.group, node.phase, node.name}, times_.names.size());
    if (is_new)
      times_.names.push_back({.group = node.group, .phase = node.phase, .name = node.name});
    return at->second;
  }

  void Open(const OpenTime& begun) {
    AdvanceTo(begun.start_us);
    if (begun.end_us <= begun.start_us) return;
    open_.push_back(begun);
  }

  double FirstEnd() const {
    return std::min_element(open_.begin(), open_.end(),
                            [](const auto& a, const auto& b) { return a.end_us < b.end_us; })
        ->end_us;
  }

  void AdvanceTo(double time_us) {
    while (!open_.empty() && FirstEnd() <= time_us) {
      Attribute(FirstEnd());
      std::erase_if(open_, [&](const OpenTime& one) { return one.end_us <= now_us_; });
    }
    Attribute(time_us);
  }

  void Attribute(double until_us) {
    const double us = until_us - now_us_;
    now_us_ = std::max(now_us_, until_us);
    if (open_.empty() || us <= 0) return;
    // A compile has the time in which none of the events is open, whenever it began.
    const auto is_event = [](const OpenTime& one) { return one.name_id.has_value(); };
    auto owner = std::find_if(open_.rbegin(), open_.rend(), is_event);
    if (owner == open_.rend()) owner = open_.rbegin();
    times_.compiles[owner->group].self_us += us;
    if (owner->name_id) {
      times_.nodes[owner->node].self_us += us;
      times_.names[owner->name].self_us += us;
    } else {
      times_.compiles[owner->group].not_attributed_us += us;
    }
    for (auto one = open_.begin(); one != open_.end(); ++one) {
      const auto is_first = [&](const auto& is_same) {
        return std::find_if(open_.begin(), one, is_same) == one;
      };
      if (is_first([&](const OpenTime& other) { return other.group == one->group; }))
        times_.compiles[one->group].total_us += us;
      if (one->name_id && is_first([&](const OpenTime& other) {
            return is_event(other) && other.name == one->name;
          }))
        times_.names[one->name].total_us += us;
    }
  }

  ProcessTimes times_;
  std::vector<OpenTime> events_, compiles_;
  std::vector<OpenTime> open_;  // in the order of their beginnings
  double now_us_ = 0;
  std::unordered_map<std::int64_t, std::string> texts_;  // names by id
  std::unordered_map<std::int64_t, std::size_t> groups_;
  std::map<std::tuple<std::size_t, TimedPhase, std::string>, std::size_t> names_;
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t>, std::size_t> nodes_;
};

// torch.export traces in no event of a frame: the events that are inside of one elsewhere begin it.
bool IsTracing(std::string_view name) {
  return name == "dynamo" || name == "entire_frame_compile" || name == "fullgraph_capture" ||
         name == "bytecode_tracing" || name.starts_with("compile_attempt_");
}

}  // namespace

TimedPhase PhaseInside(std::string_view name, TimedPhase outer) {
  if (outer == TimedPhase::kBackward || name == "entire_backward_compile")
    return TimedPhase::kBackward;
  if (name == "inductor_compile" && outer != TimedPhase::kCodeGeneration)
    return TimedPhase::kInductor;
  // An ahead-of-time compile has no event code_gen.
  if ((name == "code_gen" || name == "AotCodeCompiler.compile") && outer == TimedPhase::kInductor)
    return TimedPhase::kCodeGeneration;
  if ((name == "backend_compile" && outer == TimedPhase::kDynamo) ||
      // Of a compile ahead of time the event around it is Dynamo's, fullgraph_capture.
      (name == "create_aot_dispatcher_function" &&
       (outer == TimedPhase::kOther || outer == TimedPhase::kDynamo)))
    return TimedPhase::kAotAutograd;
  if (outer == TimedPhase::kOther && IsTracing(name)) return TimedPhase::kDynamo;
  return outer;
}

Result<ProcessTimes> LoadProcessTimes(Database& database, std::int64_t process_id,
                                      const TimeWindow& window) {
  TimeSweep sweep;
  FOR_EACH_ROW(const SpanOfCompile& row,
               Query<SpanOfCompile>(database, {.process_id = process_id})) {
    if (row.start_time_us && window.Has(static_cast<double>(*row.start_time_us)))
      sweep.AddCompile(row.id, row.start_time_us, row.duration_us);
    if (row.backward_start_us && window.Has(static_cast<double>(*row.backward_start_us)))
      sweep.AddCompile(row.id, row.backward_start_us, row.backward_duration_us);
  }
  FOR_EACH_ROW(const TimedEventOfProcess& row,
               Query<TimedEventOfProcess>(database, {.process_id = process_id})) {
    if (window.Has(row.start_us)) sweep.AddEvent(row);
  }
  return sweep.Finish();
}

}  // namespace tlparse

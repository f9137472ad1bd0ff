#include "report/viewer/time.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "facts/compiles/event_times.h"
#include "queries/report/viewer/time.h"
#include "report/viewer/chunk.h"

namespace tlparse {
namespace {

struct TimeGroup {
  std::int64_t launch = 1;
  std::optional<std::int64_t> compile_id;  // nothing: all of the function
  std::string function, file;
  std::optional<std::int64_t> line;
  auto operator<=>(const TimeGroup&) const = default;
};

// Times of several processes, summed up by group.
class SummedTimes {
 public:
  explicit SummedTimes(bool is_by_compile) : is_by_compile_(is_by_compile) {}

  Result<void> Add(Database& database, const ProcessOfTimes& process) {
    ASSIGN_OR_RETURN(const ProcessTimes times, LoadProcessTimes(database, process.id));
    ASSIGN_OR_RETURN(const std::vector<std::size_t> groups, GroupsOf(database, process, times));
    for (const TimeOfCompile& own : times.compiles) compiles_.emplace_back(process.id, own);
    for (const TimeOfName& own : times.names) {
      TimeOfName& sum = names_[{groups[own.group], own.phase, own.name}];
      sum.self_us += own.self_us;
      sum.total_us += own.total_us;
      sum.max_us = std::max(sum.max_us, own.max_us);
      sum.count += own.count;
    }
    std::vector<std::size_t> nodes;
    for (const TimeNode& own : times.nodes) {
      const std::size_t parent = own.parent ? nodes[*own.parent] + 1 : 0;
      const auto key = std::make_tuple(groups[own.group], parent, own.name);
      const auto [at, is_new] = node_ids_.try_emplace(key, nodes_.size());
      nodes.push_back(at->second);
      if (is_new) {
        nodes_.push_back({.group = groups[own.group], .name = own.name, .phase = own.phase});
        if (parent > 0) nodes_.back().parent = parent - 1;
      }
      nodes_[at->second].self_us += own.self_us;
      nodes_[at->second].count += own.count;
    }
    return {};
  }

  std::string Finish() const {
    ChunkWriter writer;
    AddGroups(writer);
    writer.BeginTable("name", {"group", "phase", "self_us", "total_us", "max_us", "count"},
                      {"name"});
    for (const auto& [key, own] : names_) {
      writer.AddNumber(static_cast<std::int64_t>(std::get<0>(key)));
      writer.AddNumber(static_cast<std::int64_t>(std::get<1>(key)));
      writer.AddReal(own.self_us);
      writer.AddReal(own.total_us);
      writer.AddReal(own.max_us);
      writer.AddNumber(own.count);
      writer.AddText(std::get<2>(key));
    }
    writer.BeginTable("node", {"group", "parent", "phase", "self_us", "count"}, {"name"});
    for (const TimeNode& own : nodes_) {
      writer.AddNumber(static_cast<std::int64_t>(own.group));
      writer.AddNumber(own.parent ? std::optional(static_cast<std::int64_t>(*own.parent))
                                  : std::nullopt);
      writer.AddNumber(static_cast<std::int64_t>(own.phase));
      writer.AddReal(own.self_us);
      writer.AddNumber(own.count);
      writer.AddText(own.name);
    }
    writer.BeginTable(
        "compile",
        {"process_id", "compile_id", "self_us", "total_us", "not_attributed_us", "events"}, {});
    for (const auto& [process_id, own] : compiles_) {
      writer.AddNumber(process_id);
      writer.AddNumber(own.compile_id);
      writer.AddReal(own.self_us);
      writer.AddReal(own.total_us);
      writer.AddReal(own.not_attributed_us);
      writer.AddNumber(own.events);
    }
    return writer.Finish();
  }

 private:
  // The group of each of `times.compiles`.
  Result<std::vector<std::size_t>> GroupsOf(Database& database, const ProcessOfTimes& process,
                                            const ProcessTimes& times) {
    std::map<std::int64_t, TimeGroup> of_compiles;
    FOR_EACH_ROW(const CompileOfTimes& row,
                 Query<CompileOfTimes>(database, {.process_id = process.id})) {
      of_compiles[row.id] = {.launch = process.launch,
                             .compile_id = is_by_compile_ ? std::optional(row.id) : std::nullopt,
                             .function = std::string(row.function),
                             .file = std::string(row.file),
                             .line = row.line};
    }
    std::vector<std::size_t> groups;
    for (const TimeOfCompile& own : times.compiles) {
      const auto known = of_compiles.find(own.compile_id.value_or(0));
      TimeGroup group;
      group.launch = process.launch;
      if (known != of_compiles.end()) group = known->second;
      groups.push_back(group_ids_.try_emplace(std::move(group), group_ids_.size()).first->second);
    }
    return groups;
  }

  void AddGroups(ChunkWriter& writer) const {
    std::vector<const TimeGroup*> groups(group_ids_.size());
    for (const auto& [group, id] : group_ids_) groups[id] = &group;
    writer.BeginTable("group", {"launch", "compile_id", "line"}, {"function", "file"});
    for (const TimeGroup* group : groups) {
      writer.AddNumber(group->launch);
      writer.AddNumber(group->compile_id);
      writer.AddNumber(group->line);
      writer.AddText(OptionalText(group->function));
      writer.AddText(OptionalText(group->file));
    }
  }

  const bool is_by_compile_;
  std::map<TimeGroup, std::size_t> group_ids_;
  std::map<std::tuple<std::size_t, TimedPhase, std::string>, TimeOfName> names_;
  std::map<std::tuple<std::size_t, std::size_t, std::string>, std::size_t> node_ids_;
  std::vector<TimeNode> nodes_;
  std::vector<std::pair<std::int64_t, TimeOfCompile>> compiles_;  // with their process
};

}  // namespace

Result<std::string> TimeChunk(Database& database, std::int64_t run_id,
                              std::optional<std::int64_t> process_id) {
  SummedTimes times(process_id.has_value());
  bool is_found = !process_id;
  FOR_EACH_ROW(const ProcessOfTimes& row, Query<ProcessOfTimes>(database, {.run_id = run_id})) {
    if (process_id && row.id != *process_id) continue;
    is_found = true;
    RETURN_IF_ERROR(times.Add(database, row));
  }
  if (!is_found)
    return Fail(ErrorCode::kNotFound, "the run has no process " + std::to_string(*process_id));
  return times.Finish();
}

}  // namespace tlparse

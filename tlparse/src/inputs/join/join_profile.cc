#include "inputs/join/join_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "inputs/join/profile_joiner.h"
#include "queries/inputs/join/join_profile.h"

namespace tlparse::profile_join {

Result<std::string_view> Joiner::NameOf(std::int64_t text_id) {
  const auto [entry, is_new] = names_.try_emplace(text_id);
  if (!is_new) return std::string_view(entry->second);
  ASSIGN_OR_RETURN(entry->second,
                   database_.QueryText("SELECT text FROM text_row WHERE id = ?", text_id));
  return std::string_view(entry->second);
}

Result<std::optional<std::int64_t>> Joiner::Note(std::string_view note) {
  if (note.empty()) return std::optional<std::int64_t>();
  const auto found = notes_.find(note);
  if (found != notes_.end()) return std::optional(found->second);
  ASSIGN_OR_RETURN(const std::int64_t id, NoteId(database_, note));
  notes_.emplace(note, id);
  return std::optional(id);
}

Result<void> Joiner::LoadSlices() {
  FOR_EACH_ROW(const SliceToJoin& row, Query<SliceToJoin>(database_, {.profile_id = profile_id_})) {
    Slice slice{};
    slice.id = row.id;
    slice.kind = row.kind;
    slice.thread = row.thread_id;
    slice.start = row.start_ns;
    slice.end = row.end_ns;
    slice.name_id = row.name_id;
    names_.try_emplace(slice.name_id, row.name);
    slice.sequence = row.sequence_number;
    slice.external_id = row.external_id;
    slice.parent = slice.call = slice.in_region = slice.in_backward = slice.region = kNone;
    RETURN_IF_ERROR(slices_.Push(slice));
  }
  std::sort(slices_.begin(), slices_.end(), [](const Slice& a, const Slice& b) {
    return std::tuple(a.thread, a.start, b.end, b.kind, a.id) <
           std::tuple(b.thread, b.start, a.end, a.kind, b.id);
  });
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const Slice& slice = slices_[i];
    if (slice.kind == kFunction && slice.sequence)
      RETURN_IF_ERROR(
          functions_.Push({*slice.sequence, slice.start, static_cast<std::uint32_t>(i)}));
    if (slice.kind != kDevice && slice.external_id)
      RETURN_IF_ERROR(slice_of_.Add(*slice.external_id, i));
  }
  std::sort(functions_.begin(), functions_.end());
  slice_of_.Sort();
  return {};
}

Result<void> Joiner::LoadRuns() {
  FOR_EACH_ROW(const RunToJoin& row, Query<RunToJoin>(database_, {.profile_id = profile_id_})) {
    struct Run run {};
    run.id = row.id;
    run.name_id = static_cast<std::int32_t>(row.name_id);
    run.self_ns = row.duration_ns;
    run.is_op = row.is_op;
    run.call = run.child = run.slice = kNone;
    run.file_id = static_cast<std::int32_t>(row.file_id);
    const std::size_t index = runs_.size();
    if (row.is_op && has_device_kernels_ && row.external_id)
      RETURN_IF_ERROR(op_of_.Add(*row.external_id, index));
    RETURN_IF_ERROR(
        AddItem(Item::kRun, row.thread_id, row.start_ns, row.start_ns + row.duration_ns, index));
    RETURN_IF_ERROR(runs_.Push(run));
  }
  return {};
}

Result<void> Joiner::AddItem(Item::Kind kind, std::int64_t thread_id, std::int64_t start,
                             std::int64_t end, std::size_t index) {
  const auto thread =
      static_cast<std::uint32_t>(threads_.try_emplace(thread_id, threads_.size()).first->second);
  return items_.Push({start, end, static_cast<std::uint32_t>(index), thread & 0x3FFFFFFF,
                      static_cast<std::uint32_t>(kind) & 3});
}

Result<void> Joiner::LoadItems() {
  ASSIGN_OR_RETURN(const FirstRow<AnyDeviceKernel> any,
                   First(Query<AnyDeviceKernel>(database_, {.profile_id = profile_id_})));
  has_device_kernels_ = static_cast<bool>(any);
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const Slice& slice = slices_[i];
    if (slice.kind != kDevice)
      RETURN_IF_ERROR(AddItem(Item::kSlice, slice.thread, slice.start, slice.end, i));
  }
  RETURN_IF_ERROR(LoadRuns());
  op_of_.Sort();
  RETURN_IF_ERROR(LoadLaunches());
  RETURN_IF_ERROR(LoadCollectives());
  std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
    const auto order = [](const Item& item) {
      return std::tuple(std::uint32_t{item.thread}, item.start, -item.end, std::uint32_t{item.kind},
                        item.index);
    };
    return order(a) < order(b);
  });
  return {};
}

Result<void> Joiner::LoadLaunches() {
  FOR_EACH_ROW(const DeviceLaunchToJoin& row,
               Query<DeviceLaunchToJoin>(database_, {.profile_id = profile_id_})) {
    const std::size_t index = launches_.size();
    RETURN_IF_ERROR(launch_of_.Add(row.correlation, index));
    RETURN_IF_ERROR(launches_.Push({row.start_ns, row.is_replay}));
    RETURN_IF_ERROR(AddItem(Item::kLaunch, row.thread_id, row.start_ns, row.start_ns, index));
  }
  launch_of_.Sort();
  return {};
}

Result<void> Joiner::LoadCollectives() {
  FOR_EACH_ROW(const CollectiveRunToJoin& row,
               Query<CollectiveRunToJoin>(database_, {.profile_id = profile_id_})) {
    const std::size_t index = collectives_.size();
    RETURN_IF_ERROR(collectives_.Push({row.id}));
    RETURN_IF_ERROR(AddItem(Item::kCollective, row.thread_id, row.start_ns, row.start_ns, index));
  }
  return {};
}

// What is around the next item of a thread.
struct Joiner::Open {
  std::int64_t end = 0;
  std::int32_t call = kNone, child = kNone, op = kNone, slice = kNone;
  std::int64_t op_end = 0;
  bool is_taken = false;  // what is inside a graph call was taken off the op's time with the call
};

Result<void> Joiner::Nest() {
  std::vector<Open> open;
  std::optional<std::uint32_t> thread;
  for (const Item& item : items_) {
    if (item.thread != thread) open.clear();
    thread = item.thread;
    while (!open.empty() && open.back().end <= item.start &&
           !(item.start == item.end && open.back().end == item.start)) {
      open.pop_back();
    }
    Open now = open.empty() ? Open() : open.back();
    now.end = item.end;
    if (item.kind == Item::kLaunch) {
      Launch& launch = launches_[item.index];
      launch.call = now.call;
      launch.child = now.child;
      launch.op = now.op;
      launch.slice = now.slice;
      continue;
    }
    if (item.kind == Item::kCollective) {
      collectives_[item.index].call = now.call;
      continue;
    }
    if (item.kind == Item::kRun) {
      RETURN_IF_ERROR(NestRun(item, open, now));
    } else {
      now.slice = static_cast<std::int32_t>(item.index);
      if (slices_[item.index].is_call) {
        now.call = now.slice, now.child = kNone;
        TakeFromOp(item, now);
        now.is_taken = true;
      }
    }
    open.push_back(now);
  }
  std::sort(children_.begin(), children_.end(), [](const Child& a, const Child& b) {
    return std::pair(a.call, a.order) < std::pair(b.call, b.order);
  });
  return {};
}

Result<void> Joiner::NestRun(const Item& item, const std::vector<Open>& open, Open& now) {
  const auto index = static_cast<std::int32_t>(item.index);
  struct Run& run = runs_[item.index];
  TakeFromOp(item, now);
  // An op with the same times as the slice of a call is that call, not a child of it.
  const bool is_slice = run.is_op && !open.empty() && now.call != kNone &&
                        slices_[static_cast<std::size_t>(now.call)].start == item.start &&
                        slices_[static_cast<std::size_t>(now.call)].end == item.end;
  run.call = now.call;
  run.slice = now.slice;
  if (now.call != kNone && now.child == kNone && !is_slice) {
    now.child = index;
    RETURN_IF_ERROR(
        children_.Push({now.call, static_cast<std::uint32_t>(children_.size()), item.index}));
  }
  run.child = now.child;
  now.op = index;
  now.op_end = item.end;
  now.is_taken = false;
  return {};
}

// The time of an op is its own, without that of the ops and graph calls directly inside it.
void Joiner::TakeFromOp(const Item& item, const Open& now) {
  if (now.op != kNone && !now.is_taken)
    runs_[static_cast<std::size_t>(now.op)].self_ns -= std::min(item.end, now.op_end) - item.start;
}

Result<void> Joiner::WriteCollectives() {
  ASSIGN_OR_RETURN(Statement add,
                   database_.Prepare("INSERT INTO collective_run_link_row (collective_run_id, "
                                     "slice_id, graph_id, join_key, note_id) "
                                     "VALUES (?, ?, ?, ?, ?)"));
  for (const Collective& collective : collectives_) {
    const Slice* const slice =
        collective.call == kNone ? nullptr : &slices_[static_cast<std::size_t>(collective.call)];
    const CompiledCode::Graph* const graph = slice == nullptr ? nullptr : slice->graph;
    const std::string_view note = graph != nullptr       ? std::string_view()
                                  : slice == nullptr     ? kOutside
                                  : !slice->note.empty() ? slice->note
                                                         : kCallUnknown;
    ASSIGN_OR_RETURN(const std::optional<std::int64_t> note_id, Note(note));
    add.Bind(1, collective.id);
    add.Bind(2, slice == nullptr ? std::nullopt : std::optional(slice->id));
    add.Bind(3, graph == nullptr ? std::nullopt : std::optional(graph->id));
    add.Bind(4, graph == nullptr ? std::nullopt : std::optional(slice->key));
    add.Bind(5, note_id);
    RETURN_IF_ERROR(add.Run());
  }
  return {};
}

}  // namespace tlparse::profile_join

namespace tlparse {

std::string DirectoryOf(const Database& database) {
  const std::string directory = std::filesystem::path(database.path()).parent_path();
  return directory.empty() ? "." : directory;
}

Result<void> JoinProfile(Database& database, CompiledCode& code, std::int64_t profile_id,
                         std::optional<std::int64_t> process_id) {
  return profile_join::Joiner(database, code, profile_id, process_id, DirectoryOf(database)).Run();
}

}  // namespace tlparse

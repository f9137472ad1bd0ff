#include "inputs/join/join_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "inputs/join/profile_joiner.h"

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
  ASSIGN_OR_RETURN(
      Statement rows,
      database_.Prepare("SELECT s.id, s.kind, coalesce(s.thread_id, 0), s.start_ns, "
                        "s.start_ns + s.duration_ns, coalesce(t.text, ''), s.sequence_number, "
                        "s.external_id, CASE WHEN t.text IS NULL THEN 0 ELSE s.name_id END "
                        "FROM compiled_slice_row s LEFT JOIN text_row t ON t.id = s.name_id "
                        "WHERE s.profile_id = ?"));
  rows.Bind(1, profile_id_);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    Slice slice{};
    slice.id = rows.Int(0);
    slice.kind = static_cast<CompiledSliceKind>(rows.Int(1));
    slice.thread = rows.Int(2);
    slice.start = rows.Int(3);
    slice.end = rows.Int(4);
    slice.name_id = rows.Int(8);
    names_.try_emplace(slice.name_id, rows.Text(5));
    slice.sequence = rows.OptionalInt(6);
    slice.external_id = rows.OptionalInt(7);
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

Result<void> Joiner::LoadRuns(const char* sql, bool is_op) {
  ASSIGN_OR_RETURN(Statement rows, database_.Prepare(sql));
  rows.Bind(1, profile_id_);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    struct Run run {};
    run.id = rows.Int(0);
    run.name_id = static_cast<std::int32_t>(rows.Int(1));
    run.self_ns = rows.Int(4);
    run.is_op = is_op;
    run.call = run.child = run.slice = kNone;
    run.file_id = static_cast<std::int32_t>(rows.Int(6));
    const std::size_t index = runs_.size();
    if (is_op && has_device_kernels_ && !rows.IsNull(5))
      RETURN_IF_ERROR(op_of_.Add(rows.Int(5), index));
    RETURN_IF_ERROR(
        AddItem(Item::kRun, rows.Int(2), rows.Int(3), rows.Int(3) + rows.Int(4), index));
    RETURN_IF_ERROR(runs_.Push(run));
  }
}

Result<void> Joiner::AddItem(Item::Kind kind, std::int64_t thread_id, std::int64_t start,
                             std::int64_t end, std::size_t index) {
  const auto thread =
      static_cast<std::uint32_t>(threads_.try_emplace(thread_id, threads_.size()).first->second);
  return items_.Push({start, end, static_cast<std::uint32_t>(index), thread & 0x3FFFFFFF,
                      static_cast<std::uint32_t>(kind) & 3});
}

Result<void> Joiner::LoadItems() {
  ASSIGN_OR_RETURN(Statement any,
                   database_.Prepare("SELECT 1 FROM kernel_run_row "
                                     "WHERE profile_id = ? AND device IS NOT NULL LIMIT 1"));
  any.Bind(1, profile_id_);
  ASSIGN_OR_RETURN(has_device_kernels_, any.Step());
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const Slice& slice = slices_[i];
    if (slice.kind != kDevice)
      RETURN_IF_ERROR(AddItem(Item::kSlice, slice.thread, slice.start, slice.end, i));
  }
  RETURN_IF_ERROR(
      LoadRuns("SELECT id, name_id, coalesce(thread_id, 0), "
               "start_ns, duration_ns, external_id, file_id FROM op_run_row WHERE profile_id = ?",
               true));
  RETURN_IF_ERROR(
      LoadRuns("SELECT id, name_id, coalesce(thread_id, 0), start_ns, duration_ns, NULL, NULL "
               "FROM kernel_run_row WHERE profile_id = ? AND device IS NULL",
               false));
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
  ASSIGN_OR_RETURN(Statement rows,
                   database_.Prepare("SELECT correlation, coalesce(thread_id, 0), start_ns, "
                                     "name_id IN (SELECT id FROM text_row "
                                     "WHERE text LIKE '%GraphLaunch%') "
                                     "FROM device_launch_row WHERE profile_id = ?"));
  rows.Bind(1, profile_id_);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    const std::size_t index = launches_.size();
    RETURN_IF_ERROR(launch_of_.Add(rows.Int(0), index));
    RETURN_IF_ERROR(launches_.Push({rows.Int(2), rows.Int(3) != 0}));
    RETURN_IF_ERROR(AddItem(Item::kLaunch, rows.Int(1), rows.Int(2), rows.Int(2), index));
  }
  launch_of_.Sort();
  return {};
}

Result<void> Joiner::LoadCollectives() {
  ASSIGN_OR_RETURN(Statement rows,
                   database_.Prepare("SELECT id, coalesce(thread_id, 0), start_ns "
                                     "FROM collective_run_row WHERE profile_id = ?"));
  rows.Bind(1, profile_id_);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    const std::size_t index = collectives_.size();
    RETURN_IF_ERROR(collectives_.Push({rows.Int(0)}));
    RETURN_IF_ERROR(AddItem(Item::kCollective, rows.Int(1), rows.Int(2), rows.Int(2), index));
  }
}

// What is around the next item of a thread.
struct Joiner::Open {
  std::int64_t end = 0;
  std::int32_t call = kNone, child = kNone, op = kNone, slice = kNone;
  std::int64_t op_end = 0;
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
      if (slices_[item.index].is_call) now.call = now.slice, now.child = kNone;
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
  if (now.op != kNone)
    runs_[static_cast<std::size_t>(now.op)].self_ns -= std::min(item.end, now.op_end) - item.start;
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
  return {};
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

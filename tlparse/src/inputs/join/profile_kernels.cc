// Kernels, on the CPU and on devices: which call of the generated code each run was.
#include "queries/inputs/join/profile_kernels.h"

#include <algorithm>
#include <map>

#include "inputs/common/generated_code.h"
#include "inputs/join/join_notes.h"
#include "inputs/join/kernel_match.h"
#include "inputs/join/profile_joiner.h"

namespace tlparse::profile_join {

Result<void> Joiner::MatchKernels() {
  for (const Child* begin = children_.begin(); begin != children_.end();) {
    const Child* end = begin;
    while (end != children_.end() && end->call == begin->call) ++end;
    const Slice& slice = slices_[static_cast<std::size_t>(begin->call)];
    if (slice.graph != nullptr && slice.graph->content_id != 0)
      RETURN_IF_ERROR(MatchKernelsOf(slice, {begin, end}));
    begin = end;
  }
  return {};
}

Result<void> Joiner::MatchKernelsOf(const Slice& slice, std::span<const Child> children) {
  ASSIGN_OR_RETURN(const auto* kernels, code_.KernelsOf(database_, *slice.graph));
  std::vector<std::string_view> kernel_names;
  for (const CompiledCode::Kernel& kernel : *kernels) kernel_names.push_back(kernel.name);
  std::vector<std::string_view> names, names_by_path(children.size());
  std::vector<bool> has_file(children.size());
  for (std::size_t i = 0; i < children.size(); ++i) {
    const struct Run& run = runs_[children[i].run];
    ASSIGN_OR_RETURN(std::string_view name, NameOf(run.name_id));
    if (run.file_id != 0) {
      ASSIGN_OR_RETURN(const auto* files, code_.KernelFilesOf(database_, *slice.graph));
      ASSIGN_OR_RETURN(const std::string_view path, NameOf(run.file_id));
      const auto found = files->find(std::string(BaseName(path)));
      if (found != files->end()) name = names_by_path[i] = found->second;
      has_file[i] = !files->empty();
    }
    names.push_back(name);
  }
  const auto in_order = MatchInOrder(names, kernel_names);
  const auto with_gaps = in_order ? in_order : MatchWithGaps(names, kernel_names);
  auto matched = with_gaps ? *with_gaps : MatchByName(names, kernel_names);
  const std::vector<bool> are_runs = AreRuns(names, kernel_names);
  const auto by_path = MatchByPath(names_by_path, kernel_names);
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (!matched[i]) matched[i] = by_path[i];
    struct Run& run = runs_[children[i].run];
    if (!matched[i]) {
      if (are_runs[i] || !names_by_path[i].empty()) run.match = KernelMatch::kCountDiffers;
      continue;
    }
    // Code that names its files, but not this one, is not what ran.
    if (has_file[i] && names_by_path[i].empty()) {
      run.match = KernelMatch::kFileDiffers;
      continue;
    }
    run.kernel_id = (*kernels)[*matched[i]].id;
    run.match = has_file[i] ? KernelMatch::kByPath
                : in_order  ? KernelMatch::kByOrder
                            : KernelMatch::kByName;
  }
  return {};
}

std::string_view Joiner::WhyNoKernel(std::int32_t call, const struct Run* run) const {
  // CPU kernels, and ops that name the file of a Triton kernel, are Inductor's.
  const bool is_of_inductor = run != nullptr && (!run->is_op || run->file_id != 0);
  if (call == kNone) return is_of_inductor ? kCallNotInProfile : kOutside;
  const Slice& slice = slices_[static_cast<std::size_t>(call)];
  if (slice.graph == nullptr) return slice.note.empty() ? kCallUnknown : slice.note;
  return slice.graph->content_id == 0 ? kNoKernels : kNotInCode;
}

Result<void> Joiner::WriteKernelLink(const KernelLink& link) {
  ASSIGN_OR_RETURN(
      Statement* const add,
      database_.PrepareKept("INSERT INTO kernel_run_link_row (kernel_run_id, slice_id, "
                            "kernel_id, enqueued_ns, join_key, note_id, region_id, launch_op_id) "
                            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  const auto or_null = [](bool is_there, auto value) {
    return is_there ? std::optional(value) : std::nullopt;
  };
  ASSIGN_OR_RETURN(const std::optional<std::int64_t> note_id, Note(link.note));
  add->Bind(1, link.kernel_run_id);
  add->Bind(2, SliceId(link.call));
  add->Bind(3, or_null(link.kernel_id != 0, link.kernel_id));
  add->Bind(4, link.enqueued);
  add->Bind(5, or_null(link.kernel_id != 0, link.key));
  add->Bind(6, note_id);
  add->Bind(7, RegionIdOf(link.slice));
  const bool has_op = link.op != kNone && runs_[static_cast<std::size_t>(link.op)].is_op;
  add->Bind(8, or_null(has_op, has_op ? runs_[static_cast<std::size_t>(link.op)].id : 0));
  return add->Run();
}

Result<void> Joiner::JoinDeviceKernels() {
  FOR_EACH_ROW(const DeviceKernelToJoin& row,
               Query<DeviceKernelToJoin>(database_, {.profile_id = profile_id_})) {
    RETURN_IF_ERROR(JoinDeviceKernel(
        {row.id, row.name_id, row.start_ns, row.duration_ns, row.correlation, row.external_id}));
  }
  std::sort(replayed_.begin(), replayed_.end(),
            [](const ReplayedKernel& a, const ReplayedKernel& b) {
              return std::tie(a.call, a.start, a.id) < std::tie(b.call, b.start, b.id);
            });
  for (const ReplayedKernel* begin = replayed_.begin(); begin != replayed_.end();) {
    const ReplayedKernel* end = begin;
    while (end != replayed_.end() && end->call == begin->call) ++end;
    RETURN_IF_ERROR(JoinReplay({begin, end}));
    begin = end;
  }
  return {};
}

Result<void> Joiner::JoinDeviceKernel(const DeviceKernel& kernel) {
  std::int32_t call = kNone, child = kNone, op = kNone, slice = kNone;
  std::optional<std::int64_t> enqueued;
  bool has_launch = false, is_replay = false;
  if (const auto found = kernel.correlation ? launch_of_.First(*kernel.correlation) : std::nullopt;
      found) {
    const Launch& launch = launches_[*found];
    call = launch.call, child = launch.child, op = launch.op, slice = launch.slice;
    enqueued = launch.start;
    has_launch = true;
    is_replay = launch.is_replay;
  }
  if (op == kNone && kernel.external_id) {
    if (const auto found = op_of_.First(*kernel.external_id); found) {
      op = static_cast<std::int32_t>(*found);
      call = runs_[*found].call, child = runs_[*found].child, slice = runs_[*found].slice;
      has_launch = true;
    } else if (const auto around = slice_of_.First(*kernel.external_id); around) {
      if (call == kNone && slices_[*around].is_call) call = static_cast<std::int32_t>(*around);
      if (slice == kNone) slice = static_cast<std::int32_t>(*around);
      has_launch = true;
    }
  }
  if (op != kNone) {
    runs_[static_cast<std::size_t>(op)].device_ns += kernel.duration;
    runs_[static_cast<std::size_t>(op)].has_device_work = true;
  }
  if (child != kNone) runs_[static_cast<std::size_t>(child)].has_device_work = true;
  if (call != kNone) slices_[static_cast<std::size_t>(call)].device_ns += kernel.duration;
  if (call != kNone && child == kNone)
    return replayed_.Push(
        {call, slice == kNone ? call : slice, kernel.start, kernel.id, kernel.name_id, enqueued});
  const struct Run* const launched_by =
      child == kNone ? nullptr : &runs_[static_cast<std::size_t>(child)];
  const bool is_joined = launched_by != nullptr && launched_by->kernel_id != 0;
  const std::string_view file_note =
      launched_by == nullptr ? std::string_view() : FileNoteOf(*launched_by);
  const std::string_view note =
      is_joined                                   ? std::string_view()
      : is_replay && call == kNone && op == kNone ? kGraphReplay
      : !file_note.empty()                        ? file_note
      : has_launch ? WhyNoKernel(call, op == kNone ? nullptr : &runs_[static_cast<std::size_t>(op)])
                   : kLaunchNotInProfile;
  return WriteKernelLink({.kernel_run_id = kernel.id,
                          .call = call,
                          .slice = slice,
                          .op = op,
                          .kernel_id = is_joined ? launched_by->kernel_id : 0,
                          .enqueued = enqueued,
                          .key = is_joined ? KeyOf(*launched_by) : std::string_view(),
                          .note = note});
}

Result<void> Joiner::JoinReplay(std::span<const ReplayedKernel> kernels) {
  const std::int32_t call = kernels.front().call;
  const Slice& slice = slices_[static_cast<std::size_t>(call)];
  std::vector<std::string_view> names, code_names;
  const std::vector<CompiledCode::Kernel>* code_kernels = nullptr;
  if (slice.graph != nullptr && slice.graph->content_id != 0) {
    ASSIGN_OR_RETURN(code_kernels, code_.KernelsOf(database_, *slice.graph));
    for (const CompiledCode::Kernel& kernel : *code_kernels) code_names.push_back(kernel.name);
  }
  for (const ReplayedKernel& kernel : kernels) {
    ASSIGN_OR_RETURN(const std::string_view name, NameOf(kernel.name_id));
    names.push_back(name);
  }
  // The kernels of a device graph have one launch.
  std::map<std::int64_t, std::size_t> launches;
  for (const ReplayedKernel& kernel : kernels) launches[kernel.enqueued.value_or(0)] += 1;
  const auto matched = MatchReplay(names, code_names);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const std::optional<std::int64_t> enqueued = kernels[i].enqueued;
    const bool is_own_launch = enqueued && launches[*enqueued] == 1;
    RETURN_IF_ERROR(WriteKernelLink({.kernel_run_id = kernels[i].id,
                                     .call = call,
                                     .slice = kernels[i].slice,
                                     .kernel_id = matched[i] ? (*code_kernels)[*matched[i]].id : 0,
                                     .enqueued = enqueued,
                                     .key = "K4",
                                     .note = !matched[i]     ? WhyNoKernel(call)
                                             : is_own_launch ? kNoLaunchingOp
                                                             : kReplayed}));
  }
  return {};
}

Result<void> Joiner::WriteRuns() {
  ASSIGN_OR_RETURN(Statement add_op,
                   database_.Prepare("INSERT INTO op_run_link_row (op_run_id, "
                                     "slice_id, self_ns, device_ns) VALUES (?, ?, ?, ?)"));
  // An op that ran as a kernel of the graph, on the CPU, is a run of that kernel; of several, which of
  // them is not always known.
  ASSIGN_OR_RETURN(
      Statement add_kernel,
      database_.Prepare(
          "INSERT INTO kernel_run_row (profile_id, "
          "name_id, thread_id, start_ns, duration_ns, external_id, op_run_id) "
          "SELECT profile_id, name_id, thread_id, start_ns, duration_ns, external_id, id "
          "FROM op_run_row WHERE id = ?"));
  for (const struct Run& run : runs_) {
    const std::string_view note = run.kernel_id != 0 ? std::string_view()
                                  : run.match == KernelMatch::kCountDiffers
                                      ? kOtherCount
                                      : WhyNoKernel(run.call, &run);
    KernelLink link{.kernel_run_id = run.id,
                    .call = run.call,
                    .slice = run.slice,
                    .kernel_id = run.kernel_id,
                    .key = KeyOf(run),
                    .note = note};
    if (!run.is_op) {
      RETURN_IF_ERROR(WriteKernelLink(link));
      continue;
    }
    add_op.Bind(1, run.id);
    add_op.Bind(2, SliceId(run.call));
    add_op.Bind(3, std::max<std::int64_t>(run.self_ns, 0));
    add_op.Bind(
        4, run.has_device_work && run.device_ns > 0 ? std::optional(run.device_ns) : std::nullopt);
    RETURN_IF_ERROR(add_op.Run());
    const bool is_kernel = run.kernel_id != 0 || run.match == KernelMatch::kCountDiffers;
    if (!is_kernel || run.has_device_work) continue;
    add_kernel.Bind(1, run.id);
    RETURN_IF_ERROR(add_kernel.Run());
    link.kernel_run_id = sqlite3_last_insert_rowid(database_.handle());
    RETURN_IF_ERROR(WriteKernelLink(link));
  }
  return {};
}

}  // namespace tlparse::profile_join

// What becomes of the slices of a Kineto profile.
#include <fmt/format.h>

#include <algorithm>

#include "inputs/common/generated_code.h"
#include "inputs/join/module_join.h"
#include "inputs/kineto/file.h"
#include "log/inductor_texts.h"
#include "rows/profile.h"

namespace tlparse::kineto {
namespace {

using enum CompiledSliceKind;

std::optional<std::string_view> Between(std::string_view text, std::string_view before,
                                        std::string_view after) {
  if (!text.starts_with(before) || !text.ends_with(after) ||
      text.size() < before.size() + after.size()) {
    return std::nullopt;
  }
  return text.substr(before.size(), text.size() - before.size() - after.size());
}

std::optional<std::string_view> GraphCallKey(std::string_view name) {
  return Between(name, inductor::kGraphCall, inductor::kGraphCallEnd);
}

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y;
         });
}

// Whether a call of the device's runtime may queue work on the device.
bool Queues(std::string_view name) {
  for (const std::string_view word : {"Launch", "Memcpy", "Memset", "launch", "memcpy", "memset"}) {
    if (name.find(word) != name.npos) return true;
  }
  return false;
}

constexpr std::size_t kMostCollectives = 100'000;  // of one file, in memory

// Device work: of CUDA, ROCm and XPU; of MTIA and Gaudi; of Ascend's NPU, whose events have a task
// type instead of a category.
bool IsKernelCategory(const KinetoEvent& event) {
  const std::string_view category = event.category;
  return EqualsIgnoringCase(category, "kernel") || category == "mtia_ccp_events" ||
         category == "hpu_op" || category == "collective_comm" ||
         (category.empty() && !event.task_type.empty());
}

// Of symm_mem the ops that all ranks of a group must call.
bool IsSymmetricCollective(std::string_view name) {
  constexpr std::string_view kWords[] = {"all_reduce", "all_gather", "reduce_scatter",
                                         "all_to_all", "broadcast",  "barrier"};
  return name.starts_with("symm_mem::") && std::ranges::any_of(kWords, [&](std::string_view word) {
           return name.find(word) != name.npos;
         });
}

// A functional collective (_c10d_functional) calls one of c10d's, or is traced with tensors that hold
// nothing: torch/csrc/distributed/c10d/Functional.cpp.
bool IsCollectiveOp(std::string_view name) {
  return IsSymmetricCollective(name) ||
         (name.starts_with("c10d::") && name != "c10d::monitored_barrier_");
}

}  // namespace

void KinetoFile::TakeSlice(const KinetoEvent& event, const EventScanner::Item& item) {
  const std::string_view category = event.category;
  if (!event.start_ns || event.name.data() == nullptr)
    return BadEvent(item, "it has no time or name");
  if (event.has_duration && !event.duration_ns)
    return BadEvent(item, "its duration (dur) is no number of microseconds");
  if (!IsTimeInRange(*event.start_ns, event.duration_ns.value_or(0)))
    return BadEvent(item, "its time is out of range");
  if (!durations_.Add(event.duration_ns.value_or(0)))
    return BadEvent(item, "with it the durations of the file add up to more than nine years");
  if (!event.has_duration) ++without_duration_;
  Measured(*event.start_ns, event.duration_ns.value_or(0));
  if (category == "cpu_op" || EqualsIgnoringCase(category, "operator")) {
    has_profile_events_ = true;
    return TakeCpuSlice(event, false);
  }
  if (category == "user_annotation") return TakeCpuSlice(event, true);
  if (IsKernelCategory(event)) {
    has_profile_events_ = true;
    return TakeDeviceSlice(event, true);
  }
  if (EqualsIgnoringCase(category, "gpu_memcpy") || EqualsIgnoringCase(category, "gpu_memset") ||
      EqualsIgnoringCase(category, "memcpy") || EqualsIgnoringCase(category, "memset")) {
    return TakeDeviceSlice(event, false);
  }
  if (category == "gpu_user_annotation") return TakeDeviceAnnotation(event);
  if (category.ends_with("_runtime") || category.ends_with("_driver") ||
      EqualsIgnoringCase(category, "cuda_runtime") || EqualsIgnoringCase(category, "runtime"))
    return TakeLaunch(event);
  if (category == "python_function") return TakeFrame(event);
  if (category == "overhead" || category == "cuda_sync" || category == "Trace" ||
      category == "python" || category == "gpu_sync") {
    return Count(left_out_, category, event.duration_ns);
  }
  Count(unknown_, category.empty() ? "(none)" : category, event.duration_ns);
  // Work of another accelerator: it counts, under its own name.
  if (event.device || event.stream) {
    has_profile_events_ = true;
    TakeDeviceSlice(event, true);
  }
}

std::optional<std::int64_t> KinetoFile::ThreadId(const KinetoEvent& event) {
  Thread* const thread = FindThread(event.pid, event.tid);
  return thread == nullptr ? std::nullopt : std::optional(thread->id);
}

KinetoFile::Thread* KinetoFile::FindThread(std::string_view pid, std::string_view tid) {
  if (latest_thread_ != nullptr && latest_thread_->tid == tid && latest_thread_->pid == pid)
    return latest_thread_;
  constexpr std::size_t kMostThreads = 100'000;
  std::string key = fmt::format("{}/{}", pid, tid);
  auto found = threads_.find(key);
  if (found == threads_.end()) {
    if (threads_.size() >= kMostThreads) return nullptr;
    found =
        threads_
            .emplace(
                std::move(key),
                Thread{context_.NextId<ProfileThreadRow>(), std::string(pid), std::string(tid), {}})
            .first;
  }
  latest_thread_ = &found->second;
  return latest_thread_;
}

void KinetoFile::AddCompiledSlice(const KinetoEvent& event, CompiledSliceKind kind,
                                  std::string_view name, std::optional<std::int64_t> op_run_id) {
  const bool is_device = kind == kDevice;
  rows().Add(CompiledSliceRow{
      .id = context_.NextId<CompiledSliceRow>(),
      .profile_id = context_.profile_id(),
      .kind = kind,
      .name_id = name.empty() || name == "None" ? std::nullopt : context_.OptionalText(name),
      .thread_id = is_device ? std::nullopt : ThreadId(event),
      .device = is_device ? ToInt(event.pid) : std::nullopt,
      .stream = is_device ? ToInt(event.tid) : std::nullopt,
      .start_ns = Start(event),
      .duration_ns = event.duration_ns.value_or(0),
      .sequence_number = event.sequence_number,
      .external_id = event.external_id,
      .op_run_id = op_run_id});
  if (!op_run_id) Kept();
}

void KinetoFile::AddAnnotation(const KinetoEvent& event, std::optional<std::int64_t> device,
                               std::optional<std::int64_t> stream) {
  std::optional<std::int64_t> step;
  if (event.name.starts_with("ProfilerStep#")) step = ToInt(event.name.substr(13));
  rows().Add(AnnotationRow{.id = context_.NextId<AnnotationRow>(),
                           .profile_id = context_.profile_id(),
                           .name_id = context_.Text(event.name),
                           .thread_id = device ? std::nullopt : ThreadId(event),
                           .device = device,
                           .stream = stream,
                           .start_ns = Start(event),
                           .duration_ns = event.duration_ns.value_or(0),
                           .step = step});
  Kept();
}

void KinetoFile::TakeCpuSlice(const KinetoEvent& event, bool is_annotation) {
  ProfileFacts& facts = context_.facts();
  if (!facts.pid && !is_annotation) facts.pid = ToInt(event.pid);
  const std::string_view name = event.name;
  if (const auto key = GraphCallKey(name)) return AddCompiledSlice(event, kGraphCall, *key);
  if (const auto label = Between(name, inductor::kRegion, ""))
    return AddCompiledSlice(event, kRegion, *label);
  if (is_annotation) return AddAnnotation(event, std::nullopt, std::nullopt);
  if (IsWrapperCall(name)) return AddCompiledSlice(event, kWrapper, name);
  if (CpuKernelName(name)) {
    rows().Add(KernelRunRow{.id = context_.NextId<KernelRunRow>(),
                            .profile_id = context_.profile_id(),
                            .name_id = context_.Text(name),
                            .thread_id = ThreadId(event),
                            .start_ns = Start(event),
                            .duration_ns = event.duration_ns.value_or(0),
                            .external_id = event.external_id});
    return Kept();
  }
  const std::int64_t op_run_id = TakeOp(event);
  if (name == inductor::kFunction) AddCompiledSlice(event, kFunction, {}, op_run_id);
  if (name == inductor::kBackward) AddCompiledSlice(event, kBackward, {}, op_run_id);
}

std::int64_t KinetoFile::TakeOp(const KinetoEvent& event) {
  const std::int64_t id = context_.NextId<OpRunRow>();
  rows().Add(OpRunRow{.id = id,
                      .profile_id = context_.profile_id(),
                      .name_id = context_.Text(event.name),
                      .thread_id = ThreadId(event),
                      .start_ns = Start(event),
                      .duration_ns = event.duration_ns.value_or(0),
                      .external_id = event.external_id,
                      .sequence_number = event.sequence_number,
                      .shapes_id = context_.OptionalText(event.shapes),
                      .file_id = context_.OptionalText(event.kernel_file)});
  Kept();
  if (event.name == "record_param_comms" ? !event.collective.empty() : IsCollectiveOp(event.name))
    TakeCollective(event);
  return id;
}

// The slice of the CPU ends when the call returns, the collective when its kernel does.
void KinetoFile::TakeCollectiveKernel(const KinetoEvent& event,
                                      std::optional<std::int64_t> device) {
  if (!event.external_id || collective_kernels_.size() >= kMostCollectives ||
      (event.collective.empty() && !event.name.starts_with("nccl")))
    return;
  const std::int64_t end_ns = Start(event) + event.duration_ns.value_or(0);
  const auto [kernel, is_new] = collective_kernels_.try_emplace(
      *event.external_id, CollectiveKernel{end_ns, device, event.correlation});
  if (!is_new && end_ns > kernel->second.end_ns) kernel->second.end_ns = end_ns;
}

// record_param_comms says what, in which group, and which one; the c10d op around it (and all there
// is with Gloo) says when only.
void KinetoFile::TakeCollective(const KinetoEvent& event) {
  const std::int64_t start_ns = Start(event);
  const std::int64_t end_ns = start_ns + event.duration_ns.value_or(0);
  if (event.collective.empty()) {
    if (collective_ops_.size() >= kMostCollectives)
      return Count(left_out_, "collectives without a group", event.duration_ns);
    collective_ops_.push_back({start_ns, end_ns, ThreadId(event), context_.Text(event.name),
                               std::string(event.shapes), std::string(event.dtype),
                               IsSymmetricCollective(event.name)});
    return;
  }
  if (event.collective == "wait" || event.collective == "init") return;
  has_named_collectives_ = true;
  const bool is_p2p = event.collective.starts_with("send") || event.collective.starts_with("recv");
  const auto elements = [](std::optional<std::int64_t> count) {
    return count ? fmt::format("[[{}]]", *count) : std::string();
  };
  const std::string in = elements(event.in_elements);
  const std::string out = elements(event.out_elements);
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<RowText>(text);
  };
  const std::int64_t id = context_.NextId<CollectiveRunRow>();
  if (event.external_id && named_collectives_.size() < kMostCollectives)
    named_collectives_.emplace_back(*event.external_id, id);
  rows().Add(CollectiveRunRow{.id = id,
                              .profile_id = context_.profile_id(),
                              .thread_id = ThreadId(event),
                              .op_id = context_.OptionalText(event.collective),
                              .group_id = context_.OptionalText(event.group_name),
                              .group_size = event.group_size,
                              .sequence_number = event.sequence_in_group,
                              .is_p2p = is_p2p ? 1 : 0,
                              .input_shapes = text_or_null(in),
                              .output_shapes = text_or_null(out),
                              .dtype_id = context_.OptionalText(event.dtype),
                              .start_ns = start_ns});
}

void KinetoFile::TakeDeviceSlice(const KinetoEvent& event, bool is_kernel) {
  const std::optional<std::int64_t> device = event.device ? event.device : ToInt(event.pid);
  const std::optional<std::int64_t> stream = event.stream ? event.stream : ToInt(event.tid);
  const std::int64_t duration_ns = event.duration_ns.value_or(0);
  if (is_kernel) {
    rows().Add(KernelRunRow{.id = context_.NextId<KernelRunRow>(),
                            .profile_id = context_.profile_id(),
                            .name_id = context_.Text(event.name),
                            .device = device.value_or(-1),
                            .stream = stream,
                            .start_ns = Start(event),
                            .duration_ns = duration_ns,
                            .correlation = event.correlation,
                            .external_id = event.external_id,
                            .grid_id = context_.OptionalText(event.grid),
                            .block_id = context_.OptionalText(event.block)});
    TakeCollectiveKernel(event, device);
  } else {
    const bool is_set = event.category.find("emset") != event.category.npos;
    rows().Add(DeviceCopyRow{.id = context_.NextId<DeviceCopyRow>(),
                             .profile_id = context_.profile_id(),
                             .kind = StaticText{is_set ? "memset" : "memcpy"},
                             .name_id = context_.Text(event.name),
                             .device = device,
                             .stream = stream,
                             .start_ns = Start(event),
                             .duration_ns = duration_ns,
                             .size_bytes = event.size_bytes,
                             .correlation = event.correlation,
                             .external_id = event.external_id});
  }
  Kept();
}

void KinetoFile::TakeDeviceAnnotation(const KinetoEvent& event) {
  if (const auto key = GraphCallKey(event.name)) return AddCompiledSlice(event, kDevice, *key);
  AddAnnotation(event, ToInt(event.pid).value_or(-1), ToInt(event.tid));
}

void KinetoFile::TakeLaunch(const KinetoEvent& event) {
  if (!event.correlation || !Queues(event.name))
    return Count(left_out_, event.category, event.duration_ns);
  rows().Add(DeviceLaunchRow{.id = context_.NextId<DeviceLaunchRow>(),
                             .profile_id = context_.profile_id(),
                             .name_id = context_.Text(event.name),
                             .thread_id = ThreadId(event),
                             .start_ns = Start(event),
                             .duration_ns = event.duration_ns.value_or(0),
                             .correlation = *event.correlation});
  Kept();
}

void KinetoFile::TakeFrame(const KinetoEvent& event) {
  const std::size_t colon = event.called_from.rfind(':');
  std::optional<std::int64_t> line;
  std::string_view file;
  if (colon != event.called_from.npos) {
    line = ToInt(event.called_from.substr(colon + 1));
    if (line) file = event.called_from.substr(0, colon);
  }
  if (!context_.options().keep_python_frames && !IsCachePath(file) &&
      !event.name.starts_with(kModuleFrame))
    return Count(left_out_, "python_function", event.duration_ns);
  rows().Add(PythonFrameRow{.id = context_.NextId<PythonFrameRow>(),
                            .profile_id = context_.profile_id(),
                            .name_id = context_.Text(event.name),
                            .thread_id = ThreadId(event),
                            .start_ns = Start(event),
                            .duration_ns = event.duration_ns.value_or(0),
                            .file_id = context_.OptionalText(file),
                            .line = line});
  Kept();
}

void KinetoFile::TakeMetadata(const KinetoEvent& event) {
  if (event.name != "thread_name") return Count(left_out_, "metadata");
  Thread* const thread = FindThread(event.pid, event.tid);
  if (thread != nullptr) thread->name = std::string(event.metadata_name);
}

Result<void> KinetoFile::AddThreadRows() {
  for (const auto& [key, thread] : threads_) {
    RETURN_IF_ERROR(context_.Flush());
    rows().Add(ProfileThreadRow{
        .id = thread.id,
        .profile_id = context_.profile_id(),
        .pid = thread.pid,
        .tid = thread.tid,
        .name = thread.name.empty() ? std::nullopt : std::optional<RowText>(thread.name)});
  }
  return {};
}

Result<void> KinetoFile::AddCollectiveOps() {
  for (const CollectiveOp& op : collective_ops_) {
    if (has_named_collectives_ && !op.is_symmetric) continue;
    RETURN_IF_ERROR(context_.Flush());
    rows().Add(CollectiveRunRow{
        .id = context_.NextId<CollectiveRunRow>(),
        .profile_id = context_.profile_id(),
        .thread_id = op.thread_id,
        .op_id = op.op_id,
        .is_p2p = 0,
        .input_shapes = op.shapes.empty() ? std::nullopt : std::optional<RowText>(op.shapes),
        .dtype_id = context_.OptionalText(op.dtype),
        .start_ns = op.start_ns,
        .end_ns = op.end_ns});
  }
  return {};
}

Result<void> KinetoFile::AddCollectiveEnds() {
  if (collective_kernels_.empty() || named_collectives_.empty()) return {};
  RETURN_IF_ERROR(context_.Write());
  ASSIGN_OR_RETURN(Statement end,
                   context_.database().Prepare(
                       "UPDATE collective_run_row "
                       "SET end_ns = ?2, device = ?3, correlation = ?4, state = 'completed' "
                       "WHERE id = ?1 AND start_ns <= ?2"));
  for (const auto& [external_id, row_id] : named_collectives_) {
    const auto kernel = collective_kernels_.find(external_id);
    if (kernel == collective_kernels_.end()) continue;
    end.Bind(1, row_id);
    end.Bind(2, kernel->second.end_ns);
    end.Bind(3, kernel->second.device);
    end.Bind(4, kernel->second.correlation);
    RETURN_IF_ERROR(end.Run());
  }
  return {};
}

}  // namespace tlparse::kineto

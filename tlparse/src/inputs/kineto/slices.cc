// What becomes of the slices of a Kineto profile.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
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
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return LowerAscii(x) == y; });
}

// Whether a call of the device's runtime may queue work on the device.
bool Queues(std::string_view name) {
  for (const std::string_view word : {"Launch", "Memcpy", "Memset", "launch", "memcpy", "memset"}) {
    if (name.find(word) != name.npos) return true;
  }
  return false;
}

// Device work: of CUDA, ROCm and XPU; of MTIA and Gaudi; of Ascend's NPU, whose events have a task
// type instead of a category.
bool IsKernelCategory(const KinetoEvent& event) {
  const std::string_view category = event.category;
  return EqualsIgnoringCase(category, "kernel") || category == "mtia_ccp_events" ||
         category == "hpu_op" || category == "collective_comm" ||
         (category.empty() && !event.task_type.empty());
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
    device_categories_.emplace(category);
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
  has_waits_ |= event.name.starts_with("gloo:") || event.name.starts_with("enumerate(DataLoader)#");
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
  TakeCollective(event);
  return id;
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
  const bool is_kept = context_.options().keep_python_frames || IsCachePath(file) ||
                       event.name.starts_with(kModuleFrame);
  const bool is_user = IsUserFile(file) || IsUserFile(FileOfFrame(event.name));
  if (!is_kept && (!is_user || !MayHoldFrame(event.duration_ns.value_or(0))))
    return Count(left_out_, "python_function", event.duration_ns);
  const PythonFrameRow row{.id = 0,
                           .profile_id = context_.profile_id(),
                           .name_id = 0,
                           .thread_id = ThreadId(event),
                           .start_ns = Start(event),
                           .duration_ns = event.duration_ns.value_or(0),
                           .file_id = {},
                           .line = line};
  if (is_kept || !memory_devices_.empty()) return AddFrame(row, event.name, file);
  const auto keep = [&](std::string_view text) -> std::string_view {
    return *user_frame_texts_.emplace(text).first;
  };
  user_frames_.push_back({row, keep(event.name), keep(file)});
}

void KinetoFile::AddFrame(PythonFrameRow row, std::string_view name, std::string_view file) {
  row.id = context_.NextId<PythonFrameRow>();
  row.name_id = context_.Text(name);
  row.file_id = context_.OptionalText(file);
  rows().Add(row);
  Kept();
}

// Of frames some of which are left out, the innermost that is kept may be an outer one: then memory
// has none.
bool KinetoFile::MayHoldFrame(std::int64_t duration_ns) {
  constexpr std::size_t kMost = 200'000;  // in memory
  if (!memory_devices_.empty()) return !has_too_many_frames_;
  if (!has_too_many_frames_ && user_frames_.size() >= kMost) {
    has_too_many_frames_ = true;
    std::erase_if(user_frames_, [&](const UserFrame& frame) {
      const std::int64_t ns = frame.row.duration_ns.value();
      if (ns < kLongFrameNs) Count(left_out_, "python_function", ns);
      return ns < kLongFrameNs;
    });
  }
  return !has_too_many_frames_ || (duration_ns >= kLongFrameNs && user_frames_.size() < kMost);
}

void KinetoFile::LeaveOutUserFrames() {
  for (const UserFrame& frame : std::exchange(user_frames_, {})) {
    const std::int64_t ns = frame.row.duration_ns.value();
    if (has_waits_ && ns >= kLongFrameNs)
      AddFrame(frame.row, frame.name, frame.file);
    else
      Count(left_out_, "python_function", ns);
  }
  user_frame_texts_.clear();
}

void KinetoFile::AddUserFrames() {
  for (const UserFrame& frame : std::exchange(user_frames_, {})) {
    if (has_too_many_frames_)
      Count(left_out_, "python_function", frame.row.duration_ns.value());
    else
      AddFrame(frame.row, frame.name, frame.file);
  }
  user_frame_texts_.clear();
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

}  // namespace tlparse::kineto

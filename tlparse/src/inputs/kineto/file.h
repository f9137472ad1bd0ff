// One Kineto/Chrome profile while it is read. Internal to the reader of profiles (see reader.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "enums/profile.h"
#include "inputs/common/measured_span.h"
#include "inputs/kineto/event.h"
#include "inputs/kineto/event_scanner.h"
#include "inputs/reader.h"
#include "rows/profile.h"

namespace tlparse::kineto {

std::optional<std::int64_t> ToInt(std::string_view text);

// One file being read.
class KinetoFile {
 public:
  explicit KinetoFile(RuntimeContext& context) : context_(context) {}
  Result<bool> Read();

 private:
  struct Thread {
    std::int64_t id = 0;
    std::string pid, tid, name;
  };
  // A collective without a group or number. One of c10d counts if the file has none with them.
  struct CollectiveOp {
    std::int64_t start_ns, end_ns;
    std::optional<std::int64_t> thread_id;
    TextId op_id;
    std::string shapes, dtype;
    bool is_symmetric, is_p2p;
    std::optional<std::int64_t> peer, tag;
  };

  // The device kernels of a collective.
  struct CollectiveKernel {
    std::int64_t start_ns, end_ns;
    std::optional<std::int64_t> device, correlation;
  };

  Result<void> Take(const EventScanner::Item& item, EventScanner& scanner);
  // The file ends, or what follows cannot be an event.
  Result<void> TakeDamage(const EventScanner::Item& item, EventScanner& scanner);
  void TakeEvent(const EventScanner::Item& item);
  void TakeMember(const EventScanner::Item& item);
  void TakeSlice(const KinetoEvent& event, const EventScanner::Item& item);
  void TakeCpuSlice(const KinetoEvent& event, bool is_annotation);
  std::int64_t TakeOp(const KinetoEvent& event);  // its id
  void TakeDeviceSlice(const KinetoEvent& event, bool is_kernel);
  void TakeDeviceAnnotation(const KinetoEvent& event);
  void TakeLaunch(const KinetoEvent& event);
  void TakeFrame(const KinetoEvent& event);
  void AddFrame(PythonFrameRow row, std::string_view name, std::string_view file);
  // Frames of the user's code say where memory was allocated, and the long ones what a rank did while
  // others waited for it; without [memory] events and calls of Gloo they are left out.
  void AddUserFrames();
  void LeaveOutUserFrames();
  bool MayHoldFrame(std::int64_t duration_ns);
  void TakeMetadata(const KinetoEvent& event);
  void TakeMemory(const KinetoEvent& event);
  void TakeCollective(const KinetoEvent& event);
  void TakeCollectiveKernel(const KinetoEvent& event, std::optional<std::int64_t> device);
  void AddCompiledSlice(const KinetoEvent& event, CompiledSliceKind kind, std::string_view name,
                        std::optional<std::int64_t> op_run_id = {});
  void AddAnnotation(const KinetoEvent& event, std::optional<std::int64_t> device,
                     std::optional<std::int64_t> stream);
  // A Python frame that is not kept, recognised in its text without parsing it.
  bool IsUnkeptFrame(std::string_view event) const;
  // The profile measured from its first slice to the end of its last, kept or not.
  void Measured(std::int64_t start_ns, std::int64_t duration_ns);
  std::optional<std::int64_t> MeasuredUnkept(std::string_view event);  // its duration
  // `text` and `byte_offset`: of the event.
  void BadEvent(std::int64_t byte_offset, std::string_view text, std::string_view problem);
  void BadEvent(const EventScanner::Item& item, std::string_view problem) {
    BadEvent(item.byte_offset, item.value, problem);
  }
  void Kept() { ++context_.facts().kept_count; }
  struct NotKept {
    std::int64_t count = 0, duration_ns = 0;
  };
  using NotKeptEvents = std::map<std::string, NotKept>;
  void Count(NotKeptEvents& events, std::string_view what,
             std::optional<std::int64_t> duration_ns = {});
  void ReportNotKept(const NotKeptEvents& events, ImportCode code);
  std::optional<std::int64_t> ThreadId(const KinetoEvent& event);
  Thread* FindThread(std::string_view pid, std::string_view tid);
  Result<void> AddThreadRows();
  Result<void> AddCollectiveOps();
  Result<void> AddCollectiveEnds();
  Result<void> ShiftTimes();
  // The lives of blocks and the peak of each device, once times are known.
  Result<void> AddMemory();
  Result<void> AddMemoryOf(std::int64_t device_type, std::optional<std::int64_t> device,
                           std::int64_t snapshot_id);
  void Report();
  RowBatch& rows() { return context_.rows(); }

  // On the file's clock, and the base once it is known.
  std::int64_t Start(const KinetoEvent& event) {
    if (!base_ns_) has_rows_without_base_ = true;
    return *event.start_ns + base_ns_.value_or(0);
  }

  RuntimeContext& context_;
  KinetoEventParser parser_;
  KinetoEvent event_;
  std::optional<std::int64_t> base_ns_;
  bool has_rows_without_base_ = false;
  bool has_schema_version_ = false;
  bool is_own_timeline_ = false;  // `tlparse timeline` wrote it: what it holds is in other files
  bool is_cut_ = false;
  bool has_profile_events_ = false;  // cpu_op or kernel
  bool has_named_collectives_ = false;
  bool has_events_ = false;
  std::int64_t bad_count_ = 0;
  std::int64_t without_duration_ = 0;  // slices
  DurationSum durations_;
  bool is_in_damage_ = false;  // the latest event was bad
  bool is_event_text_ = true;  // the latest event could be parsed
  NotKeptEvents left_out_, unknown_;
  std::set<std::string> device_categories_;  // of the unknown
  std::unordered_map<std::string, Thread> threads_;
  Thread* latest_thread_ = nullptr;
  std::vector<CollectiveOp> collective_ops_;
  // Of collectives with a group: external id and row.
  std::vector<std::pair<std::int64_t, std::int64_t>> named_collectives_;
  std::unordered_map<std::int64_t, CollectiveKernel> collective_kernels_;  // by external id
  // Of [memory] events: memory_snapshot_row.id by type and index of the device.
  std::map<std::pair<std::int64_t, std::optional<std::int64_t>>, std::int64_t> memory_devices_;
  std::int64_t bad_memory_ = 0;
  // Frames of the user's code before the first [memory] event.
  struct UserFrame {
    PythonFrameRow row;
    std::string_view name, file;  // of user_frame_texts_
  };
  std::vector<UserFrame> user_frames_;
  bool has_too_many_frames_ = false;
  static constexpr std::int64_t kLongFrameNs = 1'000'000;
  bool has_waits_ = false;  // calls of Gloo, or of a loader
  std::unordered_set<std::string> user_frame_texts_;
  JsonWriter metadata_;  // the object's other members
  bool has_metadata_ = false;
};

}  // namespace tlparse::kineto

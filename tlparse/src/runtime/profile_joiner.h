// The join of one profile. Internal to join_profile.h.
#pragma once

#include <array>
#include <map>
#include <tuple>

#include "enums/profile.h"
#include "runtime/join_profile.h"

namespace tlparse::profile_join {

using enum CompiledSliceKind;

inline constexpr std::string_view kNoProcess = "no log of the process that was measured";
inline constexpr std::string_view kKeyUnknown = "no log of this run holds this graph cache key";
inline constexpr std::string_view kOtherProcess =
    "the log of another process that compiled the same graph";
inline constexpr std::string_view kLabelUnknown =
    "the log of the process holds no compile of this label";
inline constexpr std::string_view kNoKey =
    "the name holds no key, and nothing around it tells the graph";
inline constexpr std::string_view kSeveralGraphs = "several graphs of the compile fit";
inline constexpr std::string_view kOutside = "it ran outside any graph call";
inline constexpr std::string_view kCallUnknown = "its graph call is not joined";
inline constexpr std::string_view kNoKernels = "the log holds no kernels of the graph";
inline constexpr std::string_view kNotInCode =
    "the generated code calls no kernel of this name here";
inline constexpr std::string_view kOtherFile =
    "the generated code's kernel of this name is in another file";
inline constexpr std::string_view kOtherCount =
    "it ran another number of times than the generated code calls it";
inline constexpr std::string_view kReplayed = "by name and order: a device graph was replayed";
inline constexpr std::string_view kLaunchUnknown = "its launch is not in the profile";

inline constexpr std::int32_t kNone = -1;

struct Slice {
  std::int64_t id, thread, start, end;
  CompiledSliceKind kind = kGraphCall;
  std::string name;
  std::optional<std::int64_t> sequence, external_id;
  std::int32_t parent = kNone;  // slice around it
  bool is_call = false;
  const CompiledCode::Graph* graph = nullptr;
  std::int64_t compile_id = 0;
  std::int32_t call = kNone;  // kDevice: the slice that queued it
  std::int64_t device_ns = 0;
  std::string_view key, note;
};
enum class KernelMatch : std::uint8_t {
  kUnmatched,
  kByName,
  kByOrder,
  kByPath,
  kFileDiffers,
  kCountDiffers
};
// An op or a CPU kernel. A profile may hold millions: kept small.
struct Run {
  std::int64_t id;
  std::int64_t self_ns = 0;
  std::int64_t device_ns = 0;
  std::int64_t kernel_id = 0;
  std::int32_t name_id;  // text ids are counted from 1 and below 2^31
  std::int32_t call = kNone;
  std::int32_t child = kNone;  // itself or its ancestor: the direct child of the call
  bool is_op;
  bool has_device_work = false;
  KernelMatch match = KernelMatch::kUnmatched;  // how kernel_id was found
};
// Why the run of a kernel with a known file has no kernel_id.
inline std::string_view FileNoteOf(const Run& run) {
  return run.match == KernelMatch::kFileDiffers    ? kOtherFile
         : run.match == KernelMatch::kCountDiffers ? kOtherCount
                                                   : std::string_view();
}
struct Launch {
  std::int64_t start;
  std::int32_t call = kNone, child = kNone, op = kNone;
};
struct DeviceKernel {
  std::int64_t id, name_id, start, duration;
  std::optional<std::int64_t> correlation, external_id;
};
struct Item {
  enum Kind : std::uint8_t { kSlice, kRun, kLaunch, kCollective };
  std::int64_t start, end;
  std::uint32_t index;
  std::uint32_t thread : 30;  // number of the thread within the profile
  std::uint32_t kind : 2;
};

inline std::string_view KeyOf(const Run& run) {
  return run.match == KernelMatch::kByPath    ? "K9"
         : run.match == KernelMatch::kByOrder ? "K5"
                                              : "K4";
}

class Joiner {
 public:
  Joiner(Database& database, CompiledCode& code, std::int64_t profile_id,
         std::optional<std::int64_t> process_id)
      : database_(database), code_(code), profile_id_(profile_id), process_id_(process_id) {}

  Result<void> Run() {
    RETURN_IF_ERROR(LoadSlices());
    RETURN_IF_ERROR(LoadItems());
    NestSlices();
    JoinSlices();
    Nest();
    items_ = {};
    RETURN_IF_ERROR(MatchKernels());
    RETURN_IF_ERROR(JoinDeviceKernels());
    RETURN_IF_ERROR(WriteSlices());
    RETURN_IF_ERROR(WriteRuns());
    return WriteCollectives();
  }

 private:
  Result<void> LoadSlices();
  Result<void> LoadItems();
  Result<void> LoadRuns(const char* sql, bool is_op);
  void AddItem(Item::Kind kind, std::int64_t thread_id, std::int64_t start, std::int64_t end,
               std::uint32_t index);
  void NestSlices();
  void JoinSlices();
  void JoinRegion(Slice& slice);
  void JoinByKey(Slice& slice);
  void JoinByPlace(Slice& slice);
  // The nearest slice of the kind around, or kNone.
  std::int32_t Around(std::int32_t slice, CompiledSliceKind kind) const;
  // The region in which a slice of a forward ran; for one in a backward, that of its forward.
  std::int32_t RegionOf(std::int32_t slice) const;
  void Nest();
  Result<void> MatchKernels();
  Result<void> MatchKernelsOf(const Slice& slice, const std::vector<std::uint32_t>& children);
  Result<void> JoinDeviceKernels();
  Result<void> JoinReplay(std::int32_t call, std::vector<DeviceKernel>& kernels);
  Result<void> WriteKernelLink(std::int64_t kernel_run_id, std::int32_t call,
                               std::int64_t kernel_id, std::optional<std::int64_t> enqueued,
                               std::string_view key, std::string_view note);
  Result<void> WriteSlices();
  Result<void> WriteRuns();
  Result<void> WriteCollectives();
  Result<std::optional<std::int64_t>> Note(std::string_view note);
  Result<std::string_view> NameOf(std::int64_t text_id);
  std::string_view WhyNoKernel(std::int32_t call) const;

  Database& database_;
  CompiledCode& code_;
  std::int64_t profile_id_;
  std::optional<std::int64_t> process_id_;
  std::vector<Slice> slices_;
  std::vector<struct Run> runs_;
  std::vector<Launch> launches_;
  struct Collective {
    std::int64_t id;
    std::int32_t call = kNone;
  };
  std::vector<Collective> collectives_;
  std::vector<Item> items_;                                // of all threads, until they are nested
  std::unordered_map<std::int64_t, std::size_t> threads_;  // their numbers, by id
  bool has_device_kernels_ = false;
  std::unordered_map<std::uint32_t, std::int64_t> file_of_;    // of runs that name one: its text
  std::unordered_map<std::int64_t, std::uint32_t> launch_of_;  // by correlation
  std::unordered_map<std::int64_t, std::uint32_t> op_of_;      // by external id
  std::unordered_map<std::int64_t, std::uint32_t> slice_of_;   // by external id
  // Functions of autograd, by sequence number, in the order of slices_.
  std::unordered_map<std::int64_t, std::vector<std::int32_t>> functions_of_;
  std::map<std::int32_t, std::vector<std::uint32_t>> children_;  // of each call, in order
  std::unordered_map<std::int64_t, std::string> names_;
  std::map<std::string_view, std::int64_t> notes_;
};

}  // namespace tlparse::profile_join

// The join of one profile. Internal to join_profile.h.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <span>
#include <tuple>

#include "base/spilling_vector.h"
#include "enums/profile.h"
#include "inputs/join/join_profile.h"
#include "inputs/join/numbered.h"

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
inline constexpr std::string_view kNoGraph =
    "the log of the compile holds no graph of this direction";
inline constexpr std::string_view kOutside = "it ran outside any graph call";
inline constexpr std::string_view kCallUnknown = "its graph call is not joined";
inline constexpr std::string_view kNoKernels = "the log holds no kernels of the graph";
inline constexpr std::string_view kNotInCode =
    "the generated code calls no kernel of this name here";
inline constexpr std::string_view kOtherFile =
    "the generated code's kernel of this name is in another file";
inline constexpr std::string_view kOtherCount =
    "it ran another number of times than the generated code calls it";
inline constexpr std::string_view kLostCall =
    "the profile lost the slice of this call: its times are those of the autograd function around "
    "it";
inline constexpr std::string_view kReplayed = "by name and order: a device graph was replayed";
inline constexpr std::string_view kNoLaunchingOp =
    "by name and order: the profile has no op around the launch";

inline constexpr std::int32_t kNone = -1;

// All structs of which a profile may hold millions are kept in SpillingVectors.
struct Slice {
  std::int64_t id, thread, start, end;
  CompiledSliceKind kind = kGraphCall;
  std::int64_t name_id = 0;  // 0: none
  std::optional<std::int64_t> sequence, external_id;
  std::int32_t parent = kNone;  // slice around it
  // Itself or the nearest slice around it of that kind.
  std::int32_t in_region = kNone, in_backward = kNone;
  std::int32_t region = kNone;  // in_region; in a backward that of its forward
  bool is_call = false;
  const CompiledCode::Graph* graph = nullptr;
  std::int64_t compile_id = 0;
  std::int32_t call = kNone;  // kDevice: the slice that queued it
  std::int64_t device_ns = 0;
  std::string_view key, note;
};
// A function of autograd that has a sequence number.
struct Function {
  std::int64_t sequence, start;
  std::uint32_t slice;
  auto operator<=>(const Function&) const = default;
};
// The graphs of one cache key of which a call may be: of one compile each, by the compiles' starts.
struct KeyGraphs {
  struct OfCompile {
    std::int64_t compile_id, start_us;
    std::vector<const CompiledCode::Graph*> graphs;
  };
  std::vector<OfCompile> compiles;
  std::unordered_map<std::int64_t, std::size_t> by_id;  // index into `compiles`
};
enum class KernelMatch : std::uint8_t {
  kUnmatched,
  kByName,
  kByOrder,
  kByPath,
  kFileDiffers,
  kCountDiffers
};
// An op or a CPU kernel.
struct Run {
  std::int64_t id;
  std::int64_t self_ns = 0;
  std::int64_t device_ns = 0;
  std::int64_t kernel_id = 0;
  std::int32_t name_id;  // text ids are counted from 1 and below 2^31
  std::int32_t call = kNone;
  std::int32_t child = kNone;  // itself or its ancestor: the direct child of the call
  std::int32_t slice = kNone;  // the innermost slice around it
  std::int32_t file_id = 0;    // text id of the file that it names; 0: none
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
  bool is_replay = false;  // of a CUDA or HIP graph
  std::int32_t call = kNone, child = kNone, op = kNone, slice = kNone;
};
struct DeviceKernel {
  std::int64_t id, name_id, start, duration;
  std::optional<std::int64_t> correlation, external_id;
};
// A kernel of a call that no direct child of the call queued.
struct ReplayedKernel {
  std::int32_t call, slice;
  std::int64_t start, id, name_id;
  std::optional<std::int64_t> enqueued;
};
// What a run of a kernel is joined with.
struct KernelLink {
  std::int64_t kernel_run_id;
  std::int32_t call = kNone;
  std::int32_t slice = kNone;  // the innermost slice around its launch, or around itself
  std::int32_t op = kNone;     // that enqueued it
  std::int64_t kernel_id = 0;  // 0: none
  std::optional<std::int64_t> enqueued = {};
  std::string_view key = {}, note = {};
};
// A run that is a direct child of a call.
struct Child {
  std::int32_t call;
  std::uint32_t order;  // in time, among those of the call
  std::uint32_t run;
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
         std::optional<std::int64_t> process_id, const std::string& directory)
      : database_(database),
        code_(code),
        profile_id_(profile_id),
        process_id_(process_id),
        slices_(directory),
        runs_(directory),
        launches_(directory),
        collectives_(directory),
        items_(directory),
        launch_of_(directory),
        op_of_(directory),
        slice_of_(directory),
        functions_(directory),
        children_(directory),
        replayed_(directory),
        slices_by_id_(directory) {}

  Result<void> Run() {
    RETURN_IF_ERROR(LoadSlices());
    RETURN_IF_ERROR(LoadItems());
    NestSlices();
    JoinSlices();
    RETURN_IF_ERROR(Nest());
    items_.Free();
    RETURN_IF_ERROR(MatchKernels());
    RETURN_IF_ERROR(JoinDeviceKernels());
    RETURN_IF_ERROR(WriteSlices());
    RETURN_IF_ERROR(WriteRuns());
    return WriteCollectives();
  }

 private:
  Result<void> LoadSlices();
  Result<void> LoadItems();
  Result<void> LoadRuns();
  Result<void> LoadLaunches();
  Result<void> LoadCollectives();
  Result<void> AddItem(Item::Kind kind, std::int64_t thread_id, std::int64_t start,
                       std::int64_t end, std::size_t index);
  void NestSlices();
  std::int32_t ForwardOf(const Slice& backward) const;
  void JoinSlices();
  void FindLostCalls();
  void JoinRegion(Slice& slice);
  void JoinByKey(Slice& slice);
  void JoinByPlace(Slice& slice);
  const KeyGraphs& GraphsOfKey(const Slice& slice);
  Result<void> Nest();
  struct Open;
  Result<void> NestRun(const Item& item, const std::vector<Open>& open, Open& now);
  void TakeFromOp(const Item& item, const Open& now);
  Result<void> MatchKernels();
  Result<void> MatchKernelsOf(const Slice& slice, std::span<const Child> children);
  Result<void> JoinDeviceKernels();
  Result<void> JoinDeviceKernel(const DeviceKernel& kernel);
  Result<void> JoinReplay(std::span<const ReplayedKernel> kernels);
  Result<void> WriteKernelLink(const KernelLink& link);
  std::optional<std::int64_t> RegionIdOf(std::int32_t slice) const {
    return SliceId(slice == kNone ? kNone : slices_[static_cast<std::size_t>(slice)].region);
  }
  Result<void> WriteSlices();
  Result<void> WriteRuns();
  Result<void> WriteCollectives();
  Result<std::optional<std::int64_t>> Note(std::string_view note);
  Result<std::string_view> NameOf(std::int64_t text_id);
  const std::string& NameOf(const Slice& slice) const { return names_.at(slice.name_id); }
  // `run`: its own, or the op that enqueued it; nullptr: unknown.
  std::string_view WhyNoKernel(std::int32_t call, const struct Run* run = nullptr) const;
  std::optional<std::int64_t> SliceId(std::int32_t slice) const {
    return slice == kNone ? std::nullopt
                          : std::optional(slices_[static_cast<std::size_t>(slice)].id);
  }

  Database& database_;
  CompiledCode& code_;
  std::int64_t profile_id_;
  std::optional<std::int64_t> process_id_;
  struct Collective {
    std::int64_t id;
    std::int32_t call = kNone;
  };
  SpillingVector<Slice> slices_;
  SpillingVector<struct Run> runs_;
  SpillingVector<Launch> launches_;
  SpillingVector<Collective> collectives_;
  SpillingVector<Item> items_;                             // of all threads, until they are nested
  std::unordered_map<std::int64_t, std::size_t> threads_;  // their numbers, by id
  bool has_device_kernels_ = false;
  Numbered launch_of_;  // by correlation
  Numbered op_of_;      // by external id
  Numbered slice_of_;   // by external id
  SpillingVector<Function> functions_;
  SpillingVector<Child> children_;  // by call, in order of time
  SpillingVector<ReplayedKernel> replayed_;
  SpillingVector<std::uint32_t> slices_by_id_;
  // Calls so far, by thread, region and name, of graphs of which one key is several.
  std::map<std::tuple<std::int64_t, std::int32_t, std::int64_t>, std::size_t> calls_so_far_;
  std::unordered_map<std::int64_t, KeyGraphs> graphs_of_key_;  // by the id of the key's text
  // Texts that were asked for; "" for 0.
  std::unordered_map<std::int64_t, std::string> names_;
  std::map<std::string_view, std::int64_t> notes_;
};

}  // namespace tlparse::profile_join

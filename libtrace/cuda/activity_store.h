// The activities that CUPTI reported, and the op that launched each, in bounded memory.
//
// CUPTI ties an activity to an op in two steps: the activity has a correlation id, as every call of
// CUDA's interface; an external-correlation record says which external id was pushed during that
// call. An external id here is a tag and the number of a label, a distinct pair of op and graph node,
// so that an op that runs a million times is kept once. The tag tells the ids of this store from
// those that anyone else pushed, an earlier store included. Both kinds of records come in any order,
// and all kernels of one graph launch have the correlation id of that launch.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cuda/cupti.h"
#include "libtrace/cuda/cuda_activity.h"

namespace libtrace {

// Thread-safe. Functions may throw std::bad_alloc.
class ActivityStore {
 public:
  // `number`: of this store among those of the process, from 1 on.
  ActivityStore(const CudaActivityOptions& options, bool has_graph_ids, uint16_t number)
      : options_(options), has_graph_ids_(has_graph_ids), tag_(kTag | uint64_t{number} << 32) {}

  // The external id of a label; one without an op when there are too many.
  uint64_t LabelOf(std::string_view op, const std::string* node);
  // The external id of what a request launches that is not sampled.
  uint64_t UnsampledId() const { return tag_ | kUnsampledLabel; }
  // The external id of a call that is made only to see whether its record arrives.
  uint64_t ProbeId() const { return tag_ | kProbeLabel; }
  uint64_t probe_count() const;
  // When the last call of CUDA's interfaces ended of which a record came, on CUPTI's clock; 0: none.
  uint64_t last_call_ns() const;
  void Add(const cupti::Record& record);
  void AddLost(uint64_t count);

  std::vector<CudaActivityRecord> Records() const;
  // Removes and returns what will not change any more: activities whose op is known, and those that
  // were here at the call before. Their order stays.
  std::vector<CudaActivityRecord> Take();
  // At the end: removes and counts what no op of a sampled request launched, if only these are wanted.
  void DropUnsampled();
  CudaActivityCounts counts() const;

 private:
  static constexpr uint64_t kTag = uint64_t{0x4c54} << 48;
  static constexpr uint32_t kProbeLabel = UINT32_MAX;
  static constexpr uint32_t kUnsampledLabel = UINT32_MAX - 1;
  enum class Kind : uint8_t { kKernel, kMemcpy, kPeerMemcpy, kMemset };
  struct Activity {
    Kind kind = Kind::kKernel;
    uint8_t copy_kind = 0;
    uint32_t name = 0;  // index in names_
    uint32_t label = 0;
    uint32_t correlation_id = 0;
    uint32_t device = 0, stream = 0;
    uint32_t source_device = 0, target_device = 0;
    uint32_t graph_id = 0;
    uint64_t graph_node_id = 0;
    uint64_t start_ns = 0, end_ns = 0;
    uint64_t size_bytes = 0;
  };
  struct Name {
    std::string text;
    uint32_t use_count = 0;  // activities
  };
  struct Label {
    std::string op;
    std::optional<std::string> node;
  };

  template <class Record>
  Activity* AddActivity(const Record& record, Kind kind, uint64_t name_bytes = 0);
  void AddLaunch(const cupti::ExternalCorrelationRecord& launch);
  void PopFront();
  void ForgetLaunch();
  bool MakeRoom(uint64_t name_bytes);
  uint32_t UseName(const std::string& name);
  void ReleaseName(const Activity& activity);
  bool IsUnsampled(const Activity& activity) const;
  CudaActivityRecord ToRecord(const Activity& activity) const;

  const CudaActivityOptions options_;
  const bool has_graph_ids_;
  const uint64_t tag_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, uint32_t> label_numbers_;
  std::vector<Label> labels_;  // number - 1
  std::unordered_map<std::string, uint32_t> name_numbers_;
  std::vector<Name> names_;
  std::vector<uint32_t> free_names_;  // whose use_count is 0
  std::deque<Activity> activities_;
  uint64_t first_number_ = 0;  // of activities_.front(), counting all that were added
  uint64_t seen_number_ = 0;   // the first that was added after the last Take()
  std::unordered_map<uint32_t, uint32_t> launches_;  // label by correlation id
  std::deque<uint32_t> launch_order_;                // the oldest first
  uint64_t name_bytes_ = 0, label_bytes_ = 0;
  uint64_t probe_count_ = 0;
  uint64_t last_call_ns_ = 0;
  uint32_t newest_forgotten_ = 0;  // correlation id; ids grow
  // Activities that came before their launch, by correlation id.
  std::unordered_multimap<uint32_t, uint64_t> waiting_;
  CudaActivityCounts counts_;
};

}  // namespace libtrace

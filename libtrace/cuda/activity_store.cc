#include "cuda/activity_store.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

namespace libtrace {
namespace {

constexpr size_t kMaxLabels = 65'536;

const char* CopyName(uint8_t kind) {  // CUpti_ActivityMemcpyKind
  static constexpr const char* kNames[] = {"unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                           "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
  return kind < std::size(kNames) ? kNames[kind] : kNames[0];
}

}  // namespace

uint64_t ActivityStore::LabelOf(std::string_view op, const std::string* node) {
  thread_local std::string key;
  key.assign(op);
  if (node != nullptr) key.append(1, '\0').append(*node);
  const std::lock_guard lock(mutex_);
  const auto known = label_numbers_.find(key);
  if (known != label_numbers_.end()) return tag_ | known->second;
  if (labels_.size() >= kMaxLabels) {
    ++counts_.unlabelled_count;
    return tag_;
  }
  labels_.push_back({std::string(op), node == nullptr ? std::nullopt : std::optional(*node)});
  const auto number = static_cast<uint32_t>(labels_.size());
  label_numbers_.emplace(key, number);
  return tag_ | number;
}

uint64_t ActivityStore::probe_count() const {
  const std::lock_guard lock(mutex_);
  return probe_count_;
}

uint64_t ActivityStore::last_call_ns() const {
  const std::lock_guard lock(mutex_);
  return last_call_ns_;
}

template <class Record>
ActivityStore::Activity* ActivityStore::AddActivity(const Record& record, Kind kind) {
  if (activities_.size() >= options_.max_records) {
    ++counts_.lost_count;
    // What was written every now and then stays whole in the end: the newest are kept.
    if (options_.write_interval.count() == 0 || activities_.empty()) return nullptr;
    PopFront();
  }
  Activity activity;
  activity.kind = kind;
  activity.correlation_id = record.correlation_id;
  activity.device = record.device;
  activity.stream = record.stream;
  activity.start_ns = record.start;
  activity.end_ns = record.end;
  if (has_graph_ids_) {
    activity.graph_id = record.graph_id;
    activity.graph_node_id = record.graph_node_id;
  }
  const auto launch = launches_.find(record.correlation_id);
  if (launch != launches_.end()) {
    activity.label = launch->second;
  } else {
    waiting_.emplace(record.correlation_id, first_number_ + activities_.size());
    if (record.correlation_id <= newest_forgotten_) ++counts_.unlabelled_count;
  }
  activities_.push_back(activity);
  return &activities_.back();
}

void ActivityStore::AddLaunch(const cupti::ExternalCorrelationRecord& launch) {
  if (launch.external_kind != cupti::kExternalKind) return;
  const auto label = static_cast<uint32_t>(launch.external_id);
  const bool is_ours = launch.external_id - label == tag_;
  if (is_ours && label == kProbeLabel) {
    ++probe_count_;
    return;
  }
  if (!is_ours || label > labels_.size()) {
    ++counts_.foreign_id_count;
    return;
  }
  const auto [first, last] = waiting_.equal_range(launch.correlation_id);
  for (auto waiting = first; waiting != last; ++waiting)
    activities_[waiting->second - first_number_].label = label;
  waiting_.erase(first, last);
  // Most calls of CUDA's interface start nothing on a device, so that their records never get a
  // partner: the oldest are forgotten.
  if (launches_.insert_or_assign(launch.correlation_id, label).second)
    launch_order_.push_back(launch.correlation_id);
  if (launch_order_.size() <= options_.max_pending_launches) return;
  newest_forgotten_ = launch_order_.front();
  launches_.erase(launch_order_.front());
  launch_order_.pop_front();
}

void ActivityStore::Add(const cupti::Record& record) {
  const std::lock_guard lock(mutex_);
  switch (record.kind) {
    case cupti::kExternalCorrelation:
      AddLaunch(reinterpret_cast<const cupti::ExternalCorrelationRecord&>(record));
      break;
    case cupti::kConcurrentKernel: {
      const auto& kernel = reinterpret_cast<const cupti::KernelRecord&>(record);
      Activity* const activity = AddActivity(kernel, Kind::kKernel);
      if (activity == nullptr) break;
      const std::string name = kernel.name == nullptr ? "" : kernel.name;
      const auto [place, is_new] =
          name_numbers_.try_emplace(name, static_cast<uint32_t>(names_.size()));
      if (is_new) names_.push_back(name);
      activity->name = place->second;
      break;
    }
    case cupti::kMemcpy: {
      const auto& copy = reinterpret_cast<const cupti::MemcpyRecord&>(record);
      Activity* const activity = AddActivity(copy, Kind::kMemcpy);
      if (activity == nullptr) break;
      activity->copy_kind = copy.copy_kind;
      activity->size_bytes = copy.size_bytes;
      break;
    }
    case cupti::kPeerMemcpy: {
      const auto& copy = reinterpret_cast<const cupti::PeerMemcpyRecord&>(record);
      Activity* const activity = AddActivity(copy, Kind::kPeerMemcpy);
      if (activity == nullptr) break;
      activity->copy_kind = copy.copy_kind;
      activity->size_bytes = copy.size_bytes;
      activity->source_device = copy.source_device;
      activity->target_device = copy.target_device;
      break;
    }
    case cupti::kMemset: {
      const auto& set = reinterpret_cast<const cupti::MemsetRecord&>(record);
      Activity* const activity = AddActivity(set, Kind::kMemset);
      if (activity != nullptr) activity->size_bytes = set.size_bytes;
      break;
    }
    case cupti::kDriver:  // which CUPTI needs to make the external-correlation records
    case cupti::kRuntime:
      last_call_ns_ =
          std::max(last_call_ns_, reinterpret_cast<const cupti::CallRecord&>(record).end);
      break;
    default:  // of another client's kinds
      break;
  }
}

void ActivityStore::AddLost(uint64_t count) {
  const std::lock_guard lock(mutex_);
  counts_.lost_count += count;
}

CudaActivityRecord ActivityStore::ToRecord(const Activity& activity) const {
  CudaActivityRecord record;
  switch (activity.kind) {
    case Kind::kKernel:
      record.kind = "kernel";
      record.name = names_[activity.name];
      break;
    case Kind::kMemset:
      record.kind = record.name = "memset";
      break;
    case Kind::kPeerMemcpy:
      record.source_device = activity.source_device;
      record.target_device = activity.target_device;
      [[fallthrough]];
    case Kind::kMemcpy:
      record.kind = "memcpy";
      record.name = CopyName(activity.copy_kind);
      break;
  }
  if (activity.label != 0) {
    record.op = labels_[activity.label - 1].op;
    record.node = labels_[activity.label - 1].node;
  }
  record.device = activity.device;
  record.stream = activity.stream;
  record.start_ns = activity.start_ns;
  record.has_ended =
      activity.start_ns != cupti::kUnknownTime && activity.end_ns >= activity.start_ns;
  if (record.has_ended) record.duration_ns = activity.end_ns - activity.start_ns;
  record.size_bytes = activity.size_bytes;
  record.graph_id = activity.graph_id;
  record.graph_node_id = activity.graph_node_id;
  return record;
}

std::vector<CudaActivityRecord> ActivityStore::Records() const {
  const std::lock_guard lock(mutex_);
  std::vector<CudaActivityRecord> result;
  result.reserve(activities_.size());
  for (const Activity& activity : activities_) result.push_back(ToRecord(activity));
  return result;
}

void ActivityStore::PopFront() {
  const auto [first, last] = waiting_.equal_range(activities_.front().correlation_id);
  for (auto waiting = first; waiting != last; ++waiting) {
    if (waiting->second != first_number_) continue;
    waiting_.erase(waiting);
    break;
  }
  activities_.pop_front();
  ++first_number_;
}

std::vector<CudaActivityRecord> ActivityStore::Take() {
  const std::lock_guard lock(mutex_);
  std::vector<CudaActivityRecord> result;
  while (!activities_.empty() && (activities_.front().label != 0 || first_number_ < seen_number_)) {
    result.push_back(ToRecord(activities_.front()));
    PopFront();
  }
  seen_number_ = first_number_ + activities_.size();
  return result;
}

CudaActivityCounts ActivityStore::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace libtrace

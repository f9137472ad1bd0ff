#include "cuda/activity_store.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

namespace libtrace {
namespace {

constexpr size_t kMaxLabels = 65'536;
// Of a node of an unordered_map of two numbers, with its share of the table and of the allocator's.
constexpr uint64_t kMapEntryBytes = 48;

// Of a text that is kept as a key and once more.
uint64_t BytesOfText(size_t size) { return 2 * size + 160; }

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
  const uint64_t bytes = label_bytes_ + BytesOfText(key.size());
  if (labels_.size() >= kMaxLabels || (options_.max_bytes != 0 && bytes > options_.max_bytes / 4)) {
    ++counts_.unlabelled_count;
    return tag_;
  }
  labels_.push_back({std::string(op), node == nullptr ? std::nullopt : std::optional(*node)});
  const auto number = static_cast<uint32_t>(labels_.size());
  label_numbers_.emplace(key, number);
  label_bytes_ = bytes;
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

// False: the new activity is lost.
bool ActivityStore::MakeRoom(uint64_t name_bytes) {
  const auto is_full = [&] {
    if (activities_.size() >= options_.max_records) return true;
    return options_.max_bytes != 0 && (activities_.size() + 1) * sizeof(Activity) +
                                              (waiting_.size() + 1) * kMapEntryBytes + name_bytes_ +
                                              name_bytes >
                                          options_.max_bytes / 2;
  };
  while (is_full()) {
    // What was written every now and then stays whole in the end: the newest are kept.
    if (options_.write_interval.count() != 0 && !activities_.empty()) {
      if (activities_.front().label != kUnsampledLabel) ++counts_.lost_count;
      PopFront();
    } else {
      ++counts_.lost_count;
      return false;
    }
  }
  return true;
}

uint32_t ActivityStore::UseName(const std::string& name) {
  const auto [place, is_new] = name_numbers_.try_emplace(name, 0);
  if (is_new) {
    if (free_names_.empty()) {
      place->second = static_cast<uint32_t>(names_.size());
      names_.emplace_back();
    } else {
      place->second = free_names_.back();
      free_names_.pop_back();
    }
    names_[place->second].text = name;
    name_bytes_ += BytesOfText(name.size());
  }
  ++names_[place->second].use_count;
  return place->second;
}

void ActivityStore::ReleaseName(const Activity& activity) {
  if (activity.kind != Kind::kKernel) return;
  Name& name = names_[activity.name];
  if (--name.use_count != 0) return;
  free_names_.push_back(activity.name);
  name_bytes_ -= BytesOfText(name.text.size());
  name_numbers_.erase(name.text);
  name.text = {};
}

template <class Record>
ActivityStore::Activity* ActivityStore::AddActivity(const Record& record, Kind kind,
                                                    uint64_t name_bytes) {
  const auto launch = launches_.find(record.correlation_id);
  if (launch != launches_.end() && launch->second == kUnsampledLabel) {
    ++counts_.unsampled_count;
    return nullptr;
  }
  if (!MakeRoom(name_bytes)) return nullptr;
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
  const bool is_unsampled = label == kUnsampledLabel;
  if (!is_ours || (label > labels_.size() && !is_unsampled)) {
    ++counts_.foreign_id_count;
    return;
  }
  const auto [first, last] = waiting_.equal_range(launch.correlation_id);
  for (auto waiting = first; waiting != last; ++waiting) {
    activities_[waiting->second - first_number_].label = label;
    if (is_unsampled) ++counts_.unsampled_count;
  }
  waiting_.erase(first, last);
  // Most calls of CUDA's interface start nothing on a device, so that their records never get a
  // partner: the oldest are forgotten.
  if (launches_.insert_or_assign(launch.correlation_id, label).second)
    launch_order_.push_back(launch.correlation_id);
  uint64_t limit = options_.max_pending_launches;
  if (options_.max_bytes != 0) limit = std::min(limit, options_.max_bytes / 4 / kMapEntryBytes);
  while (launch_order_.size() > limit) ForgetLaunch();
}

void ActivityStore::ForgetLaunch() {
  newest_forgotten_ = launch_order_.front();
  launches_.erase(launch_order_.front());
  launch_order_.pop_front();
}

bool ActivityStore::IsUnsampled(const Activity& activity) const {
  return activity.label == kUnsampledLabel ||
         (options_.only_sampled_requests && activity.label == 0);
}

void ActivityStore::Add(const cupti::Record& record) {
  const std::lock_guard lock(mutex_);
  switch (record.kind) {
    case cupti::kExternalCorrelation:
      AddLaunch(reinterpret_cast<const cupti::ExternalCorrelationRecord&>(record));
      break;
    case cupti::kConcurrentKernel: {
      const auto& kernel = reinterpret_cast<const cupti::KernelRecord&>(record);
      const std::string name = kernel.name == nullptr ? "" : kernel.name;
      const bool is_known = name_numbers_.count(name) != 0;
      Activity* const activity =
          AddActivity(kernel, Kind::kKernel, is_known ? 0 : BytesOfText(name.size()));
      if (activity != nullptr) activity->name = UseName(name);
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
      record.name = names_[activity.name].text;
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
  for (const Activity& activity : activities_) {
    if (!IsUnsampled(activity)) result.push_back(ToRecord(activity));
  }
  return result;
}

void ActivityStore::PopFront() {
  const auto [first, last] = waiting_.equal_range(activities_.front().correlation_id);
  for (auto waiting = first; waiting != last; ++waiting) {
    if (waiting->second != first_number_) continue;
    waiting_.erase(waiting);
    break;
  }
  ReleaseName(activities_.front());
  activities_.pop_front();
  ++first_number_;
}

std::vector<CudaActivityRecord> ActivityStore::Take() {
  const std::lock_guard lock(mutex_);
  std::vector<CudaActivityRecord> result;
  while (!activities_.empty() && (activities_.front().label != 0 || first_number_ < seen_number_)) {
    if (!IsUnsampled(activities_.front())) {
      result.push_back(ToRecord(activities_.front()));
    } else if (activities_.front().label == 0) {
      ++counts_.unsampled_count;
    }
    PopFront();
  }
  seen_number_ = first_number_ + activities_.size();
  return result;
}

void ActivityStore::DropUnsampled() {
  const std::lock_guard lock(mutex_);
  if (!options_.only_sampled_requests) return;
  const auto kept =
      std::remove_if(activities_.begin(), activities_.end(), [&](const Activity& one) {
        if (!IsUnsampled(one)) return false;
        if (one.label == 0) ++counts_.unsampled_count;
        ReleaseName(one);
        return true;
      });
  activities_.erase(kept, activities_.end());
  waiting_.clear();  // places have changed
}

CudaActivityCounts ActivityStore::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace libtrace

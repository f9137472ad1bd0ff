// The rows of one snapshot of the allocator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifacts/common/text/stack_pool.h"
#include "enums/memory.h"
#include "inputs/memory/lives.h"
#include "inputs/memory/values.h"
#include "inputs/reader.h"

namespace tlparse::memory {

// Adds the rows of what the reader hands on. Errors of the database are kept: error().
class SnapshotRows final : public Sink {
 public:
  // Both must outlive it.
  SnapshotRows(RuntimeContext& context, StackPool& stacks) : context_(context), stacks_(stacks) {}

  void Event(const Members& event, std::string_view member,
             std::optional<std::int64_t> list_index) override;
  void Block(const Members& block) override;
  void Segment(const Members& segment) override;
  void Annotation(const Members& annotation) override;
  void HostSegment() override { ++host_segments_; }
  std::int64_t Stack(const std::vector<FrameOfSnapshot>& frames) override;

  // For the text of frames.
  void set_values(const Values& values) { values_ = &values; }
  // More blocks live at once than are followed.
  bool IsFull() const { return is_full_; }
  const std::optional<Error>& error() const { return error_; }
  std::int64_t events() const { return event_count_; }

  // After the last value: the lives that have no end, the snapshots, and what was odd. Of a file
  // that is not whole some segments are missing.
  Result<void> Finish(bool is_whole);

 private:
  // One device.
  struct Device {
    explicit Device(std::function<void(const Life&)> ended) : lives(std::move(ended)) {}
    std::int64_t id = 0;  // of memory_snapshot_row
    std::string source;
    std::optional<std::int64_t> index;  // none: memory of the host
    std::int64_t event_count = 0;
    std::optional<std::int64_t> start_ns, end_ns, oom_ordinal;
    std::optional<std::int64_t> reserved;  // at the end, of its segments
    Lives lives;
  };
  struct PendingBlock {
    std::optional<std::int64_t> address, site_id;
    std::int64_t size_bytes = 0, requested_bytes = 0;
    MemoryBlockState state = MemoryBlockState::kUnknown;
  };

  void Follow(Device& device, const Life& life, MemoryAction action);
  void AddSnapshot(const Device& device, std::int64_t base_bytes, std::int64_t matched);
  Device& DeviceOf(std::string_view member, std::optional<std::int64_t> index);
  void AddLife(const Device& device, const Life& life);
  Result<void> FinishDevice(Device& device);
  std::optional<std::int64_t> Site(std::int64_t stack_id, std::string_view region);
  // A size that is one; else it counts as bad.
  std::optional<std::int64_t> Size(const Members& members, Key key);
  void Keep(Result<void> result) {
    if (!result && !error_) error_ = std::move(result).error();
  }

  RuntimeContext& context_;
  StackPool& stacks_;
  const Values* values_ = nullptr;
  std::map<std::pair<std::string, std::optional<std::int64_t>>, std::unique_ptr<Device>> devices_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> sites_;  // of stack and region
  std::vector<PendingBlock> blocks_;  // of the segment that is read
  std::int64_t event_count_ = 0;
  std::int64_t annotation_count_ = 0;
  std::int64_t bad_sizes_ = 0;
  std::int64_t unknown_actions_ = 0;
  std::int64_t host_segments_ = 0;
  bool is_full_ = false;
  bool is_whole_ = true;
  std::optional<Error> error_;
};

}  // namespace tlparse::memory

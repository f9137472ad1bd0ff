// [memory] events: what was allocated and freed, with the totals of its device.
#include "enums/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "inputs/kineto/file.h"
#include "inputs/memory/lives.h"
#include "queries/inputs/kineto/memory.h"
#include "rows/memory.h"

namespace tlparse::kineto {
namespace {

constexpr std::int64_t kMostChangeBytes = std::int64_t{1} << 42;

// c10::DeviceType.
std::string DeviceTypeName(std::int64_t type) {
  switch (type) {
    case 0:
      return "CPU";
    case 1:
      return "CUDA";
    case 6:
      return "HIP";
    case 12:
      return "XPU";
    case 13:
      return "MPS";
    default:
      return fmt::format("device type {}", type);
  }
}

void AddLife(RuntimeContext& context, std::int64_t snapshot_id, const memory::Life& life,
             bool has_address) {
  MemoryAllocationRow row{.id = context.NextId<MemoryAllocationRow>(),
                          .profile_id = context.profile_id(),
                          .snapshot_id = snapshot_id,
                          .size_bytes = life.size_bytes};
  if (has_address) row.address = life.address;
  row.alloc_ordinal = life.alloc_ordinal;
  row.free_ordinal = life.free_ordinal;
  row.alloc_ns = life.alloc_ns;
  row.free_ns = life.free_ns;
  context.rows().Add(row);
}

}  // namespace

void KinetoFile::TakeMemory(const KinetoEvent& event) {
  if (!event.start_ns || !IsTimeInRange(*event.start_ns, 0) || !event.change_bytes ||
      !event.address || std::abs(*event.change_bytes) > kMostChangeBytes) {
    ++bad_memory_;
    return;
  }
  const bool has_index = event.device_id && *event.device_id >= 0;
  const auto [device, is_new] = memory_devices_.try_emplace(
      {event.device_type.value_or(0), has_index ? event.device_id : std::nullopt}, 0);
  if (is_new) {
    device->second = context_.NextId<MemorySnapshotRow>();
    AddUserFrames();
  }
  const bool is_free = *event.change_bytes < 0;
  MemoryEventRow row{.id = context_.NextId<MemoryEventRow>(),
                     .profile_id = context_.profile_id(),
                     .snapshot_id = device->second,
                     .ordinal = -1,
                     .action = is_free ? MemoryAction::kFree : MemoryAction::kAlloc,
                     .size_bytes = std::abs(*event.change_bytes)};
  row.address = event.address;
  row.time_ns = Start(event);
  row.thread_id = ThreadId(event);
  row.allocated_bytes = event.allocated_bytes;
  row.reserved_bytes = event.reserved_bytes;
  rows().Add(row);
  Measured(*event.start_ns, 0);
  Kept();
}

Result<void> KinetoFile::AddMemoryOf(std::int64_t device_type, std::optional<std::int64_t> device,
                                     std::int64_t snapshot_id) {
  memory::Lives lives(
      [&](const memory::Life& life) { AddLife(context_, snapshot_id, life, true); });
  ASSIGN_OR_RETURN(Statement * set, context_.database().PrepareKept(
                                        "UPDATE memory_event_row SET ordinal = ?2 WHERE id = ?1"));
  std::int64_t count = 0;
  std::optional<std::int64_t> base_bytes, start_ns, end_ns;
  FOR_EACH_ROW(const MemoryEventOfProfile& event,
               Query<MemoryEventOfProfile>(context_.database(), {.snapshot_id = snapshot_id})) {
    const std::int64_t ordinal = count++;
    set->Bind(1, event.id);
    set->Bind(2, ordinal);
    RETURN_IF_ERROR(set->Run());
    if (!start_ns) start_ns = event.time_ns;
    end_ns = event.time_ns;
    if (!base_bytes && event.allocated_bytes)
      base_bytes = std::max<std::int64_t>(
          *event.allocated_bytes - (event.is_alloc ? event.size_bytes : -event.size_bytes), 0);
    if (lives.IsFull()) continue;
    if (event.is_alloc)
      lives.Begin({.address = event.address,
                   .size_bytes = event.size_bytes,
                   .alloc_ordinal = ordinal,
                   .alloc_ns = event.time_ns});
    else
      lives.End(event.address, event.size_bytes, ordinal, event.time_ns);
    RETURN_IF_ERROR(context_.Flush());
  }
  if (lives.IsFull())
    context_.Log(ImportCode::kBadProfileEvent,
                 "more blocks live at once than are followed: the peak is of those before");
  for (const auto& [address, life] : lives.alive()) AddLife(context_, snapshot_id, life, true);
  // What the totals count, and no event names.
  const std::int64_t base = std::max(base_bytes.value_or(0), lives.before_bytes());
  if (base > lives.before_bytes())
    AddLife(context_, snapshot_id, {.size_bytes = base - lives.before_bytes()}, false);
  const std::string source = DeviceTypeName(device_type);
  MemorySnapshotRow row{.id = snapshot_id,
                        .profile_id = context_.profile_id(),
                        .source = source,
                        .event_count = count,
                        .base_bytes = base,
                        .peak_bytes = memory::AddBytes(base, lives.peak_delta()),
                        .peak_ordinal = lives.peak_ordinal(),
                        .end_bytes = memory::AddBytes(base, lives.end_delta()),
                        .unmatched_count = 0};
  ASSIGN_OR_RETURN(
      const FirstRow<MostOfProfile> most,
      First(Query<MostOfProfile>(context_.database(), {.snapshot_id = snapshot_id,
                                                       .peak_ordinal = lives.peak_ordinal()})));
  row.device = device;
  row.start_ns = start_ns;
  row.taken_ns = end_ns;
  row.peak_ns = lives.peak_ns();
  row.reserved_at_peak_bytes = most->reserved_at_peak_bytes;
  row.peak_reserved_bytes = most->reserved_bytes;
  if (most->allocated_bytes.value_or(row.peak_bytes.value()) != row.peak_bytes.value())
    context_.Log(ImportCode::kBadProfileEvent,
                 fmt::format("the [memory] events of {} sum to {} bytes at their peak, and name {} "
                             "as the most: some are missing or out of order",
                             source, row.peak_bytes.value(), *most->allocated_bytes));
  rows().Add(row);
  return context_.Flush();
}

Result<void> KinetoFile::AddMemory() {
  if (bad_memory_ > 0)
    context_.Log(ImportCode::kBadProfileEvent,
                 fmt::format("{} [memory] events have no possible time, address or size; they were "
                             "left out",
                             bad_memory_));
  if (memory_devices_.empty()) return {};
  RETURN_IF_ERROR(context_.Write());
  for (const auto& [device, snapshot_id] : memory_devices_)
    RETURN_IF_ERROR(AddMemoryOf(device.first, device.second, snapshot_id));
  return {};
}

}  // namespace tlparse::kineto

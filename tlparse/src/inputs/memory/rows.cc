#include "inputs/memory/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "inputs/common/measured_span.h"
#include "queries/inputs/memory/rows.h"
#include "rows/memory.h"

namespace tlparse::memory {
namespace {

// No device has more, and the sum over all blocks that can live at once does not exceed 64 bits.
constexpr std::int64_t kMostBlockBytes = std::int64_t{1} << 42;

struct NamedAction {
  std::string_view name;
  MemoryAction action;
};
constexpr NamedAction kActions[] = {
    {"alloc", MemoryAction::kAlloc},
    {"free_requested", MemoryAction::kFreeRequested},
    {"free_completed", MemoryAction::kFreeCompleted},
    {"segment_alloc", MemoryAction::kSegmentAlloc},
    {"segment_free", MemoryAction::kSegmentFree},
    {"segment_map", MemoryAction::kSegmentMap},
    {"segment_unmap", MemoryAction::kSegmentUnmap},
    {"snapshot", MemoryAction::kSnapshot},
    {"oom", MemoryAction::kOom},
    {"free", MemoryAction::kFree},
    {"annotate", MemoryAction::kAnnotate},
};

MemoryAction ActionOf(std::string_view name) {
  for (const NamedAction& one : kActions) {
    if (one.name == name) return one.action;
  }
  return MemoryAction::kUnknown;
}

MemoryBlockState BlockStateOf(std::string_view name) {
  if (name == "active_allocated") return MemoryBlockState::kActiveAllocated;
  if (name == "active_pending_free" || name == "active_awaiting_free")
    return MemoryBlockState::kActivePendingFree;
  return name == "inactive" ? MemoryBlockState::kInactive : MemoryBlockState::kUnknown;
}

std::optional<std::int64_t> TimeNs(const Members& members) {
  const std::optional<std::int64_t> time_us = members.Int(Key::kTimeUs);
  constexpr std::int64_t kLatestUs = std::int64_t{1} << 51;
  if (!time_us || *time_us <= 0 || *time_us > kLatestUs) return std::nullopt;
  return *time_us * 1000;
}

}  // namespace

std::optional<std::int64_t> SnapshotRows::Size(const Members& members, Key key) {
  const std::optional<std::int64_t> size = members.Int(key);
  if (size && *size >= 0 && *size <= kMostBlockBytes) return size;
  ++bad_sizes_;
  return std::nullopt;
}

std::int64_t SnapshotRows::Stack(const std::vector<FrameOfSnapshot>& frames) {
  std::int64_t id = 0;
  for (const FrameOfSnapshot& frame : frames) {
    StackPool::Frame row;
    row.file = values_->TextAt(frame.file);
    row.line = frame.line;
    row.function = values_->TextAt(frame.function);
    id = stacks_.Child(context_.rows(), id, row);
  }
  return id;
}

std::optional<std::int64_t> SnapshotRows::Site(std::int64_t stack_id, std::string_view region) {
  if (stack_id == 0 && region.empty()) return std::nullopt;
  const std::int64_t region_id = region.empty() ? 0 : context_.Text(region);
  const auto [entry, is_new] = sites_.try_emplace({stack_id, region_id}, 0);
  if (!is_new) return entry->second;
  MemorySiteRow row{.id = context_.NextId<MemorySiteRow>(), .profile_id = context_.profile_id()};
  if (stack_id != 0) row.stack_id = stack_id;
  if (region_id != 0) row.context_id = region_id;
  entry->second = row.id.value();
  context_.rows().Add(row);
  return entry->second;
}

SnapshotRows::Device& SnapshotRows::DeviceOf(std::string_view member,
                                             std::optional<std::int64_t> index) {
  // Segments are of the device whose events device_traces holds. Pinned memory has one list of
  // events, in host_traces.
  const std::string source = SanitizeUtf8(member.empty() ? "device_traces" : member);
  if (!index && source == "device_traces") index = 0;
  std::unique_ptr<Device>& device = devices_[{source, index}];
  if (device != nullptr) return *device;
  device = std::make_unique<Device>([this, &device](const Life& life) { AddLife(*device, life); });
  device->id = context_.NextId<MemorySnapshotRow>();
  device->source = source;
  device->index = index;
  return *device;
}

void SnapshotRows::AddLife(const Device& device, const Life& life) {
  MemoryAllocationRow row{.id = context_.NextId<MemoryAllocationRow>(),
                          .profile_id = context_.profile_id(),
                          .snapshot_id = device.id,
                          .address = life.address,
                          .size_bytes = life.size_bytes};
  row.alloc_ordinal = life.alloc_ordinal;
  row.free_ordinal = life.free_ordinal;
  row.alloc_ns = life.alloc_ns;
  row.free_ns = life.free_ns;
  row.site_id = life.site_id;
  context_.rows().Add(row);
}

// What an event at an address does to the blocks; its time and ordinal are those of `life`.
void SnapshotRows::Follow(Device& device, const Life& life, MemoryAction action) {
  switch (action) {
    case MemoryAction::kAlloc:
      return device.lives.Begin(life);
    case MemoryAction::kFree:
    case MemoryAction::kFreeCompleted:
      return device.lives.End(life.address, life.size_bytes, *life.alloc_ordinal, life.alloc_ns);
    case MemoryAction::kSegmentAlloc:
    case MemoryAction::kSegmentMap:
      return device.lives.Reserve(life.size_bytes);
    case MemoryAction::kSegmentFree:
    case MemoryAction::kSegmentUnmap:
      return device.lives.Reserve(-life.size_bytes);
    default:
      return;
  }
}

void SnapshotRows::Event(const Members& event, std::string_view member,
                         std::optional<std::int64_t> list_index) {
  ++event_count_;
  const std::optional<std::int64_t> size = Size(event, Key::kSize);
  if (!size) return;
  Device& device = DeviceOf(member, list_index);
  const std::string_view name = event.Text(Key::kAction);
  const MemoryAction action = ActionOf(name);
  const std::int64_t ordinal = device.event_count++;
  std::optional<std::string> extra = event.Others();
  if (action == MemoryAction::kUnknown) {
    ++unknown_actions_;
    JsonWriter json;
    json.BeginObject().Key("action").String(SanitizeUtf8(name)).EndObject();
    extra = json.Take();
  }
  MemoryEventRow row{.id = context_.NextId<MemoryEventRow>(),
                     .profile_id = context_.profile_id(),
                     .snapshot_id = device.id,
                     .ordinal = ordinal,
                     .action = action,
                     .size_bytes = *size};
  row.address = event.Int(event.Has(Key::kAddr) ? Key::kAddr : Key::kAddress);
  row.stream = event.Int(Key::kStream);
  row.time_ns = TimeNs(event);
  row.site_id = Site(event.Stack(), event.Text(Key::kCompileContext));
  row.device_free_bytes = event.Int(Key::kDeviceFree);
  row.extra = extra;
  context_.rows().Add(row);
  ++context_.facts().kept_count;
  if (row.time_ns) {
    device.start_ns = std::min(device.start_ns.value_or(*row.time_ns), *row.time_ns);
    device.end_ns = std::max(device.end_ns.value_or(*row.time_ns), *row.time_ns);
  }
  Follow(device,
         {.address = row.address.value_or(0),
          .size_bytes = *size,
          .alloc_ordinal = ordinal,
          .alloc_ns = row.time_ns,
          .site_id = row.site_id},
         row.address ? action : MemoryAction::kUnknown);
  if (action == MemoryAction::kOom) device.oom_ordinal = ordinal;
  is_full_ |= device.lives.IsFull();
  Keep(context_.Flush());
}

void SnapshotRows::Block(const Members& block) {
  const std::optional<std::int64_t> size = Size(block, Key::kSize);
  if (!size) return;
  PendingBlock pending;
  pending.address = block.Int(Key::kAddress);
  pending.size_bytes = *size;
  pending.state = BlockStateOf(block.Text(Key::kState));
  pending.requested_bytes = *size;
  if (block.Has(Key::kRequestedSize))
    pending.requested_bytes = Size(block, Key::kRequestedSize).value_or(*size);
  pending.site_id = Site(block.Stack(), block.Text(Key::kCompileContext));
  blocks_.push_back(pending);
}

void SnapshotRows::Segment(const Members& segment) {
  const std::optional<std::int64_t> total = Size(segment, Key::kTotalSize);
  std::vector<PendingBlock> blocks = std::move(blocks_);
  blocks_.clear();
  if (!total) return;
  Device& device = DeviceOf({}, segment.Int(Key::kDevice).value_or(0));
  device.reserved = AddBytes(device.reserved.value_or(0), *total);
  MemorySegmentRow row{.id = context_.NextId<MemorySegmentRow>(),
                       .profile_id = context_.profile_id(),
                       .snapshot_id = device.id,
                       .total_bytes = *total};
  const auto text = [](std::string_view value) {
    return value.empty() ? std::nullopt : std::optional(SanitizeUtf8(value));
  };
  const std::optional<std::string> type = text(segment.Text(Key::kSegmentType));
  const std::optional<std::string> pool = text(segment.Text(Key::kSegmentPoolId));
  row.address = segment.Int(Key::kAddress);
  row.allocated_bytes = segment.Int(Key::kAllocatedSize);
  row.active_bytes = segment.Int(Key::kActiveSize);
  row.requested_bytes = segment.Int(Key::kRequestedSize);
  row.stream = segment.Int(Key::kStream);
  row.segment_type = type;
  row.pool = pool;
  row.is_expandable = segment.Int(Key::kIsExpandable);
  row.site_id = Site(segment.Stack(), {});
  context_.rows().Add(row);
  std::optional<std::int64_t> address = row.address;  // older versions do not name it of each block
  for (const PendingBlock& block : blocks) {
    if (block.address) address = block.address;
    MemoryBlockRow block_row{.id = context_.NextId<MemoryBlockRow>(),
                             .profile_id = context_.profile_id(),
                             .segment_id = row.id.value(),
                             .size_bytes = block.size_bytes,
                             .requested_bytes = block.requested_bytes,
                             .state = block.state};
    block_row.address = address;
    block_row.site_id = block.site_id;
    context_.rows().Add(block_row);
    // As unsigned numbers: a damaged address may be any.
    if (address)
      address = static_cast<std::int64_t>(static_cast<std::uint64_t>(*address) +
                                          static_cast<std::uint64_t>(block.size_bytes));
  }
  Keep(context_.Flush());
}

void SnapshotRows::Annotation(const Members& annotation) {
  const std::string stage = SanitizeUtf8(annotation.Text(Key::kStage));
  const std::string name = SanitizeUtf8(annotation.Text(Key::kName));
  MemoryAnnotationRow row{.id = context_.NextId<MemoryAnnotationRow>(),
                          .profile_id = context_.profile_id(),
                          .ordinal = annotation_count_++};
  row.device = annotation.Int(Key::kDevice);
  row.stage = stage;
  row.name = name;
  row.time_ns = TimeNs(annotation);
  context_.rows().Add(row);
  Keep(context_.Flush());
}

Result<void> SnapshotRows::FinishDevice(Device& device) {
  Lives& lives = device.lives;
  std::int64_t base_bytes = lives.before_bytes();
  std::int64_t matched = 0;
  FOR_EACH_ROW(const ActiveBlock& block,
               Query<ActiveBlock>(context_.database(), {.snapshot_id = device.id})) {
    if (lives.alive().contains(block.address)) {
      ++matched;
      continue;
    }
    base_bytes = AddBytes(base_bytes, block.requested_bytes);
    AddLife(device, {.address = block.address,
                     .size_bytes = block.requested_bytes,
                     .alloc_ordinal = {},
                     .free_ordinal = {},
                     .alloc_ns = {},
                     .free_ns = {},
                     .site_id = block.site_id});
  }
  for (const auto& [address, life] : lives.alive()) AddLife(device, life);
  AddSnapshot(device, base_bytes, matched);
  ProfileFacts& facts = context_.facts();
  if (device.start_ns)
    facts.start_ns = std::min(facts.start_ns.value_or(*device.start_ns), *device.start_ns);
  if (device.end_ns) facts.end_ns = std::max(facts.end_ns.value_or(*device.end_ns), *device.end_ns);
  return context_.Flush();
}

// `matched`: allocations that live at the end of the events and are an active block.
void SnapshotRows::AddSnapshot(const Device& device, std::int64_t base_bytes,
                               std::int64_t matched) {
  const Lives& lives = device.lives;
  const auto alive = static_cast<std::int64_t>(lives.alive().size());
  MemorySnapshotRow row{.id = device.id,
                        .profile_id = context_.profile_id(),
                        .source = device.source,
                        .event_count = device.event_count,
                        .base_bytes = base_bytes,
                        .peak_bytes = AddBytes(base_bytes, lives.peak_delta()),
                        .peak_ordinal = lives.peak_ordinal(),
                        .end_bytes = AddBytes(base_bytes, lives.end_delta()),
                        .unmatched_count = device.reserved && is_whole_ ? alive - matched : 0};
  row.device = device.index;
  const std::string name = device.index ? fmt::format("device {}", *device.index) : device.source;
  row.start_ns = device.start_ns;
  row.taken_ns = device.end_ns;
  row.peak_ns = lives.peak_ns();
  row.oom_ordinal = device.oom_ordinal;
  if (device.reserved) {
    const std::int64_t before = AddBytes(*device.reserved, -lives.reserved_delta());
    row.end_reserved_bytes = device.reserved;
    row.reserved_at_peak_bytes = AddBytes(before, lives.reserved_at_peak_delta());
    row.peak_reserved_bytes = AddBytes(before, lives.most_reserved_delta());
    if (*row.reserved_at_peak_bytes < row.peak_bytes.value() || before < 0) {
      context_.Log(ImportCode::kUnrecordedSegments,
                   fmt::format("{}: {} bytes live at the peak, and by the events of segments "
                               "the allocator held {}: some segments were taken or given back "
                               "without an event",
                               name, row.peak_bytes.value(), *row.reserved_at_peak_bytes));
      row.reserved_at_peak_bytes = row.peak_reserved_bytes = std::nullopt;
    }
  }
  if (row.unmatched_count.value() > 0) {
    context_.Log(ImportCode::kBadRuntimeFile,
                 fmt::format("{}: {} of {} that live{} at the end of the events {} no "
                             "active block of the segments",
                             name, row.unmatched_count.value(), Count(alive, "allocation"),
                             VerbS(alive), row.unmatched_count.value() == 1 ? "is" : "are"));
  }
  if (lives.replaced() > 0) {
    context_.Log(ImportCode::kBadRuntimeFile,
                 fmt::format("{}: {} {} at an address that was not freed: the earlier one "
                             "was taken to end there",
                             name, Count(lives.replaced(), "allocation"),
                             lives.replaced() == 1 ? "is" : "are"));
  }
  context_.rows().Add(row);
}

Result<void> SnapshotRows::Finish(bool is_whole) {
  is_whole_ = is_whole;
  if (error_) return tl::unexpected<Error>(*error_);
  RETURN_IF_ERROR(context_.Write());
  for (auto& [key, device] : devices_) RETURN_IF_ERROR(FinishDevice(*device));
  if (bad_sizes_ > 0) {
    context_.Log(ImportCode::kBadRuntimeFile,
                 fmt::format("{} left out: an event, block or segment without a possible size",
                             CountWere(bad_sizes_, "row")));
  }
  if (host_segments_ > 0) {
    context_.Log(ImportCode::kUnknownProfileEvent,
                 fmt::format("{} of host_segments {} not read: pinned memory that lives since "
                             "before the first event of host_traces is not counted",
                             Count(host_segments_, "segment"), host_segments_ == 1 ? "is" : "are"));
  }
  if (unknown_actions_ > 0) {
    context_.Log(
        ImportCode::kUnknownProfileEvent,
        fmt::format("{} {} an action of an unknown name (memory_event.extra)",
                    Count(unknown_actions_, "event"), unknown_actions_ == 1 ? "has" : "have"));
  }
  return {};
}

}  // namespace tlparse::memory

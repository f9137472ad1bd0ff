// Graph calls, regions and functions of autograd: of which compile and graph they are.
#include <algorithm>

#include "runtime/profile_joiner.h"

namespace tlparse::profile_join {

void Joiner::NestSlices() {
  std::vector<std::int32_t> open;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(slices_.size()); ++i) {
    Slice& slice = slices_[static_cast<std::size_t>(i)];
    if (slice.kind == kDevice) continue;
    while (!open.empty()) {
      const Slice& last = slices_[static_cast<std::size_t>(open.back())];
      if (last.thread == slice.thread && slice.start < last.end) break;
      open.pop_back();
    }
    if (!open.empty()) slice.parent = open.back();
    open.push_back(i);
  }
}

std::int32_t Joiner::Around(std::int32_t slice, CompiledSliceKind kind) const {
  for (std::int32_t at = slice; at != kNone; at = slices_[static_cast<std::size_t>(at)].parent) {
    if (slices_[static_cast<std::size_t>(at)].kind == kind) return at;
  }
  return kNone;
}

std::int32_t Joiner::RegionOf(std::int32_t index) const {
  const std::int32_t backward = Around(index, kBackward);
  if (backward == kNone) return Around(index, kRegion);
  const std::optional<std::int64_t> sequence = slices_[static_cast<std::size_t>(backward)].sequence;
  if (!sequence) return kNone;
  // The forward is the latest function of that number before it, on whichever thread.
  std::int32_t forward = kNone;
  const std::int64_t before = slices_[static_cast<std::size_t>(backward)].start;
  for (const Numbered::Entry& entry : functions_of_.All(*sequence)) {
    const Slice& slice = slices_[entry.index];
    if (slice.start < before &&
        (forward == kNone || slice.start > slices_[static_cast<std::size_t>(forward)].start)) {
      forward = static_cast<std::int32_t>(entry.index);
    }
  }
  return forward == kNone ? kNone : Around(forward, kRegion);
}

std::optional<std::int64_t> Joiner::RegionIdOf(std::int32_t slice) const {
  return SliceId(slice == kNone ? kNone : RegionOf(slice));
}

void Joiner::JoinRegion(Slice& slice) {
  if (!process_id_) {
    slice.note = kNoProcess;
    return;
  }
  const auto* compiles = code_.WithLabel(*process_id_, NameOf(slice));
  if (compiles == nullptr) {
    slice.note = kLabelUnknown;
    return;
  }
  // Labels come again after torch._dynamo.reset(): the newest that began before the slice ended.
  const CompiledCode::Compile* compile = &compiles->front();
  for (const CompiledCode::Compile& candidate : *compiles) {
    if (candidate.start_us * 1000 <= slice.end) compile = &candidate;
  }
  slice.compile_id = compile->id;
  slice.key = "K2";
}

void Joiner::JoinByKey(Slice& slice) {
  const auto* graphs = code_.WithKey(NameOf(slice));
  if (graphs == nullptr) {
    slice.note = process_id_ ? kKeyUnknown : kNoProcess;
    return;
  }
  const auto index = static_cast<std::int32_t>(&slice - slices_.begin());
  const std::int32_t region = RegionOf(index);
  const std::int64_t compile_id =
      region == kNone ? 0 : slices_[static_cast<std::size_t>(region)].compile_id;
  std::vector<const CompiledCode::Graph*> best;
  int best_rank = -1;
  for (const CompiledCode::Graph* graph : *graphs) {
    const bool is_own = process_id_ && graph->process_id == *process_id_;
    const bool is_before = graph->start_us * 1000 <= slice.start;
    const int rank =
        (is_own ? 4 : 0) + (graph->compile_id == compile_id ? 2 : 0) + (is_before ? 1 : 0);
    // Later compiles come later: of equal ones the newest compile wins, with all of its graphs.
    if (rank > best_rank || (rank == best_rank && graph->compile_id != best.front()->compile_id)) {
      best.clear();
      best_rank = rank;
    }
    if (rank == best_rank) best.push_back(graph);
  }
  // One compile may hold a key several times (pieces of a DDP graph): they run in their order.
  std::size_t earlier = 0;
  if (graphs->size() > 1) {
    std::size_t& so_far = calls_so_far_[{slice.thread, region, slice.name_id}];
    earlier = so_far;
    if (slice.parent != kNone) ++so_far;
  }
  slice.graph = best[earlier % best.size()];
  slice.compile_id = slice.graph->compile_id;
  slice.key = "K1";
  if (!process_id_ || slice.graph->process_id != *process_id_) slice.note = kOtherProcess;
}

// Without a key: the compile of the region around it, and the direction.
void Joiner::JoinByPlace(Slice& slice) {
  const auto index = static_cast<std::int32_t>(&slice - slices_.begin());
  const bool is_backward = Around(index, kBackward) != kNone;
  const std::int32_t region = RegionOf(index);
  if (region == kNone || slices_[static_cast<std::size_t>(region)].compile_id == 0) {
    slice.note = process_id_ ? kNoKey : kNoProcess;
    return;
  }
  const Slice& around = slices_[static_cast<std::size_t>(region)];
  slice.compile_id = around.compile_id;
  slice.key = is_backward ? "K3" : "K2";
  const auto* compiles = code_.WithLabel(*process_id_, NameOf(around));
  for (const CompiledCode::Compile& compile : *compiles) {
    if (compile.id != around.compile_id) continue;
    for (const CompiledCode::Graph* graph : compile.graphs) {
      if ((graph->direction == "backward") != is_backward) continue;
      if (slice.graph != nullptr) {
        slice.graph = nullptr;
        slice.note = kSeveralGraphs;
        return;
      }
      slice.graph = graph;
    }
  }
  if (slice.graph == nullptr) slice.note = kNoGraph;
}

void Joiner::JoinSlices() {
  bool has_calls = false;
  for (Slice& slice : slices_) {
    has_calls |= slice.kind == kGraphCall || slice.kind == kDevice;
    if (slice.kind == kRegion) JoinRegion(slice);
  }
  for (Slice& slice : slices_) {
    if (slice.kind == kGraphCall && !NameOf(slice).empty()) JoinByKey(slice);
    if (slice.kind == kGraphCall && slice.graph == nullptr) {
      const std::string_view note = slice.note;
      JoinByPlace(slice);
      if (slice.compile_id == 0 && !note.empty()) slice.note = note;
    }
    if (slice.kind == kFunction || slice.kind == kBackward) JoinByPlace(slice);
    if (slice.kind == kGraphCall) slice.is_call = true;
    if (slice.kind == kDevice && slice.external_id) {
      const std::optional<std::uint32_t> found = slice_of_.First(*slice.external_id);
      if (found) slice.call = static_cast<std::int32_t>(*found);
    }
  }
  if (has_calls) {
    FindLostCalls();
    return;
  }
  // PyTorch before 2.7 marks no calls on CPUs: the functions in regions and backwards are they, or
  // the region itself where nothing needs a gradient.
  std::vector<bool> has_function(slices_.size());
  for (Slice& slice : slices_) {
    if (slice.kind != kFunction && slice.kind != kBackward) continue;
    slice.is_call = true;
    const std::int32_t region = Around(slice.parent, kRegion);
    if (region != kNone) has_function[static_cast<std::size_t>(region)] = true;
  }
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    Slice& slice = slices_[i];
    if (slice.kind != kRegion || has_function[i]) continue;
    JoinByPlace(slice);
    slice.is_call = slice.compile_id == 0 || slice.graph != nullptr;
  }
}

// Where the profile lost the slice of a call, the function of autograd around it stands for it.
void Joiner::FindLostCalls() {
  std::vector<bool> has_call(slices_.size());
  for (const Slice& slice : slices_) {
    if (slice.kind != kGraphCall) continue;
    for (std::int32_t at = slice.parent; at != kNone;
         at = slices_[static_cast<std::size_t>(at)].parent)
      has_call[static_cast<std::size_t>(at)] = true;
  }
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    Slice& slice = slices_[i];
    if ((slice.kind != kFunction && slice.kind != kBackward) || has_call[i]) continue;
    if (slice.graph == nullptr) continue;
    slice.is_call = true;
    slice.note = kLostCall;
  }
}

Result<void> Joiner::WriteSlices() {
  ASSIGN_OR_RETURN(Statement add,
                   database_.Prepare("INSERT INTO compiled_slice_link_row (slice_id, "
                                     "is_call, call_id, compile_id, graph_id, device_ns, join_key, "
                                     "note_id, region_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  for (std::size_t i = 0; i < slices_.size(); ++i)
    RETURN_IF_ERROR(slices_by_id_.Push(static_cast<std::uint32_t>(i)));
  std::sort(slices_by_id_.begin(), slices_by_id_.end(),
            [this](std::uint32_t a, std::uint32_t b) { return slices_[a].id < slices_[b].id; });
  for (const std::uint32_t index : slices_by_id_) {
    const Slice* const slice = &slices_[index];
    const auto or_null = [](std::int64_t id) { return id == 0 ? std::nullopt : std::optional(id); };
    ASSIGN_OR_RETURN(const std::optional<std::int64_t> note_id, Note(slice->note));
    add.Bind(1, slice->id);
    add.Bind(2, std::int64_t{slice->is_call});
    add.Bind(3, SliceId(slice->call));
    add.Bind(4, or_null(slice->compile_id));
    add.Bind(5, slice->graph == nullptr ? std::nullopt : std::optional(slice->graph->id));
    add.Bind(6, or_null(slice->device_ns));
    add.Bind(7, slice->key.empty() ? std::nullopt : std::optional(slice->key));
    add.Bind(8, note_id);
    add.Bind(9, RegionIdOf(static_cast<std::int32_t>(index)));
    RETURN_IF_ERROR(add.Run());
  }
  return {};
}

}  // namespace tlparse::profile_join

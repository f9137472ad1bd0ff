// Graph calls, regions and functions of autograd: of which compile and graph they are.
#include <algorithm>

#include "inputs/join/profile_joiner.h"

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
    if (!open.empty()) {
      const Slice& around = slices_[static_cast<std::size_t>(open.back())];
      slice.parent = open.back();
      slice.in_region = around.in_region;
      slice.in_backward = around.in_backward;
    }
    if (slice.kind == kRegion) slice.in_region = i;
    if (slice.kind == kBackward) slice.in_backward = i;
    open.push_back(i);
  }
  for (Slice& slice : slices_) {
    if (slice.kind != kBackward) continue;
    const std::int32_t forward = ForwardOf(slice);
    if (forward != kNone) slice.region = slices_[static_cast<std::size_t>(forward)].in_region;
  }
  for (Slice& slice : slices_) {
    if (slice.kind == kBackward) continue;
    slice.region = slice.in_backward == kNone
                       ? slice.in_region
                       : slices_[static_cast<std::size_t>(slice.in_backward)].region;
  }
}

// The latest function of the backward's number before it, on whichever thread.
std::int32_t Joiner::ForwardOf(const Slice& backward) const {
  if (!backward.sequence) return kNone;
  const Function* const next = std::lower_bound(functions_.begin(), functions_.end(),
                                                Function{*backward.sequence, backward.start, 0});
  return next == functions_.begin() || (next - 1)->sequence != *backward.sequence
             ? kNone
             : static_cast<std::int32_t>((next - 1)->slice);
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
  auto compile =
      std::upper_bound(compiles->begin(), compiles->end(), slice.end,
                       [](std::int64_t end, const auto& one) { return end < one.start_us * 1000; });
  if (compile != compiles->begin()) --compile;
  slice.compile_id = compile->id;
  slice.key = "K2";
}

// Those of the process that was measured, if its log holds the key.
const KeyGraphs& Joiner::GraphsOfKey(const Slice& slice) {
  const auto [entry, is_new] = graphs_of_key_.try_emplace(slice.name_id);
  KeyGraphs& found = entry->second;
  const auto* const graphs = is_new ? code_.WithKey(NameOf(slice)) : nullptr;
  if (graphs == nullptr) return found;
  const auto is_own = [&](const CompiledCode::Graph* graph) {
    return process_id_ && graph->process_id == *process_id_;
  };
  const bool has_own = std::any_of(graphs->begin(), graphs->end(), is_own);
  for (const CompiledCode::Graph* graph : *graphs) {
    if (has_own && !is_own(graph)) continue;
    const auto [of, is_first] = found.by_id.try_emplace(graph->compile_id, found.compiles.size());
    if (is_first) found.compiles.push_back({graph->compile_id, graph->start_us, {}});
    found.compiles[of->second].graphs.push_back(graph);
  }
  return found;
}

void Joiner::JoinByKey(Slice& slice) {
  const KeyGraphs& graphs = GraphsOfKey(slice);
  if (graphs.compiles.empty()) {
    slice.note = process_id_ ? kKeyUnknown : kNoProcess;
    return;
  }
  // The compile of the region around it; else the newest that began before the call; else the newest.
  auto compile = graphs.compiles.end() - 1;
  const auto of_region =
      slice.region == kNone
          ? graphs.by_id.end()
          : graphs.by_id.find(slices_[static_cast<std::size_t>(slice.region)].compile_id);
  if (of_region != graphs.by_id.end()) {
    compile = graphs.compiles.begin() + static_cast<std::ptrdiff_t>(of_region->second);
  } else {
    const auto next = std::upper_bound(
        graphs.compiles.begin(), graphs.compiles.end(), slice.start,
        [](std::int64_t start, const auto& one) { return start < one.start_us * 1000; });
    if (next != graphs.compiles.begin()) compile = next - 1;
  }
  // One compile may hold a key several times (pieces of a DDP graph): they run in their order.
  std::size_t earlier = 0;
  if (compile->graphs.size() > 1) {
    std::size_t& so_far = calls_so_far_[{slice.thread, slice.region, slice.name_id}];
    earlier = so_far;
    if (slice.parent != kNone) ++so_far;
  }
  slice.graph = compile->graphs[earlier % compile->graphs.size()];
  slice.compile_id = slice.graph->compile_id;
  slice.key = "K1";
  if (!process_id_ || slice.graph->process_id != *process_id_) slice.note = kOtherProcess;
}

// Without a key: the compile of the region around it, and the direction.
void Joiner::JoinByPlace(Slice& slice) {
  const bool is_backward = slice.in_backward != kNone;
  if (slice.region == kNone || slices_[static_cast<std::size_t>(slice.region)].compile_id == 0) {
    slice.note = process_id_ ? kNoKey : kNoProcess;
    return;
  }
  slice.compile_id = slices_[static_cast<std::size_t>(slice.region)].compile_id;
  slice.key = is_backward ? "K3" : "K2";
  const CompiledCode::OfDirection graph = code_.GraphOf(slice.compile_id, is_backward);
  if (!graph.has_several) slice.graph = graph.first;
  if (slice.graph == nullptr) slice.note = graph.has_several ? kSeveralGraphs : kNoGraph;
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
    const std::int32_t region = slice.in_region;
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
         at = slices_[static_cast<std::size_t>(at)].parent) {
      if (has_call[static_cast<std::size_t>(at)]) break;  // and so have those around it
      has_call[static_cast<std::size_t>(at)] = true;
    }
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

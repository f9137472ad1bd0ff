#include "runtime/join_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "enums/profile.h"
#include "runtime/kernel_match.h"

namespace tlparse {
namespace {

using enum CompiledSliceKind;

constexpr std::string_view kNoProcess = "no log of the process that was measured";
constexpr std::string_view kKeyUnknown = "no log of this run holds this graph cache key";
constexpr std::string_view kOtherProcess =
    "the log of another process that compiled the same graph";
constexpr std::string_view kLabelUnknown = "the log of the process holds no compile of this label";
constexpr std::string_view kNoKey = "the name holds no key, and nothing around it tells the graph";
constexpr std::string_view kSeveralGraphs = "several graphs of the compile fit";
constexpr std::string_view kOutside = "it ran outside any graph call";
constexpr std::string_view kCallUnknown = "its graph call is not joined";
constexpr std::string_view kNoKernels = "the log holds no kernels of the graph";
constexpr std::string_view kNotInCode = "the generated code calls no kernel of this name here";
constexpr std::string_view kReplayed = "by name and order: a device graph was replayed";
constexpr std::string_view kLaunchUnknown = "its launch is not in the profile";

constexpr std::int32_t kNone = -1;

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
// An op or a CPU kernel. A profile may hold millions: kept small.
struct Run {
  std::int64_t id;
  std::int64_t self_ns = 0;
  std::int64_t device_ns = 0;
  std::int64_t kernel_id = 0;
  std::int32_t name_id;  // text ids are counted from 1 and below 2^31
  std::int32_t call = kNone;
  std::int32_t child = kNone;  // the direct child of the call that it is, or is in
  bool is_op;
  bool has_device_work = false;
  bool is_in_order = false;  // kernel_id is by order (K5), not by name (K4)
};
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

std::string_view KeyOf(const Run& run) { return run.is_in_order ? "K5" : "K4"; }

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
  Result<void> JoinDeviceKernels();
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
  std::unordered_map<std::int64_t, std::uint32_t> launch_of_;    // by correlation
  std::unordered_map<std::int64_t, std::uint32_t> op_of_;        // by external id
  std::unordered_map<std::int64_t, std::uint32_t> slice_of_;     // by external id
  std::map<std::int32_t, std::vector<std::uint32_t>> children_;  // of each call, in order
  std::unordered_map<std::int64_t, std::string> names_;
  std::map<std::string_view, std::int64_t> notes_;
};

Result<std::string_view> Joiner::NameOf(std::int64_t text_id) {
  const auto [entry, is_new] = names_.try_emplace(text_id);
  if (!is_new) return std::string_view(entry->second);
  ASSIGN_OR_RETURN(entry->second,
                   database_.QueryText("SELECT text FROM text_row WHERE id = ?", text_id));
  return std::string_view(entry->second);
}

Result<std::optional<std::int64_t>> Joiner::Note(std::string_view note) {
  if (note.empty()) return std::optional<std::int64_t>();
  const auto found = notes_.find(note);
  if (found != notes_.end()) return std::optional(found->second);
  ASSIGN_OR_RETURN(const std::int64_t id, NoteId(database_, note));
  notes_.emplace(note, id);
  return std::optional(id);
}

Result<void> Joiner::LoadSlices() {
  ASSIGN_OR_RETURN(
      Statement rows,
      database_.Prepare("SELECT s.id, s.kind, coalesce(s.thread_id, 0), s.start_ns, s.start_ns + "
                        "s.duration_ns, t.text, s.sequence_number, s.external_id FROM "
                        "compiled_slice_row s LEFT JOIN text_row t ON t.id = s.name_id WHERE "
                        "s.profile_id = ? ORDER BY 3, 4, 5 DESC, 2 DESC"));
  rows.Bind(1, profile_id_);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    Slice slice{};
    slice.id = rows.Int(0);
    slice.kind = static_cast<CompiledSliceKind>(rows.Int(1));
    slice.thread = rows.Int(2);
    slice.start = rows.Int(3);
    slice.end = rows.Int(4);
    slice.name = std::string(rows.Text(5));
    slice.sequence = rows.OptionalInt(6);
    slice.external_id = rows.OptionalInt(7);
    slice.parent = slice.call = kNone;
    if (slice.kind != kDevice && slice.external_id)
      slice_of_.emplace(*slice.external_id, static_cast<std::uint32_t>(slices_.size()));
    slices_.push_back(std::move(slice));
  }
}

Result<void> Joiner::LoadRuns(const char* sql, bool is_op) {
  ASSIGN_OR_RETURN(Statement rows, database_.Prepare(sql));
  rows.Bind(1, profile_id_);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    struct Run run {};
    run.id = rows.Int(0);
    run.name_id = static_cast<std::int32_t>(rows.Int(1));
    run.self_ns = rows.Int(4);
    run.is_op = is_op;
    run.call = run.child = kNone;
    const auto index = static_cast<std::uint32_t>(runs_.size());
    if (is_op && has_device_kernels_ && !rows.IsNull(5)) op_of_.emplace(rows.Int(5), index);
    AddItem(Item::kRun, rows.Int(2), rows.Int(3), rows.Int(3) + rows.Int(4), index);
    runs_.push_back(run);
  }
}

void Joiner::AddItem(Item::Kind kind, std::int64_t thread_id, std::int64_t start, std::int64_t end,
                     std::uint32_t index) {
  const auto thread =
      static_cast<std::uint32_t>(threads_.try_emplace(thread_id, threads_.size()).first->second);
  items_.push_back({start, end, index, thread & 0x3FFFFFFF, static_cast<std::uint32_t>(kind) & 3});
}

Result<void> Joiner::LoadItems() {
  ASSIGN_OR_RETURN(Statement any,
                   database_.Prepare("SELECT 1 FROM kernel_run_row WHERE profile_id = ? AND device "
                                     "IS NOT NULL LIMIT 1"));
  any.Bind(1, profile_id_);
  ASSIGN_OR_RETURN(has_device_kernels_, any.Step());
  // Growing step by step would take twice the memory at the end.
  ASSIGN_OR_RETURN(const std::int64_t run_count,
                   database_.QueryInt(fmt::format(
                       "SELECT (SELECT count(*) FROM op_run_row WHERE profile_id = {0}) + (SELECT "
                       "count(*) FROM kernel_run_row WHERE profile_id = {0} AND device IS NULL)",
                       profile_id_)));
  ASSIGN_OR_RETURN(
      const std::int64_t launch_count,
      database_.QueryInt(fmt::format("SELECT count(*) FROM device_launch_row WHERE profile_id = {}",
                                     profile_id_)));
  runs_.reserve(static_cast<std::size_t>(run_count));
  launches_.reserve(static_cast<std::size_t>(launch_count));
  items_.reserve(slices_.size() + static_cast<std::size_t>(run_count + launch_count));
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const Slice& slice = slices_[i];
    if (slice.kind != kDevice)
      AddItem(Item::kSlice, slice.thread, slice.start, slice.end, static_cast<std::uint32_t>(i));
  }
  RETURN_IF_ERROR(
      LoadRuns("SELECT id, name_id, coalesce(thread_id, 0), start_ns, duration_ns, "
               "external_id FROM op_run_row WHERE profile_id = ?",
               true));
  RETURN_IF_ERROR(
      LoadRuns("SELECT id, name_id, coalesce(thread_id, 0), start_ns, duration_ns, NULL "
               "FROM kernel_run_row WHERE profile_id = ? AND device IS NULL",
               false));
  ASSIGN_OR_RETURN(Statement launches,
                   database_.Prepare("SELECT correlation, coalesce(thread_id, 0), start_ns FROM "
                                     "device_launch_row WHERE profile_id = ?"));
  launches.Bind(1, profile_id_);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, launches.Step());
    if (!has_row) break;
    const auto index = static_cast<std::uint32_t>(launches_.size());
    launch_of_.emplace(launches.Int(0), index);
    launches_.push_back({launches.Int(2)});
    AddItem(Item::kLaunch, launches.Int(1), launches.Int(2), launches.Int(2), index);
  }
  ASSIGN_OR_RETURN(Statement collectives,
                   database_.Prepare("SELECT id, coalesce(thread_id, 0), start_ns FROM "
                                     "collective_run_row WHERE profile_id = ?"));
  collectives.Bind(1, profile_id_);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, collectives.Step());
    if (!has_row) break;
    const auto index = static_cast<std::uint32_t>(collectives_.size());
    collectives_.push_back({collectives.Int(0)});
    AddItem(Item::kCollective, collectives.Int(1), collectives.Int(2), collectives.Int(2), index);
  }
  std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
    const auto order = [](const Item& item) {
      return std::tuple(std::uint32_t{item.thread}, item.start, -item.end, std::uint32_t{item.kind},
                        item.index);
    };
    return order(a) < order(b);
  });
  return {};
}

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
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(slices_.size()); ++i) {
    const Slice& slice = slices_[static_cast<std::size_t>(i)];
    if (slice.kind == kFunction && slice.sequence == sequence && slice.start < before &&
        (forward == kNone || slice.start > slices_[static_cast<std::size_t>(forward)].start)) {
      forward = i;
    }
  }
  return forward == kNone ? kNone : Around(forward, kRegion);
}

void Joiner::JoinRegion(Slice& slice) {
  if (!process_id_) {
    slice.note = kNoProcess;
    return;
  }
  const auto* compiles = code_.WithLabel(*process_id_, slice.name);
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
  const auto* graphs = code_.WithKey(slice.name);
  if (graphs == nullptr) {
    slice.note = process_id_ ? kKeyUnknown : kNoProcess;
    return;
  }
  const auto index = static_cast<std::int32_t>(&slice - slices_.data());
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
  for (std::int32_t i = index - 1; i >= 0 && best.size() > 1; --i) {
    const Slice& other = slices_[static_cast<std::size_t>(i)];
    if (other.kind == kGraphCall && other.thread == slice.thread && other.parent != kNone &&
        RegionOf(i) == region && other.name == slice.name) {
      ++earlier;
    }
  }
  slice.graph = best[earlier % best.size()];
  slice.compile_id = slice.graph->compile_id;
  slice.key = "K1";
  if (!process_id_ || slice.graph->process_id != *process_id_) slice.note = kOtherProcess;
}

// Without a key: the compile of the region around it, and the direction.
void Joiner::JoinByPlace(Slice& slice) {
  const auto index = static_cast<std::int32_t>(&slice - slices_.data());
  const bool is_backward = Around(index, kBackward) != kNone;
  const std::int32_t region = RegionOf(index);
  if (region == kNone || slices_[static_cast<std::size_t>(region)].compile_id == 0) {
    slice.note = process_id_ ? kNoKey : kNoProcess;
    return;
  }
  const Slice& around = slices_[static_cast<std::size_t>(region)];
  slice.compile_id = around.compile_id;
  slice.key = is_backward ? "K3" : "K2";
  const auto* compiles = code_.WithLabel(*process_id_, around.name);
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
}

void Joiner::JoinSlices() {
  bool has_calls = false;
  for (Slice& slice : slices_) {
    has_calls |= slice.kind == kGraphCall || slice.kind == kDevice;
    if (slice.kind == kRegion) JoinRegion(slice);
  }
  for (Slice& slice : slices_) {
    if (slice.kind == kGraphCall && !slice.name.empty()) JoinByKey(slice);
    if (slice.kind == kGraphCall && slice.graph == nullptr) {
      const std::string_view note = slice.note;
      JoinByPlace(slice);
      if (slice.compile_id == 0 && !note.empty()) slice.note = note;
    }
    if (slice.kind == kFunction || slice.kind == kBackward) JoinByPlace(slice);
    if (slice.kind == kGraphCall) slice.is_call = true;
    if (slice.kind == kDevice && slice.external_id) {
      const auto found = slice_of_.find(*slice.external_id);
      if (found != slice_of_.end()) slice.call = static_cast<std::int32_t>(found->second);
    }
  }
  if (has_calls) return;
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

void Joiner::Nest() {
  struct Open {
    std::int64_t end;
    std::int32_t call, child, op;
    std::int64_t op_end;
  };
  std::vector<Open> open;
  std::optional<std::uint32_t> thread;
  for (const Item& item : items_) {
    if (item.thread != thread) open.clear();
    thread = item.thread;
    while (!open.empty() && open.back().end <= item.start &&
           !(item.start == item.end && open.back().end == item.start)) {
      open.pop_back();
    }
    Open now = open.empty() ? Open{0, kNone, kNone, kNone, 0} : open.back();
    now.end = item.end;
    if (item.kind == Item::kLaunch) {
      Launch& launch = launches_[item.index];
      launch.call = now.call;
      launch.child = now.child;
      launch.op = now.op;
      continue;
    }
    if (item.kind == Item::kCollective) {
      collectives_[item.index].call = now.call;
      continue;
    }
    const auto index = static_cast<std::int32_t>(item.index);
    if (item.kind == Item::kSlice) {
      if (slices_[item.index].is_call) now.call = index, now.child = kNone;
    } else {
      struct Run& run = runs_[item.index];
      if (now.op != kNone)
        runs_[static_cast<std::size_t>(now.op)].self_ns -=
            std::min(item.end, now.op_end) - item.start;
      // The op that stands for a slice with the same times is the call, not its child.
      const bool is_slice = run.is_op && !open.empty() && now.call != kNone &&
                            slices_[static_cast<std::size_t>(now.call)].start == item.start &&
                            slices_[static_cast<std::size_t>(now.call)].end == item.end;
      run.call = now.call;
      if (now.call != kNone && now.child == kNone && !is_slice) {
        now.child = index;
        children_[now.call].push_back(item.index);
      }
      run.child = now.child;
      now.op = index;
      now.op_end = item.end;
    }
    open.push_back(now);
  }
}

Result<void> Joiner::MatchKernels() {
  for (const auto& [call, children] : children_) {
    const Slice& slice = slices_[static_cast<std::size_t>(call)];
    if (slice.graph == nullptr || slice.graph->content_id == 0) continue;
    ASSIGN_OR_RETURN(const auto* kernels, code_.KernelsOf(database_, *slice.graph));
    std::vector<std::string_view> names, kernel_names;
    for (const std::uint32_t child : children) {
      ASSIGN_OR_RETURN(const std::string_view name, NameOf(runs_[child].name_id));
      names.push_back(name);
    }
    for (const CompiledCode::Kernel& kernel : *kernels) kernel_names.push_back(kernel.name);
    const auto in_order = MatchInOrder(names, kernel_names);
    const auto matched = in_order ? *in_order : MatchByName(names, kernel_names);
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (!matched[i]) continue;
      runs_[children[i]].kernel_id = (*kernels)[*matched[i]].id;
      runs_[children[i]].is_in_order = in_order.has_value();
    }
  }
  return {};
}

std::string_view Joiner::WhyNoKernel(std::int32_t call) const {
  if (call == kNone) return kOutside;
  const Slice& slice = slices_[static_cast<std::size_t>(call)];
  if (slice.graph == nullptr) return kCallUnknown;
  return slice.graph->content_id == 0 ? kNoKernels : kNotInCode;
}

Result<void> Joiner::WriteKernelLink(std::int64_t kernel_run_id, std::int32_t call,
                                     std::int64_t kernel_id, std::optional<std::int64_t> enqueued,
                                     std::string_view key, std::string_view note) {
  ASSIGN_OR_RETURN(
      Statement* const add,
      database_.PrepareKept("INSERT INTO kernel_run_link_row (kernel_run_id, slice_id, "
                            "kernel_id, enqueued_ns, join_key, note_id) VALUES (?, ?, "
                            "?, ?, ?, ?)"));
  const auto or_null = [](bool is_there, auto value) {
    return is_there ? std::optional(value) : std::nullopt;
  };
  ASSIGN_OR_RETURN(const std::optional<std::int64_t> note_id, Note(note));
  add->Bind(1, kernel_run_id);
  add->Bind(
      2, call == kNone ? std::nullopt : std::optional(slices_[static_cast<std::size_t>(call)].id));
  add->Bind(3, or_null(kernel_id != 0, kernel_id));
  add->Bind(4, enqueued);
  add->Bind(5, or_null(kernel_id != 0, key));
  add->Bind(6, note_id);
  return add->Run();
}

Result<void> Joiner::JoinDeviceKernels() {
  ASSIGN_OR_RETURN(
      Statement rows,
      database_.Prepare("SELECT id, name_id, start_ns, duration_ns, correlation, external_id FROM "
                        "kernel_run_row WHERE profile_id = ? AND device IS NOT NULL ORDER BY id"));
  rows.Bind(1, profile_id_);
  std::map<std::int32_t, std::vector<DeviceKernel>> replayed;  // by call
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    const DeviceKernel kernel{rows.Int(0), rows.Int(1),         rows.Int(2),
                              rows.Int(3), rows.OptionalInt(4), rows.OptionalInt(5)};
    std::int32_t call = kNone, child = kNone, op = kNone;
    std::optional<std::int64_t> enqueued;
    bool has_launch = false;
    if (const auto found =
            kernel.correlation ? launch_of_.find(*kernel.correlation) : launch_of_.end();
        found != launch_of_.end()) {
      const Launch& launch = launches_[found->second];
      call = launch.call, child = launch.child, op = launch.op;
      enqueued = launch.start;
      has_launch = true;
    }
    if (op == kNone && kernel.external_id) {
      if (const auto found = op_of_.find(*kernel.external_id); found != op_of_.end()) {
        op = static_cast<std::int32_t>(found->second);
        call = runs_[found->second].call, child = runs_[found->second].child;
        has_launch = true;
      } else if (const auto around = slice_of_.find(*kernel.external_id);
                 around != slice_of_.end()) {
        const auto index = static_cast<std::int32_t>(around->second);
        if (call == kNone && slices_[around->second].is_call) call = index;
        has_launch = true;
      }
    }
    if (op != kNone) {
      runs_[static_cast<std::size_t>(op)].device_ns += kernel.duration;
      runs_[static_cast<std::size_t>(op)].has_device_work = true;
    }
    if (child != kNone) runs_[static_cast<std::size_t>(child)].has_device_work = true;
    if (call != kNone) slices_[static_cast<std::size_t>(call)].device_ns += kernel.duration;
    if (call != kNone && child == kNone) {
      replayed[call].push_back(kernel);
      continue;
    }
    const struct Run* const launched_by =
        child == kNone ? nullptr : &runs_[static_cast<std::size_t>(child)];
    const bool is_joined = launched_by != nullptr && launched_by->kernel_id != 0;
    const std::string_view note = is_joined    ? std::string_view()
                                  : has_launch ? WhyNoKernel(call)
                                               : kLaunchUnknown;
    RETURN_IF_ERROR(WriteKernelLink(kernel.id, call, is_joined ? launched_by->kernel_id : 0,
                                    enqueued, is_joined ? KeyOf(*launched_by) : std::string_view(),
                                    note));
  }
  for (auto& [call, kernels] : replayed) {
    std::sort(kernels.begin(), kernels.end(),
              [](const DeviceKernel& a, const DeviceKernel& b) { return a.start < b.start; });
    const Slice& slice = slices_[static_cast<std::size_t>(call)];
    std::vector<std::string_view> names, code_names;
    const std::vector<CompiledCode::Kernel>* code_kernels = nullptr;
    if (slice.graph != nullptr && slice.graph->content_id != 0) {
      ASSIGN_OR_RETURN(code_kernels, code_.KernelsOf(database_, *slice.graph));
      for (const CompiledCode::Kernel& kernel : *code_kernels) code_names.push_back(kernel.name);
    }
    for (const DeviceKernel& kernel : kernels) {
      ASSIGN_OR_RETURN(const std::string_view name, NameOf(kernel.name_id));
      names.push_back(name);
    }
    const auto matched = MatchReplay(names, code_names);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      RETURN_IF_ERROR(
          WriteKernelLink(kernels[i].id, call, matched[i] ? (*code_kernels)[*matched[i]].id : 0,
                          std::nullopt, "K4", matched[i] ? kReplayed : WhyNoKernel(call)));
    }
  }
  return {};
}

Result<void> Joiner::WriteSlices() {
  ASSIGN_OR_RETURN(Statement add,
                   database_.Prepare("INSERT INTO compiled_slice_link_row (slice_id, is_call, "
                                     "call_id, compile_id, graph_id, device_ns, join_key, note_id) "
                                     "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  std::vector<const Slice*> in_order;
  for (const Slice& slice : slices_) in_order.push_back(&slice);
  std::sort(in_order.begin(), in_order.end(),
            [](const Slice* a, const Slice* b) { return a->id < b->id; });
  for (const Slice* slice : in_order) {
    const auto or_null = [](std::int64_t id) { return id == 0 ? std::nullopt : std::optional(id); };
    ASSIGN_OR_RETURN(const std::optional<std::int64_t> note_id, Note(slice->note));
    add.Bind(1, slice->id);
    add.Bind(2, std::int64_t{slice->is_call});
    add.Bind(3, slice->call == kNone
                    ? std::nullopt
                    : std::optional(slices_[static_cast<std::size_t>(slice->call)].id));
    add.Bind(4, or_null(slice->compile_id));
    add.Bind(5, slice->graph == nullptr ? std::nullopt : std::optional(slice->graph->id));
    add.Bind(6, or_null(slice->device_ns));
    add.Bind(7, slice->key.empty() ? std::nullopt : std::optional(slice->key));
    add.Bind(8, note_id);
    RETURN_IF_ERROR(add.Run());
  }
  return {};
}

Result<void> Joiner::WriteRuns() {
  ASSIGN_OR_RETURN(Statement add_op,
                   database_.Prepare("INSERT INTO op_run_link_row (op_run_id, slice_id, self_ns, "
                                     "device_ns) VALUES (?, ?, ?, ?)"));
  // An op that ran as a kernel of the graph, on the CPU, is a run of that kernel.
  ASSIGN_OR_RETURN(
      Statement add_kernel,
      database_.Prepare(
          "INSERT INTO kernel_run_row (profile_id, name_id, thread_id, start_ns, "
          "duration_ns, external_id, op_run_id) SELECT profile_id, name_id, thread_id, "
          "start_ns, duration_ns, external_id, id FROM op_run_row WHERE id = ?"));
  for (const struct Run& run : runs_) {
    const std::string_view note = run.kernel_id != 0 ? std::string_view() : WhyNoKernel(run.call);
    if (!run.is_op) {
      RETURN_IF_ERROR(
          WriteKernelLink(run.id, run.call, run.kernel_id, std::nullopt, KeyOf(run), note));
      continue;
    }
    add_op.Bind(1, run.id);
    add_op.Bind(2, run.call == kNone
                       ? std::nullopt
                       : std::optional(slices_[static_cast<std::size_t>(run.call)].id));
    add_op.Bind(3, std::max<std::int64_t>(run.self_ns, 0));
    add_op.Bind(
        4, run.has_device_work && run.device_ns > 0 ? std::optional(run.device_ns) : std::nullopt);
    RETURN_IF_ERROR(add_op.Run());
    if (run.kernel_id == 0 || run.has_device_work) continue;
    add_kernel.Bind(1, run.id);
    RETURN_IF_ERROR(add_kernel.Run());
    RETURN_IF_ERROR(WriteKernelLink(sqlite3_last_insert_rowid(database_.handle()), run.call,
                                    run.kernel_id, std::nullopt, KeyOf(run), {}));
  }
  return {};
}

Result<void> Joiner::WriteCollectives() {
  ASSIGN_OR_RETURN(Statement add,
                   database_.Prepare("INSERT INTO collective_run_link_row (collective_run_id, "
                                     "slice_id, graph_id, join_key, note_id) VALUES (?, ?, ?, ?, "
                                     "?)"));
  for (const Collective& collective : collectives_) {
    const Slice* const slice =
        collective.call == kNone ? nullptr : &slices_[static_cast<std::size_t>(collective.call)];
    const CompiledCode::Graph* const graph = slice == nullptr ? nullptr : slice->graph;
    const std::string_view note = graph != nullptr       ? std::string_view()
                                  : slice == nullptr     ? kOutside
                                  : !slice->note.empty() ? slice->note
                                                         : kCallUnknown;
    ASSIGN_OR_RETURN(const std::optional<std::int64_t> note_id, Note(note));
    add.Bind(1, collective.id);
    add.Bind(2, slice == nullptr ? std::nullopt : std::optional(slice->id));
    add.Bind(3, graph == nullptr ? std::nullopt : std::optional(graph->id));
    add.Bind(4, graph == nullptr ? std::nullopt : std::optional(slice->key));
    add.Bind(5, note_id);
    RETURN_IF_ERROR(add.Run());
  }
  return {};
}

}  // namespace

Result<void> JoinProfile(Database& database, CompiledCode& code, std::int64_t profile_id,
                         std::optional<std::int64_t> process_id) {
  return Joiner(database, code, profile_id, process_id).Run();
}

}  // namespace tlparse

// Kineto/Chrome profiles: torch.profiler of 1.8 to 2.14, on CPUs and GPUs. Shapes and traps: the
// header of schemas/sql/runtime/profile.sql says what becomes of what.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <unordered_map>

#include "base/ascii.h"
#include "rows/profile.h"
#include "runtime/event_scanner.h"
#include "runtime/generated_code.h"
#include "runtime/kineto_event.h"
#include "runtime/reader.h"

namespace tlparse {
namespace {

using enum CompiledSliceKind;

std::optional<std::string_view> Between(std::string_view text, std::string_view before,
                                        std::string_view after) {
  if (!text.starts_with(before) || !text.ends_with(after) ||
      text.size() < before.size() + after.size()) {
    return std::nullopt;
  }
  return text.substr(before.size(), text.size() - before.size() - after.size());
}

std::optional<std::string_view> GraphCallKey(std::string_view name) {
  return Between(name, "## Call CompiledFxGraph ", " ##");
}

std::optional<std::int64_t> ToInt(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y;
         });
}

// So that no sum of a base, a time and a duration, nor of many durations, leaves 64 bits.
bool IsInRange(std::int64_t start_ns, std::int64_t duration_ns) {
  constexpr std::int64_t kLatest = std::int64_t{1} << 61;
  constexpr std::int64_t kLongest = std::int64_t{1} << 48;  // three days
  return start_ns <= kLatest && start_ns >= -kLatest && duration_ns >= 0 && duration_ns <= kLongest;
}

// Whether a call of the device's runtime may queue work on the device.
bool Queues(std::string_view name) {
  for (const std::string_view word : {"Launch", "Memcpy", "Memset", "launch", "memcpy", "memset"}) {
    if (name.find(word) != name.npos) return true;
  }
  return false;
}

bool IsCollectiveOp(std::string_view name) {
  if (name.starts_with("c10d::")) return name != "c10d::monitored_barrier_";
  return (name.starts_with("_c10d_functional::") || name.starts_with("c10d_functional::")) &&
         name.find("wait_tensor") == name.npos;
}

class KinetoReader final : public RuntimeReader {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<ProfileThreadRow>();
    tables.Use<CompiledSliceRow>();
    tables.Use<KernelRunRow>();
    tables.Use<DeviceCopyRow>();
    tables.Use<DeviceLaunchRow>();
    tables.Use<OpRunRow>();
    tables.Use<AnnotationRow>();
    tables.Use<PythonFrameRow>();
    tables.Use<CollectiveRunRow>();
  }

  Result<bool> Read(RuntimeContext& context) override;
};

// One file being read.
class KinetoFile {
 public:
  explicit KinetoFile(RuntimeContext& context) : context_(context) {}
  Result<bool> Read();

 private:
  struct Thread {
    std::int64_t id = 0;
    std::string pid, tid, name;
  };
  // A collective without a group or number; it counts if the file has none with them.
  struct CollectiveOp {
    std::int64_t start_ns, end_ns;
    std::optional<std::int64_t> thread_id;
    TextId op_id;
    std::string shapes, dtype;
  };

  Result<void> Take(const EventScanner::Item& item);
  void TakeEvent(const EventScanner::Item& item);
  void TakeMember(const EventScanner::Item& item);
  void TakeSlice(const KinetoEvent& event, const EventScanner::Item& item);
  void TakeCpuSlice(const KinetoEvent& event, bool is_annotation);
  void TakeOp(const KinetoEvent& event);
  void TakeDeviceSlice(const KinetoEvent& event, bool is_kernel);
  void TakeDeviceAnnotation(const KinetoEvent& event);
  void TakeLaunch(const KinetoEvent& event);
  void TakeFrame(const KinetoEvent& event);
  void TakeMetadata(const KinetoEvent& event);
  void TakeCollective(const KinetoEvent& event);
  void AddCompiledSlice(const KinetoEvent& event, CompiledSliceKind kind, std::string_view name);
  void AddAnnotation(const KinetoEvent& event, std::optional<std::int64_t> device,
                     std::optional<std::int64_t> stream);
  // A Python frame that is not kept, recognised in its text without parsing it.
  bool IsUnkeptFrame(std::string_view event) const;
  // The profile measured from its first slice to the end of its last, kept or not.
  void Measured(std::int64_t start_ns, std::int64_t duration_ns);
  void MeasuredUnkept(std::string_view event);
  void BadEvent(const EventScanner::Item& item, std::string_view problem);
  void Kept() { ++context_.facts().kept_count; }
  void Count(std::map<std::string, std::int64_t>& counts, std::string_view what);
  std::optional<std::int64_t> ThreadId(const KinetoEvent& event);
  Thread* FindThread(std::string_view pid, std::string_view tid);
  Result<void> AddThreadRows();
  Result<void> AddCollectiveOps();
  Result<void> ShiftTimes();
  void Report();
  RowBatch& rows() { return context_.rows(); }

  // On the file's clock, and the base once it is known.
  std::int64_t Start(const KinetoEvent& event) {
    if (!base_ns_) has_rows_without_base_ = true;
    return *event.start_ns + base_ns_.value_or(0);
  }

  RuntimeContext& context_;
  KinetoEventParser parser_;
  KinetoEvent event_;
  std::optional<std::int64_t> base_ns_;
  bool has_rows_without_base_ = false;
  bool has_schema_version_ = false;
  bool is_cut_ = false;
  bool has_profile_events_ = false;  // cpu_op or kernel
  bool has_named_collectives_ = false;
  bool has_events_ = false;
  std::int64_t bad_count_ = 0;
  std::map<std::string, std::int64_t> left_out_;
  std::map<std::string, std::int64_t> unknown_;
  std::unordered_map<std::string, Thread> threads_;
  Thread* latest_thread_ = nullptr;
  std::vector<CollectiveOp> collective_ops_;
  std::string metadata_;  // members of a JSON object, without its braces
};

Result<bool> KinetoReader::Read(RuntimeContext& context) { return KinetoFile(context).Read(); }

Result<bool> KinetoFile::Read() {
  ProfileFacts& facts = context_.facts();
  facts.kind = "kineto";
  EventScanner scanner(
      [this](char* buffer, std::size_t capacity) { return context_.Read(buffer, capacity); });
  while (true) {
    ASSIGN_OR_RETURN(const EventScanner::Item item, scanner.Next());
    if (item.kind == EventScanner::Item::Kind::kEnd) break;
    RETURN_IF_ERROR(Take(item));
  }
  // A profile that is cut may end before its events begin.
  const bool has_version = has_schema_version_ && (scanner.has_list() || is_cut_);
  if (!has_profile_events_ && !has_version) {
    facts.kind = has_events_ ? "a Chrome trace, but no profile: it has neither schemaVersion nor "
                               "events of category cpu_op or kernel"
                             : "JSON without events of a profile";
    return false;
  }
  RETURN_IF_ERROR(AddThreadRows());
  RETURN_IF_ERROR(AddCollectiveOps());
  RETURN_IF_ERROR(ShiftTimes());
  if (!metadata_.empty()) {
    facts.metadata = "{" + metadata_ + "}";
    simdjson::dom::parser parser;
    if (parser.parse(facts.metadata).error() != simdjson::SUCCESS) facts.metadata.clear();
  }
  Report();
  return true;
}

Result<void> KinetoFile::Take(const EventScanner::Item& item) {
  using Kind = EventScanner::Item::Kind;
  ImportPlace place;
  place.byte_offset = item.byte_offset;
  switch (item.kind) {
    case Kind::kEvent:
      TakeEvent(item);
      break;
    case Kind::kMember:
      TakeMember(item);
      break;
    case Kind::kTooLarge:
      context_.Log(ImportCode::kProfileEventTooLarge, "an event or member was left out", place);
      break;
    case Kind::kCut:
      is_cut_ = true;
      context_.Log(ImportCode::kCutProfile,
                   fmt::format("the file ends after {} events", context_.facts().event_count),
                   place, item.value);
      break;
    case Kind::kDamaged:
      context_.Log(ImportCode::kBadProfileEvent,
                   "what follows is no JSON; the rest of the file was not read", place, item.value);
      break;
    case Kind::kEnd:
      break;
  }
  return context_.Flush();
}

void KinetoFile::Count(std::map<std::string, std::int64_t>& counts, std::string_view what) {
  constexpr std::size_t kMostNames = 100;
  constexpr std::size_t kLongestName = 60;
  std::string name(what.substr(0, kLongestName));
  if (counts.size() >= kMostNames && !counts.contains(name)) name = "others";
  ++counts[name];
}

void KinetoFile::BadEvent(const EventScanner::Item& item, std::string_view problem) {
  constexpr std::int64_t kMostShown = 20;
  if (++bad_count_ > kMostShown) return;
  ImportPlace place;
  place.byte_offset = item.byte_offset;
  context_.Log(ImportCode::kBadProfileEvent, fmt::format("an event was left out: {}", problem),
               place, item.value);
}

bool KinetoFile::IsUnkeptFrame(std::string_view event) const {
  constexpr std::size_t kHead = 160;
  if (event.substr(0, kHead).find("\"python_function\"") == event.npos) return false;
  if (context_.options().keep_python_frames) return false;
  // …/ab/cab<49 characters>.py:<line>
  const std::size_t key = event.find("\"CallFrom\"");
  if (key == event.npos) return true;
  const std::size_t begin = event.find('"', key + 10);
  if (begin == event.npos) return true;
  const std::size_t end = event.find('"', begin + 1);
  return end == event.npos || !IsCachePath(event.substr(begin + 1, end - begin - 1));
}

void KinetoFile::Measured(std::int64_t start_ns, std::int64_t duration_ns) {
  ProfileFacts& facts = context_.facts();
  const std::int64_t end_ns = start_ns + duration_ns;
  if (!facts.start_ns || start_ns < *facts.start_ns) facts.start_ns = start_ns;
  if (!facts.end_ns || end_ns > *facts.end_ns) facts.end_ns = end_ns;
}

void KinetoFile::MeasuredUnkept(std::string_view event) {
  const auto number = [&](std::string_view key) -> std::optional<std::int64_t> {
    std::size_t at = event.find(key);
    if (at == event.npos) return std::nullopt;
    at = event.find_first_not_of(" \t\r\n", at + key.size());
    const std::size_t end = event.find_first_of(",}\r\n", at);
    return at == event.npos || end == event.npos ? std::nullopt
                                                 : ParseMicroseconds(event.substr(at, end - at));
  };
  const std::optional<std::int64_t> start_ns = number("\"ts\":"), duration_ns = number("\"dur\":");
  if (start_ns && IsInRange(*start_ns, duration_ns.value_or(0)))
    Measured(*start_ns, duration_ns.value_or(0));
}

void KinetoFile::TakeEvent(const EventScanner::Item& item) {
  ++context_.facts().event_count;
  has_events_ = true;
  if (IsUnkeptFrame(item.value)) {
    MeasuredUnkept(item.value);
    return Count(left_out_, "python_function");
  }
  if (Result<void> parsed = parser_.Parse(item.value, event_); !parsed)
    return BadEvent(item, parsed.error().message);
  switch (event_.phase) {
    case 'X':
      return TakeSlice(event_, item);
    case 'M':
      return TakeMetadata(event_);
    case '\0':
      return BadEvent(item, "it has no phase (ph)");
    default:
      return Count(left_out_, event_.category.empty() ? "instants" : event_.category);
  }
}

void KinetoFile::TakeMember(const EventScanner::Item& item) {
  ProfileFacts& facts = context_.facts();
  if (item.key == "schemaVersion") {
    has_schema_version_ = true;
    facts.format_version = std::string(item.value.substr(0, 20));
  } else if (item.key == "baseTimeNanoseconds") {
    constexpr std::int64_t kLatest = std::int64_t{1} << 61;
    base_ns_ = ToInt(item.value);
    if (base_ns_ && (*base_ns_ > kLatest || *base_ns_ < 0)) base_ns_.reset();
  } else if (item.key == "host_name" && item.value.size() > 2) {
    facts.host = std::string(item.value.substr(1, item.value.size() - 2));
  }
  if (item.key == "distributedInfo") {
    simdjson::dom::parser parser;
    simdjson::dom::element root;
    if (parser.parse(item.value.data(), item.value.size()).get(root) == simdjson::SUCCESS) {
      std::int64_t number = 0;
      if (root["rank"].get(number) == simdjson::SUCCESS) facts.rank = number;
      if (root["world_size"].get(number) == simdjson::SUCCESS) facts.world_size = number;
    }
  }
  constexpr std::size_t kLongestValue = 16 << 10;
  constexpr std::size_t kMostMetadata = 64 << 10;
  if (item.value.size() > kLongestValue || metadata_.size() > kMostMetadata) return;
  metadata_ += fmt::format("{}\"{}\": {}", metadata_.empty() ? "" : ", ", item.key, item.value);
}

void KinetoFile::TakeSlice(const KinetoEvent& event, const EventScanner::Item& item) {
  const std::string_view category = event.category;
  if (!event.start_ns || event.name.data() == nullptr)
    return BadEvent(item, "it has no time or name");
  if (!IsInRange(*event.start_ns, event.duration_ns.value_or(0)))
    return BadEvent(item, "its time is out of range");
  Measured(*event.start_ns, event.duration_ns.value_or(0));
  if (category == "cpu_op" || EqualsIgnoringCase(category, "operator")) {
    has_profile_events_ = true;
    return TakeCpuSlice(event, false);
  }
  if (category == "user_annotation") return TakeCpuSlice(event, true);
  if (EqualsIgnoringCase(category, "kernel")) {
    has_profile_events_ = true;
    return TakeDeviceSlice(event, true);
  }
  if (EqualsIgnoringCase(category, "gpu_memcpy") || EqualsIgnoringCase(category, "gpu_memset") ||
      EqualsIgnoringCase(category, "memcpy") || EqualsIgnoringCase(category, "memset")) {
    return TakeDeviceSlice(event, false);
  }
  if (category == "gpu_user_annotation") return TakeDeviceAnnotation(event);
  if (EqualsIgnoringCase(category, "cuda_runtime") || category == "cuda_driver" ||
      EqualsIgnoringCase(category, "runtime") || category == "xpu_runtime" ||
      category == "privateuse1_runtime") {
    return TakeLaunch(event);
  }
  if (category == "python_function") return TakeFrame(event);
  if (category == "overhead" || category == "cuda_sync" || category == "Trace" ||
      category == "python" || category == "gpu_sync") {
    return Count(left_out_, category);
  }
  Count(unknown_, category.empty() ? "(none)" : category);
}

std::optional<std::int64_t> KinetoFile::ThreadId(const KinetoEvent& event) {
  Thread* const thread = FindThread(event.pid, event.tid);
  return thread == nullptr ? std::nullopt : std::optional(thread->id);
}

KinetoFile::Thread* KinetoFile::FindThread(std::string_view pid, std::string_view tid) {
  if (latest_thread_ != nullptr && latest_thread_->tid == tid && latest_thread_->pid == pid)
    return latest_thread_;
  constexpr std::size_t kMostThreads = 100'000;
  std::string key = fmt::format("{}/{}", pid, tid);
  auto found = threads_.find(key);
  if (found == threads_.end()) {
    if (threads_.size() >= kMostThreads) return nullptr;
    found =
        threads_
            .emplace(
                std::move(key),
                Thread{context_.NextId<ProfileThreadRow>(), std::string(pid), std::string(tid), {}})
            .first;
  }
  latest_thread_ = &found->second;
  return latest_thread_;
}

void KinetoFile::AddCompiledSlice(const KinetoEvent& event, CompiledSliceKind kind,
                                  std::string_view name) {
  const bool is_device = kind == kDevice;
  rows().Add(CompiledSliceRow{
      .id = context_.NextId<CompiledSliceRow>(),
      .profile_id = context_.profile_id(),
      .kind = kind,
      .name_id = name.empty() || name == "None" ? std::nullopt : context_.OptionalText(name),
      .thread_id = is_device ? std::nullopt : ThreadId(event),
      .device = is_device ? ToInt(event.pid) : std::nullopt,
      .stream = is_device ? ToInt(event.tid) : std::nullopt,
      .start_ns = Start(event),
      .duration_ns = event.duration_ns.value_or(0),
      .sequence_number = event.sequence_number,
      .external_id = event.external_id});
  Kept();
}

void KinetoFile::AddAnnotation(const KinetoEvent& event, std::optional<std::int64_t> device,
                               std::optional<std::int64_t> stream) {
  std::optional<std::int64_t> step;
  if (event.name.starts_with("ProfilerStep#")) step = ToInt(event.name.substr(13));
  rows().Add(AnnotationRow{.id = context_.NextId<AnnotationRow>(),
                           .profile_id = context_.profile_id(),
                           .name_id = context_.Text(event.name),
                           .thread_id = device ? std::nullopt : ThreadId(event),
                           .device = device,
                           .stream = stream,
                           .start_ns = Start(event),
                           .duration_ns = event.duration_ns.value_or(0),
                           .step = step});
  Kept();
}

void KinetoFile::TakeCpuSlice(const KinetoEvent& event, bool is_annotation) {
  ProfileFacts& facts = context_.facts();
  if (!facts.pid && !is_annotation) facts.pid = ToInt(event.pid);
  const std::string_view name = event.name;
  if (const auto key = GraphCallKey(name)) return AddCompiledSlice(event, kGraphCall, *key);
  if (const auto label = Between(name, "Torch-Compiled Region: ", ""))
    return AddCompiledSlice(event, kRegion, *label);
  if (is_annotation) return AddAnnotation(event, std::nullopt, std::nullopt);
  if (name == "CompiledFunction") AddCompiledSlice(event, kFunction, {});
  if (name == "CompiledFunctionBackward") AddCompiledSlice(event, kBackward, {});
  if (IsWrapperCall(name)) return AddCompiledSlice(event, kWrapper, name);
  if (CpuKernelName(name)) {
    rows().Add(KernelRunRow{.id = context_.NextId<KernelRunRow>(),
                            .profile_id = context_.profile_id(),
                            .name_id = context_.Text(name),
                            .thread_id = ThreadId(event),
                            .start_ns = Start(event),
                            .duration_ns = event.duration_ns.value_or(0),
                            .external_id = event.external_id});
    return Kept();
  }
  TakeOp(event);
}

void KinetoFile::TakeOp(const KinetoEvent& event) {
  rows().Add(OpRunRow{.id = context_.NextId<OpRunRow>(),
                      .profile_id = context_.profile_id(),
                      .name_id = context_.Text(event.name),
                      .thread_id = ThreadId(event),
                      .start_ns = Start(event),
                      .duration_ns = event.duration_ns.value_or(0),
                      .external_id = event.external_id,
                      .sequence_number = event.sequence_number,
                      .shapes_id = context_.OptionalText(event.shapes),
                      .file_id = context_.OptionalText(event.kernel_file)});
  Kept();
  if (event.name == "record_param_comms" ? !event.collective.empty() : IsCollectiveOp(event.name))
    TakeCollective(event);
}

// record_param_comms says what, in which group, and which one; the c10d op around it (and all there
// is with Gloo) says when only.
void KinetoFile::TakeCollective(const KinetoEvent& event) {
  const std::int64_t start_ns = Start(event);
  const std::int64_t end_ns = start_ns + event.duration_ns.value_or(0);
  if (event.collective.empty()) {
    constexpr std::size_t kMostOps = 100'000;
    if (collective_ops_.size() >= kMostOps) return Count(left_out_, "collectives without a group");
    collective_ops_.push_back({start_ns, end_ns, ThreadId(event), context_.Text(event.name),
                               std::string(event.shapes), std::string(event.dtype)});
    return;
  }
  if (event.collective == "wait" || event.collective == "init") return;
  has_named_collectives_ = true;
  const bool is_p2p = event.collective.starts_with("send") || event.collective.starts_with("recv");
  const auto elements = [](std::optional<std::int64_t> count) {
    return count ? fmt::format("[[{}]]", *count) : std::string();
  };
  const std::string in = elements(event.in_elements);
  const std::string out = elements(event.out_elements);
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<RowText>(text);
  };
  rows().Add(CollectiveRunRow{.id = context_.NextId<CollectiveRunRow>(),
                              .profile_id = context_.profile_id(),
                              .thread_id = ThreadId(event),
                              .op_id = context_.OptionalText(event.collective),
                              .group_id = context_.OptionalText(event.group_name),
                              .group_size = event.group_size,
                              .sequence_number = event.sequence_in_group,
                              .is_p2p = is_p2p ? 1 : 0,
                              .input_shapes = text_or_null(in),
                              .output_shapes = text_or_null(out),
                              .dtype_id = context_.OptionalText(event.dtype),
                              .start_ns = start_ns});
}

void KinetoFile::TakeDeviceSlice(const KinetoEvent& event, bool is_kernel) {
  const std::optional<std::int64_t> device = event.device ? event.device : ToInt(event.pid);
  const std::optional<std::int64_t> stream = event.stream ? event.stream : ToInt(event.tid);
  const std::int64_t duration_ns = event.duration_ns.value_or(0);
  if (is_kernel) {
    rows().Add(KernelRunRow{.id = context_.NextId<KernelRunRow>(),
                            .profile_id = context_.profile_id(),
                            .name_id = context_.Text(event.name),
                            .device = device.value_or(-1),
                            .stream = stream,
                            .start_ns = Start(event),
                            .duration_ns = duration_ns,
                            .correlation = event.correlation,
                            .external_id = event.external_id,
                            .grid_id = context_.OptionalText(event.grid),
                            .block_id = context_.OptionalText(event.block)});
  } else {
    const bool is_set = event.category.find("emset") != event.category.npos;
    rows().Add(DeviceCopyRow{.id = context_.NextId<DeviceCopyRow>(),
                             .profile_id = context_.profile_id(),
                             .kind = StaticText{is_set ? "memset" : "memcpy"},
                             .name_id = context_.Text(event.name),
                             .device = device,
                             .stream = stream,
                             .start_ns = Start(event),
                             .duration_ns = duration_ns,
                             .size_bytes = event.size_bytes,
                             .correlation = event.correlation,
                             .external_id = event.external_id});
  }
  Kept();
}

void KinetoFile::TakeDeviceAnnotation(const KinetoEvent& event) {
  if (const auto key = GraphCallKey(event.name)) return AddCompiledSlice(event, kDevice, *key);
  AddAnnotation(event, ToInt(event.pid).value_or(-1), ToInt(event.tid));
}

void KinetoFile::TakeLaunch(const KinetoEvent& event) {
  if (!event.correlation || !Queues(event.name)) return Count(left_out_, event.category);
  rows().Add(DeviceLaunchRow{.id = context_.NextId<DeviceLaunchRow>(),
                             .profile_id = context_.profile_id(),
                             .name_id = context_.Text(event.name),
                             .thread_id = ThreadId(event),
                             .start_ns = Start(event),
                             .duration_ns = event.duration_ns.value_or(0),
                             .correlation = *event.correlation});
  Kept();
}

void KinetoFile::TakeFrame(const KinetoEvent& event) {
  const std::size_t colon = event.called_from.rfind(':');
  std::optional<std::int64_t> line;
  std::string_view file;
  if (colon != event.called_from.npos) {
    line = ToInt(event.called_from.substr(colon + 1));
    if (line) file = event.called_from.substr(0, colon);
  }
  if (!context_.options().keep_python_frames && !IsCachePath(file))
    return Count(left_out_, "python_function");
  rows().Add(PythonFrameRow{.id = context_.NextId<PythonFrameRow>(),
                            .profile_id = context_.profile_id(),
                            .name_id = context_.Text(event.name),
                            .thread_id = ThreadId(event),
                            .start_ns = Start(event),
                            .duration_ns = event.duration_ns.value_or(0),
                            .file_id = context_.OptionalText(file),
                            .line = line});
  Kept();
}

void KinetoFile::TakeMetadata(const KinetoEvent& event) {
  if (event.name != "thread_name") return Count(left_out_, "metadata");
  Thread* const thread = FindThread(event.pid, event.tid);
  if (thread != nullptr) thread->name = std::string(event.metadata_name);
}

Result<void> KinetoFile::AddThreadRows() {
  for (const auto& [key, thread] : threads_) {
    RETURN_IF_ERROR(context_.Flush());
    rows().Add(ProfileThreadRow{
        .id = thread.id,
        .profile_id = context_.profile_id(),
        .pid = thread.pid,
        .tid = thread.tid,
        .name = thread.name.empty() ? std::nullopt : std::optional<RowText>(thread.name)});
  }
  return {};
}

Result<void> KinetoFile::AddCollectiveOps() {
  if (has_named_collectives_) return {};
  for (const CollectiveOp& op : collective_ops_) {
    RETURN_IF_ERROR(context_.Flush());
    rows().Add(CollectiveRunRow{
        .id = context_.NextId<CollectiveRunRow>(),
        .profile_id = context_.profile_id(),
        .thread_id = op.thread_id,
        .op_id = op.op_id,
        .is_p2p = 0,
        .input_shapes = op.shapes.empty() ? std::nullopt : std::optional<RowText>(op.shapes),
        .dtype_id = context_.OptionalText(op.dtype),
        .start_ns = op.start_ns,
        .end_ns = op.end_ns});
  }
  return {};
}

// The file said what its times count from after its events, or not at all.
Result<void> KinetoFile::ShiftTimes() {
  ProfileFacts& facts = context_.facts();
  const std::int64_t base_ns = base_ns_.value_or(0);
  if (facts.start_ns) *facts.start_ns += base_ns;
  if (facts.end_ns) *facts.end_ns += base_ns;
  if (!base_ns_ && facts.start_ns)
    context_.Log(ImportCode::kAssumedClock, "the profile has no baseTimeNanoseconds", {});
  if (!has_rows_without_base_ || base_ns == 0) return {};
  RETURN_IF_ERROR(context_.Write());
  for (const std::string_view table :
       {"compiled_slice_row", "kernel_run_row", "device_copy_row", "device_launch_row",
        "op_run_row", "annotation_row", "python_frame_row", "collective_run_row"}) {
    RETURN_IF_ERROR(context_.database().Execute(fmt::format(
        "UPDATE {} SET start_ns = start_ns + {}{} WHERE profile_id = {}", table, base_ns,
        table == "collective_run_row" ? fmt::format(", end_ns = end_ns + {}", base_ns)
                                      : std::string(),
        context_.profile_id())));
  }
  return {};
}

void KinetoFile::Report() {
  if (bad_count_ > 0) {
    context_.Log(ImportCode::kBadProfileEvent,
                 fmt::format("{} events were left out in all", bad_count_), {});
  }
  for (const auto& [what, count] : unknown_) {
    context_.Log(ImportCode::kUnknownProfileEvent,
                 fmt::format("{} events of category '{}'", count, what), {});
  }
  for (const auto& [what, count] : left_out_) {
    context_.Log(ImportCode::kProfileEventsLeftOut, fmt::format("{} events: {}", count, what), {});
  }
}

}  // namespace

std::unique_ptr<RuntimeReader> MakeKinetoReader() { return std::make_unique<KinetoReader>(); }

}  // namespace tlparse

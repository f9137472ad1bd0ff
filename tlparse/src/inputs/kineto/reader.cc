// Kineto/Chrome profiles: torch.profiler of 1.8 to 2.14, on CPUs and GPUs. Shapes and traps: the
// header of schemas/sql/inputs/profile.sql says what becomes of what.
#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "artifacts/common/text/python_traceback.h"
#include "base/json_string.h"
#include "base/plural.h"
#include "inputs/common/generated_code.h"
#include "inputs/join/module_join.h"
#include "inputs/kineto/file.h"
#include "rows/memory.h"
#include "rows/profile.h"

namespace tlparse {
namespace kineto {

std::optional<std::int64_t> ToInt(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<bool> KinetoFile::Read() {
  ProfileFacts& facts = context_.facts();
  facts.kind = "kineto";
  EventScanner scanner(
      [this](char* buffer, std::size_t capacity) { return context_.Read(buffer, capacity); });
  while (true) {
    ASSIGN_OR_RETURN(const EventScanner::Item item, scanner.Next());
    if (item.kind == EventScanner::Item::Kind::kEnd) break;
    RETURN_IF_ERROR(Take(item, scanner));
    if (!is_own_timeline_) continue;
    facts.kind = "a timeline that tlparse wrote";
    return false;
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
  RETURN_IF_ERROR(AddCollectiveEnds());
  RETURN_IF_ERROR(ShiftTimes());
  RETURN_IF_ERROR(AddMemory());
  if (has_metadata_) {
    facts.metadata = metadata_.EndObject().Take();
    simdjson::dom::parser parser;
    if (parser.parse(facts.metadata).error() != simdjson::SUCCESS) facts.metadata.clear();
  }
  Report();
  return true;
}

Result<void> KinetoFile::Take(const EventScanner::Item& item, EventScanner& scanner) {
  using Kind = EventScanner::Item::Kind;
  ImportPlace place;
  place.byte_offset = item.byte_offset;
  switch (item.kind) {
    case Kind::kEvent:
      TakeEvent(item);
      if (!is_event_text_) {
        // At the end of the events the next item is the end.
        ASSIGN_OR_RETURN([[maybe_unused]] const bool can_continue, scanner.Recover());
      }
      break;
    case Kind::kMember:
      TakeMember(item);
      break;
    case Kind::kTooLarge:
      context_.Log(ImportCode::kProfileEventTooLarge, "an event or member was left out", place);
      break;
    case Kind::kCut:
    case Kind::kDamaged:
      RETURN_IF_ERROR(TakeDamage(item, scanner));
      break;
    case Kind::kEnd:
      break;
  }
  return context_.Flush();
}

Result<void> KinetoFile::TakeDamage(const EventScanner::Item& item, EventScanner& scanner) {
  const bool is_cut = item.kind == EventScanner::Item::Kind::kCut;
  const std::string text(item.value);
  ImportPlace place;
  place.byte_offset = item.byte_offset;
  ASSIGN_OR_RETURN(const bool can_continue, scanner.Recover());
  if (can_continue) {
    if (is_in_damage_) return {};
    ++context_.facts().event_count;
    BadEvent(item.byte_offset, text, "it is damaged");
    return {};
  }
  is_cut_ = is_cut;
  const std::string events = tlparse::Count(context_.facts().event_count, "event");
  if (context_.is_damaged()) {
    context_.Log(ImportCode::kDamagedInput,
                 fmt::format("what could be decoded ends after {}", events), place, text);
  } else if (is_cut) {
    context_.Log(ImportCode::kCutProfile, fmt::format("the file ends after {}", events), place,
                 text);
  } else {
    context_.Log(ImportCode::kBadProfileEvent,
                 fmt::format("after {} the file continues with bytes that are not JSON; the rest "
                             "was not read",
                             events),
                 place, text);
  }
  return {};
}

void KinetoFile::Count(NotKeptEvents& events, std::string_view what,
                       std::optional<std::int64_t> duration_ns) {
  constexpr std::size_t kMostNames = 100;
  constexpr std::size_t kLongestName = 60;
  std::string name(what.substr(0, kLongestName));
  if (events.size() >= kMostNames && !events.contains(name)) name = "others";
  NotKept& not_kept = events[name];
  ++not_kept.count;
  not_kept.duration_ns += duration_ns.value_or(0);
}

void KinetoFile::BadEvent(std::int64_t byte_offset, std::string_view text,
                          std::string_view problem) {
  is_in_damage_ = true;
  constexpr std::int64_t kMostShown = 20;
  if (++bad_count_ > kMostShown) return;
  ImportPlace place;
  place.byte_offset = byte_offset;
  if (context_.is_damaged()) {
    context_.Log(ImportCode::kDamagedInput,
                 "an event was left out: what the damaged data was decoded to is no event", place,
                 text);
  } else {
    context_.Log(ImportCode::kBadProfileEvent, fmt::format("an event was left out: {}", problem),
                 place, text);
  }
}

bool KinetoFile::IsUnkeptFrame(std::string_view event) const {
  constexpr std::size_t kHead = 160;
  // Of a frame: more may be what a lost quote made of many.
  constexpr std::size_t kMostBytes = 4096;
  if (event.size() > kMostBytes) return false;
  const std::string_view head = event.substr(0, kHead);
  if (head.find("\"python_function\"") == head.npos) return false;
  if (event.find(kModuleFrame) != event.npos) return false;
  if (context_.options().keep_python_frames) return false;
  const auto text = [&](std::string_view key) {
    const std::size_t at = event.find(key);
    const std::size_t begin = at == event.npos ? at : event.find('"', at + key.size());
    const std::size_t end = begin == event.npos ? begin : event.find('"', begin + 1);
    return end == event.npos ? std::string_view() : event.substr(begin + 1, end - begin - 1);
  };
  // …/ab/cab<49 characters>.py:<line>
  const std::string_view place = text("\"CallFrom\":");
  if (place.empty()) return true;  // no line before PyTorch 2.14
  const std::string_view file = place.substr(0, place.rfind(':'));
  return !IsCachePath(place) && !IsUserFile(file) && !IsUserFile(FileOfFrame(text("\"name\":")));
}

void KinetoFile::Measured(std::int64_t start_ns, std::int64_t duration_ns) {
  ProfileFacts& facts = context_.facts();
  const std::int64_t end_ns = start_ns + duration_ns;
  if (!facts.start_ns || start_ns < *facts.start_ns) facts.start_ns = start_ns;
  if (!facts.end_ns || end_ns > *facts.end_ns) facts.end_ns = end_ns;
}

std::optional<std::int64_t> KinetoFile::MeasuredUnkept(std::string_view event) {
  const auto number = [&](std::string_view key) -> std::optional<std::int64_t> {
    std::size_t at = event.find(key);
    if (at == event.npos) return std::nullopt;
    at = event.find_first_not_of(" \t\r\n", at + key.size());
    const std::size_t end = event.find_first_of(",}\r\n", at);
    return at == event.npos || end == event.npos ? std::nullopt
                                                 : ParseMicroseconds(event.substr(at, end - at));
  };
  const std::optional<std::int64_t> start_ns = number("\"ts\":"), duration_ns = number("\"dur\":");
  if (!start_ns || !IsTimeInRange(*start_ns, duration_ns.value_or(0))) return {};
  Measured(*start_ns, duration_ns.value_or(0));
  return duration_ns && durations_.Add(*duration_ns) ? duration_ns : std::nullopt;
}

void KinetoFile::TakeEvent(const EventScanner::Item& item) {
  is_event_text_ = true;
  // More of the damaged event.
  if (is_in_damage_ && !item.follows_comma && !item.value.starts_with('{')) return;
  is_in_damage_ = false;
  ++context_.facts().event_count;
  has_events_ = true;
  if (IsUnkeptFrame(item.value)) {
    const std::optional<std::int64_t> duration_ns = MeasuredUnkept(item.value);
    return Count(left_out_, "python_function", duration_ns);
  }
  if (Result<void> parsed = parser_.Parse(item.value, event_); !parsed) {
    is_event_text_ = false;
    return BadEvent(item, parsed.error().message);
  }
  switch (event_.phase) {
    case 'X':
      return TakeSlice(event_, item);
    case 'M':
      return TakeMetadata(event_);
    case '\0':
      return BadEvent(item, "it has no phase (ph)");
    case 'i':
      if (event_.name == "[memory]") return TakeMemory(event_);
      [[fallthrough]];
    default:
      return Count(left_out_, event_.category.empty() ? "instants" : event_.category);
  }
}

void KinetoFile::TakeMember(const EventScanner::Item& item) {
  ProfileFacts& facts = context_.facts();
  if (item.key == "tlparse_timeline") {
    is_own_timeline_ = true;
  } else if (item.key == "schemaVersion") {
    has_schema_version_ = true;
    facts.format_version = std::string(item.value.substr(0, 20));
  } else if (item.key == "baseTimeNanoseconds") {
    constexpr std::int64_t kLatest = std::int64_t{1} << 61;
    std::string_view digits = item.value;  // a number, or text that holds one
    if (digits.size() > 2 && digits.starts_with('"')) digits = digits.substr(1, digits.size() - 2);
    base_ns_ = ToInt(digits);
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
  const std::optional<std::string> key = UnescapeJson(item.key);
  if (!key || item.value.size() > kLongestValue || metadata_.text().size() > kMostMetadata) return;
  if (!std::exchange(has_metadata_, true)) metadata_.BeginObject();
  metadata_.Key(*key).Raw(item.value);
}

// The file has the base of its times after its events, or not at all.
Result<void> KinetoFile::ShiftTimes() {
  ProfileFacts& facts = context_.facts();
  const std::int64_t base_ns = base_ns_.value_or(0);
  if (facts.start_ns) *facts.start_ns += base_ns;
  if (facts.end_ns) *facts.end_ns += base_ns;
  if (!base_ns_ && facts.start_ns)
    context_.Log(ImportCode::kAssumedClock, "the profile has no baseTimeNanoseconds", {});
  if (!has_rows_without_base_ || base_ns == 0) return {};
  RETURN_IF_ERROR(context_.Write());
  RETURN_IF_ERROR(context_.database().Execute(
      fmt::format("UPDATE memory_event_row SET time_ns = time_ns + {} WHERE profile_id = {}",
                  base_ns, context_.profile_id())));
  for (const std::string_view table :
       {"compiled_slice_row", "kernel_run_row", "device_copy_row", "device_launch_row",
        "op_run_row", "annotation_row", "python_frame_row", "collective_run_row"}) {
    RETURN_IF_ERROR(context_.database().Execute(fmt::format(
        "UPDATE {} SET start_ns = start_ns + {}{} WHERE profile_id = {}", table, base_ns,
        table == "collective_run_row"
            ? fmt::format(", end_ns = end_ns + {0}, device_start_ns = device_start_ns + {0}",
                          base_ns)
            : std::string(),
        context_.profile_id())));
  }
  return {};
}

void KinetoFile::Report() {
  LeaveOutUserFrames();
  if (bad_count_ > 0) {
    context_.Log(
        ImportCode::kBadProfileEvent,
        fmt::format("{} left out in all{}", CountWere(bad_count_, "event"),
                    context_.is_damaged() ? "; what the damaged data was decoded to may be "
                                            "wrong in those that were kept"
                                          : ""),
        {});
  }
  if (without_duration_ > 0) {
    context_.Log(
        ImportCode::kBadProfileEvent,
        fmt::format("{} no duration (dur) in the file: 0 is stored",
                    without_duration_ == 1 ? std::string("1 slice has")
                                           : fmt::format("{} slices have", without_duration_)));
  }
  ReportNotKept(unknown_, ImportCode::kUnknownProfileEvent);
  ReportNotKept(left_out_, ImportCode::kProfileEventsLeftOut);
}

void KinetoFile::ReportNotKept(const NotKeptEvents& events, ImportCode code) {
  const bool is_unknown = code == ImportCode::kUnknownProfileEvent;
  for (const auto& [what, not_kept] : events) {
    const std::string name = is_unknown ? fmt::format(" of category '{}'", what) : ": " + what;
    context_.Log(code, fmt::format("{}{}{}{}", tlparse::Count(not_kept.count, "event"), name,
                                   TimeInAll(not_kept.duration_ns),
                                   is_unknown && device_categories_.contains(what)
                                       ? ": counted as work of a device"
                                       : ""));
  }
}

}  // namespace kineto

namespace {

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
    tables.Use<MemorySnapshotRow>();
    tables.Use<MemoryEventRow>();
    tables.Use<MemoryAllocationRow>();
  }

  Result<bool> Read(RuntimeContext& context) override;
};

Result<bool> KinetoReader::Read(RuntimeContext& context) {
  return kineto::KinetoFile(context).Read();
}

}  // namespace

std::unique_ptr<RuntimeReader> MakeKinetoReader() { return std::make_unique<KinetoReader>(); }

}  // namespace tlparse

#include "report/timeline/profile_slices.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/json_writer.h"
#include "log/inductor_texts.h"
#include "queries/report/timeline/timeline.h"

namespace tlparse {
namespace {

// As the profile named it.
std::string NameOfSlice(CompiledSliceKind kind, std::string_view text) {
  switch (kind) {
    case CompiledSliceKind::kGraphCall:
    case CompiledSliceKind::kDevice:
      return fmt::format("{}{}{}", inductor::kGraphCall, text.empty() ? "None" : text,
                         inductor::kGraphCallEnd);
    case CompiledSliceKind::kRegion:
      return fmt::format("{}{}", inductor::kRegion, text);
    case CompiledSliceKind::kFunction:
      return std::string(inductor::kFunction);
    case CompiledSliceKind::kBackward:
      return std::string(inductor::kBackward);
    default:
      return text.empty() ? std::string("graph call") : std::string(text);
  }
}

std::optional<std::int64_t> NumberOf(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

// Texts of many slices, by id.
class Texts {
 public:
  static Result<Texts> Make(Database& database) {
    ASSIGN_OR_RETURN(auto of_text, PreparedQuery<TimelineText>::Make(database));
    ASSIGN_OR_RETURN(auto of_label, PreparedQuery<TimelineCompileLabel>::Make(database));
    ASSIGN_OR_RETURN(auto of_direction, PreparedQuery<TimelineDirection>::Make(database));
    return Texts(std::move(of_text), std::move(of_label), std::move(of_direction));
  }

  // Until the next call; empty for no id.
  Result<std::string_view> Text(std::optional<std::int64_t> id) {
    return Find(texts_, id, [&](std::int64_t wanted) -> Result<std::string> {
      ASSIGN_OR_RETURN(const FirstRow<TimelineText> row, First(of_text_.Run({.id = wanted})));
      return row ? std::string(row->text) : std::string();
    });
  }
  // The text if it is JSON, else a JSON string of it.
  Result<std::string_view> Json(std::optional<std::int64_t> id) {
    return Find(json_, id, [&](std::int64_t wanted) -> Result<std::string> {
      ASSIGN_OR_RETURN(const std::string_view text, Text(wanted));
      std::string json(text);
      if (parser_.parse(json).error() == simdjson::SUCCESS) return json;
      json.clear();
      AppendJsonString(text, json);
      return json;
    });
  }
  Result<std::string_view> Label(std::optional<std::int64_t> compile_id) {
    return Find(labels_, compile_id, [&](std::int64_t wanted) -> Result<std::string> {
      ASSIGN_OR_RETURN(const auto row, First(of_label_.Run({.id = wanted})));
      return row ? std::string(row->label) : std::string();
    });
  }
  Result<std::string_view> Direction(std::optional<std::int64_t> graph_id) {
    return Find(directions_, graph_id, [&](std::int64_t wanted) -> Result<std::string> {
      ASSIGN_OR_RETURN(const auto row, First(of_direction_.Run({.id = wanted})));
      return row ? std::string(row->direction) : std::string();
    });
  }

 private:
  using Cache = std::unordered_map<std::int64_t, std::string>;
  Texts(PreparedQuery<TimelineText> of_text, PreparedQuery<TimelineCompileLabel> of_label,
        PreparedQuery<TimelineDirection> of_direction)
      : of_text_(std::move(of_text)),
        of_label_(std::move(of_label)),
        of_direction_(std::move(of_direction)) {}

  template <typename Read>
  Result<std::string_view> Find(Cache& cache, std::optional<std::int64_t> id, const Read& read) {
    constexpr std::size_t kMostBytes = 4 << 20;
    if (!id) return std::string_view();
    if (const auto found = cache.find(*id); found != cache.end())
      return std::string_view(found->second);
    ASSIGN_OR_RETURN(std::string text, read(*id));
    if ((bytes_ += text.size() + 64) > kMostBytes) {
      bytes_ = 0;
      for (Cache* one : {&texts_, &json_, &labels_, &directions_}) one->clear();
    }
    return std::string_view(cache.emplace(*id, std::move(text)).first->second);
  }

  PreparedQuery<TimelineText> of_text_;
  PreparedQuery<TimelineCompileLabel> of_label_;
  PreparedQuery<TimelineDirection> of_direction_;
  Cache texts_, json_, labels_, directions_;
  std::size_t bytes_ = 0;
  simdjson::dom::parser parser_;
};

class SliceTracks {
 public:
  SliceTracks(Database& database, TimelineTracks& tracks, const ProfileProcess& process)
      : database_(database), tracks_(tracks), process_(process) {}

  Result<TimelineTrack*> Of(const TimelineSlice& slice) {
    const std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>> place(
        slice.device ? slice.device : slice.thread_id, slice.device ? slice.stream : std::nullopt);
    const bool is_known = slice.device || slice.thread_id;
    if (is_known && latest_ != nullptr && place == place_ && is_device_ == slice.device.has_value())
      return latest_;
    place_ = place;
    is_device_ = slice.device.has_value();
    if (slice.device) {
      latest_ = &OfStream(*slice.device, slice.stream);
    } else if (slice.thread_id) {
      ASSIGN_OR_RETURN(latest_, OfThread(*slice.thread_id));
    } else {
      latest_ = &tracks_.TrackOf(process_.pid, fmt::format("none {}", slice.category),
                                 fmt::format("{} (of no thread)", slice.category));
    }
    return latest_;
  }

 private:
  TimelineTrack& OfStream(std::int64_t device, std::optional<std::int64_t> stream) {
    const std::string text = stream ? fmt::format("stream {}", *stream) : "no stream";
    return tracks_.TrackOf(ProcessOf(fmt::format("device {} of {}", device, process_.name), {}),
                           text, text, stream);
  }

  Result<TimelineTrack*> OfThread(std::int64_t id) {
    ASSIGN_OR_RETURN(const FirstRow<TimelineThreadName> row,
                     First(Query<TimelineThreadName>(database_, {.id = id})));
    if (!row) return Fail(ErrorCode::kInternal, "a slice of a thread that is not in the database");
    std::int64_t pid = process_.pid;
    const std::optional<std::int64_t> own = NumberOf(row->pid);
    if (process_.system_pid && own != process_.system_pid)
      pid = ProcessOf(fmt::format("process {} in the profile of {}", row->pid, process_.name), own);
    const std::string name =
        row->name ? std::string(*row->name) : fmt::format("thread {}", row->tid);
    return &tracks_.TrackOf(pid, fmt::format("thread {}/{}", row->pid, row->tid), name,
                            NumberOf(row->tid));
  }

  std::int64_t ProcessOf(const std::string& name, std::optional<std::int64_t> pid) {
    return tracks_.OtherProcess(process_.pid, pid, name);
  }

  Database& database_;
  TimelineTracks& tracks_;
  const ProfileProcess& process_;
  TimelineTrack* latest_ = nullptr;
  std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>> place_;
  bool is_device_ = false;
};

class ProfileWriter {
 public:
  ProfileWriter(Database& database, TimelineTracks& tracks, const ProfileProcess& process,
                Texts texts, PreparedQuery<TimelineWork> work)
      : tracks_(tracks),
        threads_(database, tracks, process),
        texts_(std::move(texts)),
        work_(std::move(work)) {}

  Result<void> Add(const TimelineSlice& slice, std::int64_t profile_id, const TimelinePart& part,
                   std::int64_t shift_ns) {
    ASSIGN_OR_RETURN(TimelineTrack* const track, threads_.Of(slice));
    RETURN_IF_ERROR(SetArgs(slice));
    ASSIGN_OR_RETURN(std::string_view name, texts_.Text(slice.name_id));
    if (slice.kind) name = name_ = NameOfSlice(*slice.kind, name);
    const std::int64_t start_ns = slice.start_ns + shift_ns;
    ASSIGN_OR_RETURN(const std::int64_t tid,
                     tracks_.AddSlice(*track, {slice.category, name, start_ns, slice.duration_ns,
                                               args_.text()}));
    if (!slice.work_id) return {};
    // Ids of flows: of kernels even, of copies odd.
    if (slice.device)
      return tracks_.AddFlow('f', 2 * slice.id + (slice.category == "kernel" ? 0 : 1), *track, tid,
                             start_ns);
    if (slice.id != *slice.work_id) return {};
    FOR_EACH_ROW(const TimelineWork& work, work_.Run({.profile_id = profile_id,
                                                      .correlation = slice.correlation.value_or(0),
                                                      .from_ns = part.from_ns,
                                                      .to_ns = part.to_ns,
                                                      .compiles = part.compiles})) {
      RETURN_IF_ERROR(tracks_.AddFlow('s', 2 * work.id + work.is_copy, *track, tid, start_ns));
    }
    return {};
  }

 private:
  Result<void> SetArgs(const TimelineSlice& slice) {
    args_.Clear();
    args_.Add("External id", slice.external_id);
    args_.Add("correlation", slice.correlation);
    args_.Add("Sequence number", slice.sequence_number);
    if (slice.device) {
      args_.Add("device", slice.device);
      args_.Add("stream", slice.stream);
    }
    args_.Add("bytes", slice.size_bytes);
    for (const auto& [key, id] : {std::pair{"Input Dims", slice.shapes_id},
                                  {"grid", slice.grid_id},
                                  {"block", slice.block_id}}) {
      ASSIGN_OR_RETURN(const std::string_view json, texts_.Json(id));
      args_.AddRaw(key, json);
    }
    ASSIGN_OR_RETURN(const std::string_view file, texts_.Text(slice.file_id));
    args_.AddText("file", file);
    args_.Add("line", slice.line);
    ASSIGN_OR_RETURN(const std::string_view label, texts_.Label(slice.compile_id));
    args_.AddText("compile", label);
    ASSIGN_OR_RETURN(const std::string_view direction, texts_.Direction(slice.graph_id));
    args_.AddText("graph", direction);
    return {};
  }

  TimelineTracks& tracks_;
  SliceTracks threads_;
  Texts texts_;
  PreparedQuery<TimelineWork> work_;
  TimelineArgs args_;
  std::string name_;
};

}  // namespace

void TimelineArgs::AddKey(std::string_view key) {
  text_ += text_.empty() ? "{\"" : ",\"";
  text_ += key;
  text_ += "\":";
}

void TimelineArgs::Add(std::string_view key, std::optional<std::int64_t> value) {
  if (!value) return;
  AddKey(key);
  fmt::format_to(std::back_inserter(text_), FMT_STRING("{}"), *value);
}

void TimelineArgs::AddText(std::string_view key, std::string_view text) {
  if (text.empty()) return;
  AddKey(key);
  AppendJsonString(text, text_);
}

void TimelineArgs::AddRaw(std::string_view key, std::string_view json) {
  if (json.empty()) return;
  AddKey(key);
  text_ += json;
}

std::string_view TimelineArgs::text() {
  if (!text_.empty()) text_ += '}';
  return text_;
}

Result<void> AddProfileSlices(Database& database, TimelineTracks& tracks,
                              const ProfileProcess& process, std::int64_t profile_id,
                              const TimelinePart& part, std::int64_t shift_ns) {
  ASSIGN_OR_RETURN(Texts texts, Texts::Make(database));
  ASSIGN_OR_RETURN(auto work, PreparedQuery<TimelineWork>::Make(database));
  ProfileWriter writer(database, tracks, process, std::move(texts), std::move(work));
  tracks.BeginPass();
  FOR_EACH_ROW(const TimelineSlice& slice,
               Query<TimelineSlice>(database, {.profile_id = profile_id,
                                               .from_ns = part.from_ns,
                                               .to_ns = part.to_ns,
                                               .compiles = part.compiles})) {
    RETURN_IF_ERROR(writer.Add(slice, profile_id, part, shift_ns));
  }
  return {};
}

}  // namespace tlparse

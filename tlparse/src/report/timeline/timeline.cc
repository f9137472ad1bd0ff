#include "report/timeline/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/version.h"
#include "facts/job/participants.h"
#include "facts/job/read_transaction.h"
#include "queries/report/timeline/timeline.h"
#include "report/timeline/profile_slices.h"
#include "report/timeline/tracks.h"

namespace tlparse {
namespace {

// Microseconds that may have a part, as nanoseconds; nothing: no possible time. The product of an
// epoch's time and 1000 would not be exact.
std::optional<std::int64_t> NsOfUs(double us) {
  if (!(std::fabs(us) < 9e15)) return {};
  const double whole = std::floor(us);
  return static_cast<std::int64_t>(whole) * 1000 + std::llround((us - whole) * 1000);
}

struct InputOfProcess {
  std::int64_t profile_id = 0;
  std::string file;  // its name
  std::optional<std::int64_t> start_ns;
};

// A process in the file: one of a log, of a profile, or of both.
struct ProcessToWrite {
  std::string name;
  std::optional<std::int64_t> pid;  // the system's
  std::optional<ParticipantProcess> log;
  std::optional<std::int64_t> log_start_ns;
  std::vector<InputOfProcess> inputs;
};

std::string FileName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

class TimelineRun {
 public:
  TimelineRun(Database& database, const TimelineOptions& options)
      : database_(database), options_(options) {}

  Result<TimelineSummary> Write(const std::function<Result<void>(std::string_view)>& write) {
    // What is sorted is as large as the profile.
    RETURN_IF_ERROR(database_.Execute("PRAGMA temp_store = FILE"));
    ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database_));
    RETURN_IF_ERROR(Choose());
    std::string piece = fmt::format(
        R"({{"displayTimeUnit":"ns","baseTimeNanoseconds":{},"tlparse_timeline":"{}","traceEvents":[)",
        base_ns_, kVersion);
    TimelineSummary summary;
    bool is_first = true;
    const auto add = [&](std::string_view event) -> Result<void> {
      constexpr std::size_t kPieceBytes = 256 << 10;
      piece += is_first ? "\n" : ",\n";
      piece += event;
      is_first = false;
      constexpr std::string_view kMetadata = R"({"ph":"M")";
      if (!event.starts_with(kMetadata)) ++summary.events;
      if (piece.size() < kPieceBytes) return {};
      RETURN_IF_ERROR(write(piece));
      piece.clear();
      return {};
    };
    TimelineTracks tracks(add, base_ns_);
    for (const ProcessToWrite& process : processes_) RETURN_IF_ERROR(AddProcess(process, tracks));
    summary.left_out = tracks.left_out() + left_out_;
    piece += fmt::format("{}],\"otherData\":{{\"left_out\":{}}}}}\n", is_first ? "" : "\n",
                         summary.left_out);
    RETURN_IF_ERROR(write(piece));
    return summary;
  }

 private:
  Result<void> Choose() {
    if (options_.launch) {
      ASSIGN_OR_RETURN([[maybe_unused]] const std::int64_t launch,
                       FindLaunch(database_, options_.run_id, options_.launch));
    }
    RETURN_IF_ERROR(ChooseLogs());
    RETURN_IF_ERROR(ChooseInputs());
    if (options_.rank && processes_.empty())
      return Fail(ErrorCode::kNotFound, fmt::format("the run has no rank {}", *options_.rank));
    RETURN_IF_ERROR(ChooseCompiles());
    RETURN_IF_ERROR(ChooseSteps());
    return ChooseBase();
  }

  bool IsChosen(std::optional<std::int64_t> rank) const {
    return !options_.rank || rank == options_.rank;
  }

  Result<void> ChooseLogs() {
    ASSIGN_OR_RETURN(const std::vector<RunParticipant> participants,
                     LoadParticipants(database_, options_.run_id));
    has_launches_ = std::any_of(participants.begin(), participants.end(),
                                [](const RunParticipant& one) { return one.launch > 1; });
    for (const RunParticipant& participant : participants) {
      for (const ParticipantProcess& process : participant.processes) {
        all_logs_.push_back(process.id);
        if (options_.launch.value_or(participant.launch) != participant.launch ||
            !IsChosen(participant.rank))
          continue;
        std::string name = participant.rank ? "rank " + participant.name : participant.name;
        if (!process.child_kind.empty()) name = fmt::format("{} of {}", process.child_kind, name);
        if (has_launches_) name = fmt::format("launch {}, {}", participant.launch, name);
        const bool has_pid = process.pid < TimelineTracks::kFirstOwnNumber;
        if (has_pid) name += fmt::format(" (pid {})", process.pid);
        ASSIGN_OR_RETURN(const FirstRow<TimelineSpan> span,
                         First(Query<TimelineSpan>(database_, {.process_id = process.id,
                                                               .first = process.first_record_id,
                                                               .last = process.last_record_id})));
        processes_.push_back({std::move(name),
                              has_pid ? std::optional(process.pid) : std::nullopt,
                              process,
                              span->start_us ? NsOfUs(*span->start_us) : std::nullopt,
                              {}});
      }
    }
    return {};
  }

  Result<void> ChooseInputs() {
    using Key = std::tuple<std::string, std::optional<std::int64_t>, std::optional<std::int64_t>>;
    std::map<Key, std::size_t> without_log;
    FOR_EACH_ROW(const TimelineProfile& profile,
                 Query<TimelineProfile>(database_, {.run_id = options_.run_id})) {
      InputOfProcess input{profile.id, FileName(profile.path), {}};
      if (profile.start_us) input.start_ns = *profile.start_us * 1000;
      const auto owner =
          std::find_if(processes_.begin(), processes_.end(), [&](const ProcessToWrite& one) {
            return one.log && one.log->id == profile.process_id.value_or(0);
          });
      if (owner != processes_.end()) {
        owner->inputs.push_back(std::move(input));
        continue;
      }
      const bool has_log = std::find(all_logs_.begin(), all_logs_.end(),
                                     profile.process_id.value_or(0)) != all_logs_.end();
      if (has_log || (options_.launch && has_launches_) || !IsChosen(profile.rank)) continue;
      // A process that is known by its pid may have several profiles.
      const std::string place = profile.pid ? std::string(profile.host) : input.file;
      const auto [known, is_new] =
          without_log.try_emplace({place, profile.rank, profile.pid}, processes_.size());
      if (is_new) {
        std::string name = profile.rank ? fmt::format("rank {}", *profile.rank) : input.file;
        if (profile.pid) name += fmt::format(" (pid {})", *profile.pid);
        processes_.push_back({std::move(name), profile.pid, {}, {}, {}});
      }
      processes_[known->second].inputs.push_back(std::move(input));
    }
    return {};
  }

  Result<void> ChooseCompiles() {
    if (options_.compile.empty()) return {};
    std::string ids;
    FOR_EACH_ROW(
        const TimelineCompile& compile,
        Query<TimelineCompile>(database_, {.run_id = options_.run_id, .label = options_.compile})) {
      ids += fmt::format("{}{}", ids.empty() ? "" : ",", compile.id);
    }
    if (ids.empty())
      return Fail(ErrorCode::kNotFound, fmt::format("the run has no compile {}", options_.compile));
    part_.compiles = fmt::format("[{}]", ids);
    return {};
  }

  Result<void> ChooseSteps() {
    if (!options_.first_step) return {};
    std::vector<std::int64_t> profiles;
    for (const ProcessToWrite& process : processes_)
      for (const InputOfProcess& input : process.inputs) profiles.push_back(input.profile_id);
    ASSIGN_OR_RETURN(const FirstRow<TimelineSteps> steps,
                     First(Query<TimelineSteps>(
                         database_, {.profiles = profiles,
                                     .first = *options_.first_step,
                                     .last = options_.last_step.value_or(*options_.first_step)})));
    if (!steps || !steps->start_ns)
      return Fail(ErrorCode::kNotFound,
                  "no profile of this part of the run marks these steps (ProfilerStep#n)");
    part_.from_ns = steps->start_ns;
    part_.to_ns = steps->end_ns;
    return {};
  }

  // The earliest time, in nanoseconds: what is relative to it is exact in a double, for fifty days.
  // What began long before the rest (another job, or times that are not since the epoch) begins with
  // it, and the name of its process says by how much it was shifted.
  Result<void> ChooseBase() {
    std::vector<std::int64_t> starts;
    for (const ProcessToWrite& process : processes_) {
      if (process.log_start_ns) starts.push_back(*process.log_start_ns);
      for (const InputOfProcess& input : process.inputs)
        if (input.start_ns) starts.push_back(*input.start_ns);
    }
    if (starts.empty()) return {};
    first_ns_ = *std::max_element(starts.begin(), starts.end()) - kMostSpanNs;
    std::erase_if(starts, [&](std::int64_t start_ns) { return start_ns < first_ns_; });
    base_ns_ = *std::min_element(starts.begin(), starts.end());
    return {};
  }

  std::int64_t ShiftOf(std::optional<std::int64_t> start_ns) const {
    return start_ns && *start_ns < first_ns_ ? base_ns_ - *start_ns : 0;
  }

  // The process of times that are shifted.
  ProfileProcess Shifted(const ProcessToWrite& process, std::int64_t pid, std::int64_t shift_ns,
                         TimelineTracks& tracks) {
    if (shift_ns == 0) return {pid, process.name, process.pid};
    constexpr double kDayNs = 86400e9;
    const std::string name = fmt::format("{}, times + {:.2f} days", process.name,
                                         static_cast<double>(shift_ns) / kDayNs);
    return {tracks.OtherProcess(pid, {}, name), name, process.pid};
  }

  Result<void> AddProcess(const ProcessToWrite& process, TimelineTracks& tracks) {
    const std::int64_t pid = tracks.AddProcess(process.pid, process.name);
    if (process.log) {
      const std::int64_t shift_ns = ShiftOf(process.log_start_ns);
      RETURN_IF_ERROR(AddCompileEvents(*process.log, Shifted(process, pid, shift_ns, tracks).pid,
                                       shift_ns, tracks));
    }
    for (const InputOfProcess& input : process.inputs) {
      const std::int64_t shift_ns = ShiftOf(input.start_ns);
      const ProfileProcess of = Shifted(process, pid, shift_ns, tracks);
      RETURN_IF_ERROR(AddProfileSlices(database_, tracks, of, input.profile_id, part_, shift_ns));
      RETURN_IF_ERROR(AddCollectives(input, of.pid, shift_ns, tracks));
      if (!part_.compiles) RETURN_IF_ERROR(AddMemory(input, of.pid, shift_ns, tracks));
    }
    return {};
  }

  // PyTorch writes the number 0 for every thread: these share a track, and what overlaps is on
  // further threads.
  Result<void> AddCompileEvents(const ParticipantProcess& process, std::int64_t pid,
                                std::int64_t shift_ns, TimelineTracks& tracks) {
    ASSIGN_OR_RETURN(auto of_record, PreparedQuery<TimelineEventArgs>::Make(database_));
    tracks.BeginPass();
    FOR_EACH_ROW(const TimelineCompileEvent& event,
                 Query<TimelineCompileEvent>(database_, {.process_id = process.id,
                                                         .first = process.first_record_id,
                                                         .last = process.last_record_id,
                                                         .from_ns = part_.from_ns,
                                                         .to_ns = part_.to_ns,
                                                         .compiles = part_.compiles})) {
      const std::optional<std::int64_t> start_ns = NsOfUs(event.start_us.value_or(NAN));
      if (!start_ns) {
        ++left_out_;
        continue;
      }
      const std::string name =
          event.tid ? fmt::format("compiler, thread {}", *event.tid) : "compiler";
      TimelineTrack& track = tracks.TrackOf(pid, name, name);
      ASSIGN_OR_RETURN(const auto row, First(of_record.Run({.record_id = event.record_id})));
      const std::string args(row ? row->args : std::string_view());
      TimelineTracks::Slice slice{
          "compile", event.name, *start_ns + shift_ns, 0,
          args.starts_with('{') ? std::string_view(args) : std::string_view()};
      std::optional<std::int64_t> duration_ns =
          event.duration_us ? NsOfUs(*event.duration_us) : std::nullopt;
      // Begun and never ended: until the log ends.
      if (event.phase == 'B' && event.last_record_us) {
        slice.category = "compile, never ended";
        duration_ns = *event.last_record_us * 1000 - *start_ns;
      }
      if (!duration_ns || *duration_ns < 0) {
        RETURN_IF_ERROR(tracks.AddInstant(track, slice));
        continue;
      }
      slice.duration_ns = *duration_ns;
      ASSIGN_OR_RETURN([[maybe_unused]] const std::int64_t tid, tracks.AddSlice(track, slice));
    }
    return {};
  }

  Result<void> AddCollectives(const InputOfProcess& input, std::int64_t pid, std::int64_t shift_ns,
                              TimelineTracks& tracks) {
    TimelineArgs args;
    tracks.BeginPass();
    FOR_EACH_ROW(const TimelineCollective& one,
                 Query<TimelineCollective>(database_, {.profile_id = input.profile_id,
                                                       .from_ns = part_.from_ns,
                                                       .to_ns = part_.to_ns,
                                                       .compiles = part_.compiles})) {
      const std::string group(one.group_name);
      TimelineTrack& track =
          tracks.TrackOf(pid, fmt::format("collectives {} {}", input.profile_id, group),
                         fmt::format("collectives{} ({})",
                                     group.empty() ? group : " of group " + group, input.file));
      args.Clear();
      args.Add("sequence number", one.sequence_number);
      args.Add("group size", one.group_size);
      args.AddText("state", one.state);
      args.AddText("dtype", one.dtype);
      args.AddText("reduce op", one.reduce_op);
      args.AddText("input shapes", one.input_shapes);
      args.AddText("output shapes", one.output_shapes);
      args.AddText("file", one.file);
      args.Add("line", one.line);
      TimelineTracks::Slice slice{"collective", one.op, one.start_ns.value_or(0) + shift_ns, 0,
                                  args.text()};
      if (!one.end_ns || *one.end_ns < *one.start_ns) {
        RETURN_IF_ERROR(tracks.AddInstant(track, slice));
        continue;
      }
      slice.duration_ns = *one.end_ns - *one.start_ns;
      ASSIGN_OR_RETURN([[maybe_unused]] const std::int64_t tid, tracks.AddSlice(track, slice));
    }
    return {};
  }

  Result<void> AddMemory(const InputOfProcess& input, std::int64_t pid, std::int64_t shift_ns,
                         TimelineTracks& tracks) {
    FOR_EACH_ROW(const TimelineSnapshot& snapshot,
                 Query<TimelineSnapshot>(database_, {.profile_id = input.profile_id})) {
      const std::string device = snapshot.device ? fmt::format("device {}", *snapshot.device)
                                                 : std::string(snapshot.source);
      RETURN_IF_ERROR(AddMemoryOf(snapshot, fmt::format("memory of {} ({})", device, input.file),
                                  pid, shift_ns, tracks));
    }
    return {};
  }

  Result<void> AddMemoryOf(const TimelineSnapshot& snapshot, const std::string& name,
                           std::int64_t pid, std::int64_t shift_ns, TimelineTracks& tracks) {
    std::int64_t alive = snapshot.base_bytes;
    std::optional<std::int64_t> held = snapshot.reserved_bytes;
    TimelineArgs args;
    FOR_EACH_ROW(const TimelineMemory& event,
                 Query<TimelineMemory>(database_, {.snapshot_id = snapshot.id})) {
      alive += event.alive_bytes;
      if (held) held = *held + event.held_bytes;
      if (event.reserved_bytes) held = event.reserved_bytes;
      if (!event.time_ns || (part_.from_ns && *event.time_ns < *part_.from_ns) ||
          (part_.to_ns && *event.time_ns >= *part_.to_ns))
        continue;
      args.Clear();
      args.Add("allocated", alive);
      args.Add("reserved", held);
      RETURN_IF_ERROR(tracks.AddCounter(pid, name, *event.time_ns + shift_ns, args.text()));
      if (event.kind != MemoryAction::kOom) continue;
      args.Clear();
      args.Add("bytes", event.size_bytes);
      TimelineTrack& track = tracks.TrackOf(pid, name, name);
      RETURN_IF_ERROR(tracks.AddInstant(
          track, {"memory", "out of memory", *event.time_ns + shift_ns, 0, args.text()}));
    }
    return {};
  }

  static constexpr std::int64_t kMostSpanNs = std::int64_t{40} * 86'400'000'000'000;

  Database& database_;
  const TimelineOptions& options_;
  TimelinePart part_;
  std::vector<ProcessToWrite> processes_;
  std::vector<std::int64_t> all_logs_;  // ids of processes
  bool has_launches_ = false;           // several
  std::int64_t base_ns_ = 0;
  std::int64_t first_ns_ = INT64_MIN;  // what begins before it is shifted
  std::int64_t left_out_ = 0;
};

}  // namespace

Result<TimelineSummary> WriteTimeline(Database& database, const TimelineOptions& options,
                                      const std::function<Result<void>(std::string_view)>& write) {
  return TimelineRun(database, options).Write(write);
}

}  // namespace tlparse

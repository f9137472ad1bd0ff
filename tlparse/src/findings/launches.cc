// What earlier launches tell: how they ended, what this one took from their caches, what it was
// compiled with instead. Notes.
#include "queries/findings/launches.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/plural.h"
#include "facts/cache/cause.h"
#include "facts/diff/diff.h"
#include "facts/job/exits.h"
#include "findings/context.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostEarlier = 20;

std::string Clock(const std::optional<std::int64_t>& us) {
  return us ? fmt::format("{:%H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(*us / 1'000'000)))
            : "?";
}

// What a log that cannot be read to its end says of its end: nothing.
std::vector<ProcessStatus> Readable(std::vector<ProcessStatus> rows) {
  std::erase_if(rows, [](const ProcessStatus& row) { return row.readable_bytes.has_value(); });
  return rows;
}

// How the logs of a launch end, comparable with another's.
std::map<std::string, std::size_t> Ends(const std::vector<ProcessStatus>& rows) {
  std::map<std::string, std::size_t> ends;
  for (const ProcessStatus& row : rows) {
    if (row.compile_id == 0) continue;
    ++ends[fmt::format("{} {} {}", Name(row.state), row.compile, row.function)];
  }
  return ends;
}

// Where logs cannot be read to their ends, as far as the others show.
bool EndAlike(const std::vector<ProcessStatus>& a, const std::vector<ProcessStatus>& b) {
  const std::vector<ProcessStatus> a_readable = Readable(a), b_readable = Readable(b);
  const auto a_ends = Ends(a_readable), b_ends = Ends(b_readable);
  if (a_readable.size() == a.size() && b_readable.size() == b.size()) return a_ends == b_ends;
  return a_ends.size() == b_ends.size() &&
         std::equal(a_ends.begin(), a_ends.end(), b_ends.begin(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

// "with a failed compile": as far as its logs show. Failures outside compiles are in none.
const char* HowEnded(const std::vector<Finding>& own, const std::vector<ProcessStatus>& rows) {
  if (rows.empty()) return "in a way that is not known: its logs can be read only in part";
  const auto has = [&](RankState state) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const ProcessStatus& row) { return row.state == state; });
  };
  const bool is_failed = own.empty() ? has(RankState::kFailed)
                                     : own.front().kind == FindingKind::kCompileFailed &&
                                           own.front().severity == FindingSeverity::kError;
  if (is_failed) return "with a failed compile";
  if (!own.empty() && own.front().kind == FindingKind::kCrashed) return "with a failure";
  if (!own.empty() && own.front().kind == FindingKind::kStoppedFirst) {
    if (!own.front().ends_before.empty()) return "earlier on some ranks";
    // A log that is cut off was copied in part, or its process ended while it wrote.
    if (own.front().severity != FindingSeverity::kError)
      return "in a way that its logs do not show";
  }
  if (has(RankState::kCompiling)) return "inside a compile";
  return own.empty() ? "with no failure in its logs" : "earlier on some ranks";
}

// What the findings on the end of the launch say, else what its logs have in common. `how` all its processes
// ended is empty if it is not known.
void DescribeEnd(FindingContext& own, const std::vector<ProcessStatus>& readable,
                 std::size_t process_count, const std::string& how, Finding& finding) {
  if (!own.findings.empty()) {
    Finding& first = own.findings.front();
    finding.title += ": " + first.title;
    if (first.since_us) finding.since_us = first.since_us;
    finding.ranks = first.ranks;
    finding.rank_count = first.rank_count;
    finding.compiles = first.compiles;
    finding.function = first.function;
    finding.place = first.place;
    finding.cause = first.cause;
    first.detail.clear();
    SayDamage(own, first);
    finding.detail = first.detail;
    return;
  }
  const auto ends = Ends(readable);
  finding.rank_count = process_count;
  if (ends.size() == 1 && !readable.empty()) {
    finding.title +=
        fmt::format(": all its logs {}end after {} {}",
                    readable.size() == process_count ? "" : "that can be read to their ends ",
                    readable.front().compile, readable.front().function);
    finding.cause = "all logs end alike";
  }
  finding.detail = how.empty() ? std::string("How its processes ended is not in the logs.")
                               : fmt::format("All its processes ended {}{} (run.json).",
                                             how.starts_with("SIG") ? "by " : "with ", how);
}

Result<void> AddRestarts(FindingContext& context) {
  std::size_t earlier = 0;
  ASSIGN_OR_RETURN(const std::vector<ProcessExit> exits,
                   LoadExits(context.database, context.job.run_id()));
  const auto status_count = static_cast<std::int64_t>(context.status.size());
  for (const Launch& launch : context.launches) {
    if (launch.ordinal >= context.job.launch() || ++earlier > kMostEarlier) break;
    ASSIGN_OR_RETURN(const StatusAnswer status,
                     AnalyzeStatus(context.database, {context.job.run_name(), launch.ordinal}));
    // How a launch that runs will end is not known.
    const bool has_ended = context.live == nullptr;
    const bool is_alike = has_ended && EndAlike(status.rows, context.status);
    if (is_alike && exits.empty()) continue;
    const std::vector<ProcessStatus> readable = Readable(status.rows);
    // Its own end, as its own findings say.
    RanksOptions options;
    options.run = context.job.run_name();
    options.launch = launch.ordinal;
    ASSIGN_OR_RETURN(const RanksAnswer ranks, AnalyzeRanks(context.database, options));
    FindingsOptions own_options;
    own_options.run = options.run;
    own_options.launch = options.launch;
    ASSIGN_OR_RETURN(FindingContext own,
                     FindingContext::Make(context.database, own_options, ranks));
    RETURN_IF_ERROR(FindEnds(own));
    RETURN_IF_ERROR(FindExits(own));
    const bool has_crashed =
        std::any_of(own.findings.begin(), own.findings.end(),
                    [](const Finding& one) { return one.kind == FindingKind::kCrashed; });
    if (is_alike && !has_crashed) continue;
    std::stable_sort(own.findings.begin(), own.findings.end(),
                     [](const Finding& a, const Finding& b) {
                       return a.since_us.value_or(INT64_MAX) < b.since_us.value_or(INT64_MAX);
                     });
    Finding& finding = context.Add(FindingKind::kRestarted, FindingSeverity::kNote);
    finding.launch = launch.ordinal;
    finding.since_us = launch.end_us;
    const auto process_count = static_cast<std::int64_t>(status.rows.size());
    const bool is_of_others = process_count != status_count;
    finding.title =
        fmt::format("Launch {} of {} ({} to {} UTC{}) ended {}", launch.ordinal,
                    context.launches.size(), Clock(launch.start_us), Clock(launch.end_us),
                    is_of_others ? fmt::format(", {} process{}, now {}", process_count,
                                               process_count == 1 ? "" : "es", status_count)
                                 : "",
                    HowEnded(own.findings, readable));
    DescribeEnd(own, readable, status.rows.size(), HowAllEnded(exits, ProcessesOf(own.job)),
                finding);
    finding.suggestion = fmt::format("tlparse findings <db> --launch {}", launch.ordinal);
    finding.query = fmt::format("SELECT * FROM rank_status WHERE run_id = {} AND launch = {}",
                                context.job.run_id(), launch.ordinal);
  }
  return {};
}

// Compile time of the rank that took longest. Nothing: the time of a compile is not known.
std::optional<double> SlowestSeconds(const Job& job) {
  std::map<RankIndex, double> seconds;
  for (const JobCompile& compile : job.compiles()) {
    if (compile.LacksTime()) return std::nullopt;
    seconds[compile.participant] += compile.Seconds().value_or(0);
  }
  double slowest = 0;
  for (const auto& [rank, value] : seconds) slowest = std::max(slowest, value);
  return slowest;
}

struct Work {
  std::set<std::string> functions, backwards;
};

Work WorkOf(const Job& job) {
  Work work;
  for (const JobSlot& slot : job.slots()) work.functions.insert(slot.Title());
  for (const JobCompile& compile : job.compiles()) {
    if (compile.slot >= 0 && compile.backward_duration_us > 0)
      work.backwards.insert(job.slots()[static_cast<std::size_t>(compile.slot)].Title());
  }
  return work;
}

// Whether the compile times are those of the same functions. A cache may have saved backwards in the
// later launch; one that the earlier launch did not come to makes its time too small.
bool AreComparable(const Job& before, const Job& now) {
  const Work earlier = WorkOf(before), later = WorkOf(now);
  return earlier.functions == later.functions &&
         std::includes(earlier.backwards.begin(), earlier.backwards.end(), later.backwards.begin(),
                       later.backwards.end());
}

// Entries that an earlier launch missed, and so filled, and that this one hit.
Result<void> AddReuse(FindingContext& context) {
  const std::int64_t earlier = context.job.launch() - 1;
  ASSIGN_OR_RETURN(const FirstRow<HitsOnEarlier> row,
                   First(Query<HitsOnEarlier>(context.database, {.run_id = context.job.run_id(),
                                                                 .launch = context.job.launch(),
                                                                 .hit = CacheState::kHit})));
  if (!row || row->hits == 0) return {};
  const std::int64_t hits = row->hits, entries = row->entries, all_hits = row->all_hits;
  Finding& finding = context.Add(FindingKind::kLaunchDiffers, FindingSeverity::kNote);
  context.SetRanks(finding, context.All());
  finding.title =
      fmt::format("Launch {} had {} cache hit{}, {}on {} entr{} that earlier launches had filled",
                  context.job.launch(), all_hits, PluralS(all_hits),
                  hits < all_hits ? fmt::format("{} of them ", hits)
                  : hits == 1     ? ""
                                  : "all of them ",
                  entries, entries == 1 ? "y" : "ies");
  ASSIGN_OR_RETURN(const Job before, Job::Load(context.database, context.job.run_name(), earlier));
  const std::optional<double> now_s = SlowestSeconds(context.job),
                              before_s = SlowestSeconds(before);
  const bool are_several = context.HasRanks() && context.job.participants().size() > 1;
  if (context.live == nullptr && AreComparable(before, context.job) && now_s && before_s &&
      *before_s > *now_s && *now_s > 0)
    finding.title +=
        fmt::format(": {:.1f} s of compile time{} instead of {:.1f} s in launch {}", *now_s,
                    are_several ? " on its slowest rank" : "", *before_s, earlier);
  finding.cause = "hits of entries from an earlier launch";
  finding.query = fmt::format(
      "SELECT c.* FROM cache_event c "
      "JOIN process p ON p.id = c.process_id JOIN launch n ON n.id = p.launch_id "
      "WHERE n.run_id = {} AND n.ordinal = {} AND c.state = 'hit'",
      context.job.run_id(), context.job.launch());
  return {};
}

// Options in which the keys of the same lookups differ between this launch and the one before.
Result<void> AddConfiguration(FindingContext& context) {
  const std::int64_t earlier = context.job.launch() - 1;
  DiffSide a{&context.database, context.job.run_name(), {}, earlier};
  DiffSide b{&context.database, context.job.run_name(), {}, context.job.launch()};
  Result<DiffAnswer> diff = AnalyzeDiff(a, b, {});
  if (!diff) {
    if (diff.error().code == ErrorCode::kNotFound) return {};
    return tl::unexpected<Error>(std::move(diff).error());
  }
  std::set<std::string> texts;
  std::vector<std::string> compiles;
  for (const CompileChange& change : diff->compiles) {
    for (const CacheChange& cache : change.caches) {
      for (const Cause& cause : cache.causes) {
        if (cause.kind != CauseKind::kConfig && cause.kind != CauseKind::kBuild) continue;
        texts.insert(cause.text);
      }
    }
  }
  if (texts.empty()) return {};
  Finding& finding = context.Add(FindingKind::kLaunchDiffers, FindingSeverity::kNote);
  context.SetRanks(finding, context.All());
  for (const std::string& text : texts) {
    std::string option = text;
    if (const std::size_t at = option.find('['); at != std::string::npos && option.find("]: ") > at)
      option = option.substr(at + 1, option.find("]: ") - at - 1) + " " +
               option.substr(option.find("]: ") + 3);
    finding.cause += (finding.cause.empty() ? "" : "; ") + option;
  }
  finding.title =
      fmt::format("Launch {} was compiled with another configuration than launch {}: {}",
                  context.job.launch(), earlier, finding.cause);
  finding.suggestion =
      fmt::format("tlparse diff <db> --launch {} {}", earlier, context.job.launch());
  finding.query = fmt::format(
      "SELECT * FROM cache_event e JOIN process p ON p.id = e.process_id "
      "JOIN launch n ON n.id = p.launch_id WHERE n.run_id = {} AND n.ordinal IN ({}, {})",
      context.job.run_id(), earlier, context.job.launch());
  return {};
}

}  // namespace

Result<void> FindLaunchNotes(FindingContext& context) {
  if (context.job.launch() < 2) return {};
  if (!context.options.launch) RETURN_IF_ERROR(AddRestarts(context));
  RETURN_IF_ERROR(AddConfiguration(context));
  return AddReuse(context);
}

}  // namespace tlparse

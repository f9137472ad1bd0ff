#include "cli/watch_events.h"

#include <cstddef>

#include "base/fields.h"
#include "cli/finding_fields.h"
#include "cli/rank_fields.h"
#include "cli/schemas.h"

namespace tlparse {
namespace {

struct OfJob {
  static constexpr std::string_view kName[] = {"job"};
  bool is_running = false;
};
struct OfStatus {
  static constexpr std::string_view kName[] = {"status"};
  const ProcessStatus& row;
  std::int64_t cache_hits = 0, cache_lookups = 0;
};
struct OfFinding {
  static constexpr std::string_view kName[] = {"finding"};
  std::string_view state;
  const Finding& finding;
};
struct OfEnd {
  static constexpr std::string_view kName[] = {"end"};
  std::string_view database;
};

constexpr std::string_view kJobStates[] = {"running", "ended"},
                           kFindingStates[] = {"open", "changed", "settled"};

template <class Of>
constexpr Field kEvent{"event", [](const Of&) { return Of::kName[0]; }, "", Of::kName};

template <auto member>
constexpr auto kOfRow = [](const OfStatus& of) { return of.row.*member; };
template <std::string ProcessStatus::*member>
constexpr auto kTextOfRow = [](const OfStatus& of) { return OrNull{member}(of.row); };

}  // namespace

template <>
struct FieldsOf<OfJob> {
  using Of = OfJob;
  static constexpr FieldList list{
      kEvent<Of>,
      Field{"state", [](const Of& of) { return kJobStates[of.is_running ? 0 : 1]; },
            "ended: the logs, or their last records, are an hour old or older", kJobStates},
  };
};

template <>
struct FieldsOf<OfStatus> {
  using Of = OfStatus;
  using Row = ProcessStatus;
  static constexpr FieldList list{
      kEvent<Of>,
      Field{"launch", kOfRow<&Row::launch>},
      Field{"rank", kOfRow<&Row::rank>},
      Field{"pid", kOfRow<&Row::pid>},
      Field{"state", kOfRow<&Row::state>},
      Field{"compile", kTextOfRow<&Row::compile>, "label of the last compile"},
      Field{"function", kTextOfRow<&Row::function>},
      Field{"is_backward", kOfRow<&Row::is_backward>, "it is in the backward of that compile"},
      Field{"phase", kTextOfRow<&Row::phase>, "the innermost event that is open"},
      Field{"since_us", kOfRow<&Row::since_us>, "as in status; since the epoch, UTC"},
      Field{"compiles_done", kOfRow<&Row::compiles_done>},
      Field{"cache_hits", &Of::cache_hits},
      Field{"cache_lookups", &Of::cache_lookups, "that hit or missed, all layers"},
      Field{"log", kOfRow<&Row::log_path>},
  };
};

template <>
struct FieldsOf<OfFinding> {
  using Of = OfFinding;
  static constexpr FieldList list{
      kEvent<Of>,
      Field{"state", [](const Of& of) { return of.state; },
            "changed: its severity, ranks, logs or compiles are others than before",
            kFindingStates},
      Field{"finding", [](const Of& of) -> const Finding& { return of.finding; }},
  };
};

template <>
struct FieldsOf<OfEnd> {
  using Of = OfEnd;
  static constexpr FieldList list{
      kEvent<Of>,
      Field{"database", &Of::database},
  };
};

std::string WatchSchema() {
  return SchemaOfEither<NoContext, OfJob, OfStatus, OfFinding, OfEnd>(
      "tlparse watch --json",
      "One object a line. job: whether the job is judged as running or as one that has ended, with "
      "the first log and when that changes. status: where a process stands, when that has changed. "
      "finding: a finding came (open) or does not stand any more (settled); an open finding is "
      "printed again only after it was settled. end: the last line, when the database is "
      "complete.");
}

std::string JobEvent(bool is_running) { return ToJson(OfJob{is_running}).Take(); }
std::string StatusEvent(const ProcessStatus& row, std::int64_t hits, std::int64_t lookups) {
  return ToJson(OfStatus{row, hits, lookups}).Take();
}
std::string FindingEvent(std::string_view state, const Finding& finding) {
  return ToJson(OfFinding{state, finding}).Take();
}
std::string EndEvent(std::string_view database) { return ToJson(OfEnd{database}).Take(); }

}  // namespace tlparse

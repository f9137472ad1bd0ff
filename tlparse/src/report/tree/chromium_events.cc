// chromium_events.json: what the compiler's timeline viewers read.
#include <fmt/format.h>
#include <simdjson.h>

#include <functional>

#include "base/json_count.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "report/report_context.h"
#include "report/tree/entry_file.h"
#include "report/tree/json_format.h"
#include "report/tree/profile_events.h"
#include "report/tree/record_scan.h"
#include "store/database.h"
#include "store/text_pool.h"

namespace tlparse {
namespace {

// Where the number of the last top-level member "pid" is in a compact JSON object; empty if
// that is not plain to see.
std::string_view FindPid(std::string_view event) {
  constexpr std::string_view kPid = "\"pid\":";
  const std::size_t at = event.rfind(kPid);
  if (at == std::string_view::npos) return {};
  const std::size_t start = at + kPid.size();
  const std::size_t end = event.find_first_not_of("0123456789", start);
  // At the top level if all that closes after it is the event itself.
  if (end == std::string_view::npos || event.find_first_of("{}[]", end) != event.size() - 1)
    return {};
  return event.substr(start, end - start);
}

// The event with the rank for its pid, member by member; as it is if that would take too much memory.
std::string WithPid(std::string_view event, std::int64_t rank, simdjson::dom::parser& parser) {
  simdjson::dom::object members;
  if (HasTooManyJsonValues(event) || parser.parse(event).get(members) != simdjson::SUCCESS)
    return std::string(event);
  JsonWriter changed;
  changed.BeginObject();
  for (const auto member : members) {
    if (member.key == "pid") continue;
    changed.Key(member.key).Raw(std::string(simdjson::minify(member.value)));
  }
  changed.Key("pid").Int(rank).EndObject();
  return changed.Take();
}

Result<void> AddWithPid(std::string_view event, std::int64_t rank, simdjson::dom::parser& parser,
                        EntryFile& all) {
  const std::string_view pid = FindPid(event);
  if (pid.empty()) return all.Add(WithPid(event, rank, parser));
  const fmt::format_int digits(rank);
  const auto start = static_cast<std::size_t>(pid.data() - event.data());
  return all.AddPieces(
      {event.substr(0, start), {digits.data(), digits.size()}, event.substr(start + pid.size())});
}

// Events of one participant, to its own file and to that of all (nullptr: there is none). `add_rest`
// adds what belongs to no participant to the file of a single one.
Result<void> WriteEvents(Database& database, const Directory& directory,
                         const Participant& participant, bool with_profile, FileWriter& out,
                         EntryFile* all, TimelineTracks* all_tracks,
                         const std::function<Result<void>(TimelineTracks&)>& add_rest = {}) {
  ASSIGN_OR_RETURN(RecordScan scan,
                   RecordScan::Open(database, participant, "p.content",
                                    "CROSS JOIN payload_row p ON p.id = r.payload_id",
                                    fmt::format("r.kind_id = {}", int{kTextChromiumEvent})));
  RETURN_IF_ERROR(out.Open(directory, "chromium_events.json"));
  simdjson::dom::parser parser;
  std::string event;
  bool is_first = true;
  out.Append('[');
  FOR_EACH_ROW(const AnyRow& row, std::move(scan)) {
    event.clear();
    // Damaged bytes in one event would make the whole file unreadable.
    const std::string_view content = row.Text("content");
    const bool is_text = row.IsText("content");
    const std::string repaired = is_text ? std::string() : SanitizeUtf8(content);
    if (!AppendJson(is_text ? content : repaired, JsonLayout::kCompact, event)) continue;
    out.Append(is_first ? "\n" : ",\n");
    out.Append(event);
    is_first = false;
    if (all == nullptr) continue;
    RETURN_IF_ERROR(participant.rank ? AddWithPid(event, *participant.rank, parser, *all)
                                     : all->Add(event));
  }
  TimelineTracks tracks(
      [&](std::string_view slice) {
        out.Append(is_first ? "\n" : ",\n");
        out.Append(slice);
        is_first = false;
        return Result<void>();
      },
      0);
  for (const ParticipantProcess& process : participant.processes) {
    if (!with_profile) break;
    RETURN_IF_ERROR(AddProfileEvents(database, process.id, process.pid, tracks));
    if (all == nullptr) continue;
    RETURN_IF_ERROR(AddProfileEvents(database, process.id, participant.rank.value_or(process.pid),
                                     *all_tracks));
  }
  if (add_rest) RETURN_IF_ERROR(add_rest(tracks));
  out.Append(is_first ? "]" : "\n]");
  return out.Close();
}

}  // namespace

Result<void> WriteChromiumEvents(Database& database, const Directory& root, std::int64_t run_id,
                                 const std::vector<Participant>& participants, bool all,
                                 bool with_profile) {
  EntryFile all_events(root, "chromium_events.json");
  TimelineTracks tracks([&](std::string_view slice) { return all_events.Add(slice); }, 0);
  FileWriter out;
  for (const Participant& participant : participants) {
    if (participant.directory.empty()) {
      RETURN_IF_ERROR(WriteEvents(database, root, participant, with_profile, out, nullptr, nullptr,
                                  [&](TimelineTracks& own) {
                                    return with_profile
                                               ? AddEventsWithoutLog(database, run_id, false, own)
                                               : Result<void>();
                                  }));
      continue;
    }
    ASSIGN_OR_RETURN(const Directory directory, MakeDirectory(root, participant));
    RETURN_IF_ERROR(WriteEvents(database, directory, participant, with_profile, out,
                                all ? &all_events : nullptr, &tracks));
  }
  if (with_profile && all)
    RETURN_IF_ERROR(AddEventsWithoutLog(database, run_id, !participants.empty(), tracks));
  return all_events.Close();
}

}  // namespace tlparse

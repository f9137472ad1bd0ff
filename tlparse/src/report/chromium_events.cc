// chromium_events.json: what the compiler's timeline viewers read.
#include <fmt/format.h>
#include <simdjson.h>

#include "base/utf8.h"
#include "report/entry_file.h"
#include "report/json_format.h"
#include "report/record_scan.h"
#include "report/report_context.h"
#include "store/database.h"
#include "store/text_pool.h"

namespace tlparse {
namespace {

// The place of the only top-level member "pid": a number, in a compact JSON object; npos if that is
// not plain to see.
std::size_t FindPid(std::string_view event, std::size_t& end) {
  constexpr std::string_view kPid = "\"pid\":";
  const std::size_t at = event.find(kPid);
  if (at == std::string_view::npos || event.find(kPid, at + 1) != std::string_view::npos) {
    return std::string_view::npos;
  }
  const std::size_t start = at + kPid.size();
  end = event.find_first_not_of("0123456789", start);
  if (end == start || end == std::string_view::npos) return std::string_view::npos;
  // At the top level if all that closes after it is the event itself.
  return event.find_first_of("{}[]", end) == event.size() - 1 ? start : std::string_view::npos;
}

void SetPid(std::string& event, std::int64_t rank, simdjson::dom::parser& parser) {
  std::size_t end = 0;
  const std::size_t start = FindPid(event, end);
  if (start != std::string::npos) {
    event.replace(start, end - start, std::to_string(rank));
    return;
  }
  simdjson::dom::object members;
  if (parser.parse(event).get(members) != simdjson::SUCCESS) return;
  std::string changed = "{";
  for (const auto member : members) {
    if (member.key == "pid") continue;
    changed += JsonString(member.key);
    changed += ':' + std::string(simdjson::minify(member.value)) + ',';
  }
  event = changed + fmt::format("\"pid\":{}}}", rank);
}

// Events of one participant, to its own file and to that of all (nullptr: there is none).
Result<void> WriteEvents(Database& database, const Directory& directory,
                         const Participant& participant, FileWriter& out, EntryFile* all) {
  ASSIGN_OR_RETURN(RecordScan scan,
                   RecordScan::Open(database, participant, "p.content",
                                    "CROSS JOIN payload_row p ON p.id = r.payload_id",
                                    fmt::format("r.kind_id = {}", int{kTextChromiumEvent})));
  const Statement& rows = scan.row();
  RETURN_IF_ERROR(out.Open(directory, "chromium_events.json"));
  simdjson::dom::parser parser;
  std::string event;
  bool is_first = true;
  out.Append('[');
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, scan.Step());
    if (!has_row) break;
    event.clear();
    // Damaged bytes in one event would make the whole file unreadable.
    const bool is_text = rows.ColumnType(0) == SQLITE_TEXT;
    const std::string repaired = is_text ? std::string() : SanitizeUtf8(rows.Text(0));
    if (!AppendJson(is_text ? rows.Text(0) : repaired, JsonLayout::kCompact, event)) continue;
    out.Append(is_first ? "\n" : ",\n");
    out.Append(event);
    is_first = false;
    if (all == nullptr) continue;
    if (participant.rank) SetPid(event, *participant.rank, parser);
    RETURN_IF_ERROR(all->Add(event));
  }
  out.Append(is_first ? "]" : "\n]");
  return out.Close();
}

}  // namespace

Result<void> WriteChromiumEvents(Database& database, const Directory& root,
                                 const std::vector<Participant>& participants, bool all) {
  EntryFile all_events(root, "chromium_events.json");
  FileWriter out;
  for (const Participant& participant : participants) {
    if (participant.directory.empty()) {
      RETURN_IF_ERROR(WriteEvents(database, root, participant, out, nullptr));
      continue;
    }
    ASSIGN_OR_RETURN(const Directory directory, root.Child(participant.directory));
    RETURN_IF_ERROR(
        WriteEvents(database, directory, participant, out, all ? &all_events : nullptr));
  }
  return all_events.Close();
}

}  // namespace tlparse

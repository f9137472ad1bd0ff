#include "report/viewer/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "facts/job/participants.h"
#include "queries/report/viewer/data.h"
#include "report/viewer/collectives.h"
#include "report/viewer/comparison.h"
#include "report/viewer/cost.h"
#include "report/viewer/findings.h"
#include "report/viewer/memory.h"
#include "report/viewer/slices.h"
#include "report/viewer/time.h"
#include "store/any_rows.h"

namespace tlparse {
namespace {

Error NoSuchChunk(std::string_view name) {
  return {ErrorCode::kNotFound, fmt::format("there is no chunk named '{}'", name.substr(0, 80))};
}

std::optional<std::int64_t> ParseId(std::string_view digits) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty() ||
      digits[0] == '-')
    return std::nullopt;
  return id > (std::int64_t{1} << 48) ? std::nullopt
                                      : std::optional(id);  // so that n·4096 cannot overflow
}

bool IsHexPrefix(std::string_view text) {
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), IsLowerHex);
}

// The earliest time of the run, so that times in chunks are short numbers.
constexpr const char* kOrigin =
    "WITH in_run(id) AS (SELECT p.id FROM process p JOIN log_file f ON f.id = p.log_file_id "
    "WHERE f.run_id = {}) SELECT coalesce((SELECT min(start_time_us) "
    "FROM compile WHERE process_id IN in_run), (SELECT CAST(min(start_us) AS INTEGER) "
    "FROM chromium_event WHERE process_id IN in_run), (SELECT min(time_us) FROM record "
    "WHERE process_id IN in_run), (SELECT min(start_us) FROM profile WHERE run_id = {}), 0)";

// Profiles that measured runs of code; the others are dumps and lists.
constexpr const char* kMeasuredProfiles =
    "SELECT id FROM profile WHERE run_id = {} AND kind IN (SELECT name FROM profile_kind "
    "WHERE has_times)";

// Of the allocator, that hold anything.
constexpr const char* kRecordings =
    "SELECT id FROM memory_snapshot WHERE run_id = {} AND (event_count > 0 OR end_bytes > 0)";

constexpr const char* kTorchLogBlocks =
    "SELECT DISTINCT id / 4096 AS id FROM torch_log_line_row "
    "WHERE profile_id IN (SELECT id FROM profile WHERE run_id = {})";

// Those that the page can choose: the latest has the chunk without a number.
constexpr const char* kEarlierLaunches =
    "SELECT ordinal AS id FROM launch "
    "WHERE run_id = {0} AND ordinal < (SELECT max(ordinal) FROM launch WHERE run_id = {0}) "
    "ORDER BY ordinal DESC LIMIT 50";

}  // namespace

Result<ViewerData> ViewerData::Open(Database& database, std::optional<std::int64_t> run_id,
                                    ViewerLayout layout) {
  if (!run_id) {
    ASSIGN_OR_RETURN(run_id, FindRun(database, {}));
  }
  ASSIGN_OR_RETURN(const std::int64_t found,
                   database.QueryInt(fmt::format("SELECT id FROM run WHERE id = {}", *run_id)));
  if (found == 0)
    return Fail(ErrorCode::kNotFound, fmt::format("{} holds no run {}", database.path(), *run_id));
  ViewerData data(database, found, std::move(layout));
  ASSIGN_OR_RETURN(data.origin_us_, database.QueryInt(fmt::format(kOrigin, found, found)));
  RETURN_IF_ERROR(data.FindLoneProcesses());
  return data;
}

Result<void> ViewerData::FindLoneProcesses() {
  std::unordered_set<std::int64_t> lone;
  std::int64_t longest_id = 0;  // of those so far the one that ends last
  std::int64_t longest_end = 0;
  FOR_EACH_ROW(const RecordsOfProcess& row, Query<RecordsOfProcess>(*database_)) {
    if (row.first_record_id > longest_end) {
      lone.insert(row.id);
    } else {
      lone.erase(longest_id);
    }
    if (row.last_record_id <= longest_end) continue;
    longest_id = row.id;
    longest_end = row.last_record_id;
  }
  lone_processes_ = std::make_shared<const std::unordered_set<std::int64_t>>(std::move(lone));
  return {};
}

Result<std::string> ViewerData::Chunk(std::string_view name) {
  const std::size_t slash = name.find('/');
  const std::string_view stem = name.substr(0, slash);
  const std::string_view part =
      slash == std::string_view::npos ? std::string_view() : name.substr(slash + 1);
  if (stem == "text" && IsHexPrefix(part)) return TextChunk(part);
  if (name == "findings")
    return FindingsChunk(*database_, run_id_, origin_us_, std::nullopt, watched_);
  if (stem == "findings") return FindingsOfLaunch(name, part);
  if (name == "collectives") return CollectivesChunk(*database_, run_id_, origin_us_);
  if (stem == "cost" || stem == "slices") return ProfileChunk(name, part);
  if (const auto recording = ParseId(part); stem == "memory" && recording)
    return MemoryChunk(*database_, run_id_, *recording);
  if (stem == "diff") return DiffChunk({database_, run_id_, served_}, part);
  if (name == "time") return TimeChunk(*database_, run_id_, std::nullopt);
  if (const auto process = ParseId(part); stem == "time" && process)
    return TimeChunk(*database_, run_id_, *process);
  if (stem == "trend" && !part.empty()) return TrendOf(name, part);
  const auto specs = ViewerChunkSpecs();
  const auto spec = std::find_if(specs.begin(), specs.end(),
                                 [&](const ViewerChunkSpec& s) { return s.name == stem; });
  if (spec == specs.end() ||
      (slash == std::string_view::npos) != (spec->range == ChunkRange::kNone)) {
    return tl::unexpected<Error>(NoSuchChunk(name));
  }
  std::optional<std::int64_t> id = 0;
  if (spec->range != ChunkRange::kNone) id = ParseId(part);
  if (!id) return tl::unexpected<Error>(NoSuchChunk(name));
  ASSIGN_OR_RETURN(const ViewerParameters parameters, ParametersFor(*spec, *id));
  ChunkWriter writer;
  for (const ViewerTable& table : spec->tables) {
    auto added = table.sql.empty() ? writer.AddFrames(*database_, table.name)
                                   : writer.AddTable(*database_, table.name, table.sql, parameters);
    if (!added) {
      Error error = std::move(added).error();
      error.message = fmt::format("viewer chunk {}, table {}: {}", name, table.name, error.message);
      return tl::unexpected<Error>(std::move(error));
    }
  }
  if (stem == "index") {
    RETURN_IF_ERROR(AddLayout(writer));
    RETURN_IF_ERROR(AddServedRuns(writer));
  }
  return writer.Finish();
}

Result<std::string> ViewerData::TrendOf(std::string_view name, std::string_view part) {
  const std::optional<std::int64_t> number = ParseId(part);
  const auto one = std::find_if(served_.begin(), served_.end(), [&](const NamedDatabase& database) {
    return number && database.number == *number;
  });
  if (one == served_.end()) return tl::unexpected<Error>(NoSuchChunk(name));
  return On(*one->database).Chunk("trend");
}

Result<std::string> ViewerData::ProfileChunk(std::string_view name, std::string_view part) {
  const std::optional<std::int64_t> id = ParseId(part);
  if (!id) return tl::unexpected<Error>(NoSuchChunk(name));
  ASSIGN_OR_RETURN(const std::int64_t found,
                   database_->QueryInt(fmt::format(kMeasuredProfiles, run_id_) +
                                       fmt::format(" AND id = {}", *id)));
  if (found == 0) return tl::unexpected<Error>(NoSuchChunk(name));
  return name.starts_with("cost") ? CostChunk(*database_, run_id_, *id, origin_us_)
                                  : SlicesChunk(*database_, run_id_, *id, origin_us_);
}

Result<std::string> ViewerData::FindingsOfLaunch(std::string_view name, std::string_view part) {
  const std::optional<std::int64_t> launch = ParseId(part);
  if (!launch) return tl::unexpected<Error>(NoSuchChunk(name));
  ASSIGN_OR_RETURN(const std::int64_t found,
                   database_->QueryInt(fmt::format("SELECT count(*) FROM launch WHERE run_id = {} "
                                                   "AND ordinal = {}",
                                                   run_id_, *launch)));
  if (found == 0) return tl::unexpected<Error>(NoSuchChunk(name));
  return FindingsChunk(*database_, run_id_, origin_us_, launch, std::nullopt);
}

Result<ViewerParameters> ViewerData::ParametersFor(const ViewerChunkSpec& spec,
                                                   std::int64_t id) const {
  std::int64_t first = id;
  std::int64_t last = id;
  if (spec.range == ChunkRange::kPer1024 || spec.range == ChunkRange::kPer4096) {
    const std::int64_t width = spec.range == ChunkRange::kPer1024 ? 1024 : 4096;
    first = id * width;
    last = first + width - 1;
  }
  // Those of processes are one process each, and may be many.
  for (const ViewerLayout::Block& block : layout_->blocks) {
    if (spec.range == ChunkRange::kProcess) break;
    if (block.kind == spec.name && block.first_id == id) last = block.last_id;
  }
  ViewerParameters parameters = {{":run", run_id_},
                                 {":origin", origin_us_},
                                 {":first", first},
                                 {":last", last},
                                 {":has_others", served_.empty() ? 0 : 1}};
  if (spec.range == ChunkRange::kProcess)
    parameters.emplace_back(":is_mixed", lone_processes_->contains(id) ? 0 : 1);
  if (spec.range == ChunkRange::kCompiles || spec.range == ChunkRange::kProcess) {
    // Nothing lies between 1 and 0.
    std::int64_t first_record = 1, last_record = 0;
    const auto take = [&](const auto& row) {
      if (!row) return;
      first_record = row->first_record_id.value_or(1);
      last_record = row->last_record_id.value_or(0);
    };
    if (spec.range == ChunkRange::kCompiles) {
      ASSIGN_OR_RETURN(const FirstRow<RecordsOfCompiles> row,
                       First(KeptQuery<RecordsOfCompiles>(
                           *database_, {.first = first, .last = last, .run_id = run_id_})));
      take(row);
    } else {
      ASSIGN_OR_RETURN(const FirstRow<RecordsOfProcesses> row,
                       First(KeptQuery<RecordsOfProcesses>(
                           *database_, {.first = first, .last = last, .run_id = run_id_})));
      take(row);
    }
    parameters.emplace_back(":first_record", first_record);
    parameters.emplace_back(":last_record", last_record);
  }
  return parameters;
}

Result<void> ViewerData::AddLayout(ChunkWriter& writer) {
  writer.BeginTable("setting", {"value"}, {"name"});
  const auto add = [&](std::string_view name, std::int64_t value) {
    writer.AddNumber(value);
    writer.AddText(name);
  };
  add("origin_us", origin_us_);
  add("text_prefix_digits", layout_->text_prefix_digits);
  add("text_alone_bytes", layout_->text_alone_bytes);
  writer.BeginTable("block", {"first_id"}, {"kind"});
  for (const ViewerLayout::Block& block : layout_->blocks) {
    writer.AddNumber(block.first_id);
    writer.AddText(block.kind);
  }
  return {};
}

Result<void> ViewerData::AddServedRuns(ChunkWriter& writer) {
  writer.BeginTable("served_run", {"database", "id", "is_current"}, {"database_name", "name"});
  for (const NamedDatabase& one : served_) {
    FOR_EACH_ROW(const RunOfDatabase& run, Query<RunOfDatabase>(*one.database)) {
      writer.AddNumber(one.number);
      writer.AddNumber(run.id);
      writer.AddNumber(std::int64_t{one.database == database_ && run.id == run_id_});
      writer.AddText(one.name);
      writer.AddText(run.name);
    }
  }
  return {};
}

Result<std::string> ViewerData::TextChunk(std::string_view prefix) {
  const std::string end = std::string(prefix) + "g";  // behind every hex digit
  ChunkWriter writer;
  writer.BeginTable("text", {"size_bytes", "is_binary"}, {"hash", "content"});
  FOR_EACH_ROW(const TextOfPage& row,
               Query<TextOfPage>(*database_, {.first = prefix, .end = end})) {
    writer.AddNumber(row.size_bytes);
    writer.AddNumber(row.is_binary);
    writer.AddNewText(row.hash);
    writer.AddNewText(row.content);
  }
  return writer.Finish();
}

// Blocks of 1024 records of which one at least is an event.
Result<void> ViewerData::AddArgumentNames(std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(PreparedQuery<EventOfBlock> events,
                   PreparedQuery<EventOfBlock>::Make(*database_));
  std::int64_t next = 0;
  FOR_EACH_ROW(const BlocksOfProcess& blocks,
               Query<BlocksOfProcess>(*database_, {.run_id = run_id_})) {
    for (next = std::max(next, blocks.first); next <= blocks.last; ++next) {
      ASSIGN_OR_RETURN(const FirstRow<EventOfBlock> event, First(events.Run({.block = next})));
      if (event) names.push_back(fmt::format("args/{}", next));
    }
  }
  return {};
}

Result<std::vector<std::string>> ViewerData::ChunkNames() {
  std::vector<std::string> names = {"findings",      "collectives", "export", "diff/ranks",
                                    "diff/launches", "diff/runs",   "time"};  // these take longest
  const auto add_ids = [&](std::string_view stem, const std::string& sql) -> Result<void> {
    FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(*database_, sql)) {
      names.push_back(fmt::format("{}/{}", stem, row.Int("id")));
    }
    return {};
  };
  for (const ViewerChunkSpec& spec : ViewerChunkSpecs()) {
    if (spec.range == ChunkRange::kNone && spec.name != "export") names.emplace_back(spec.name);
  }
  for (const ViewerLayout::Block& block : layout_->blocks) {
    names.push_back(fmt::format("{}/{}", block.kind, block.first_id));
    if (block.kind == "events" && block.first_id != 0)
      names.push_back(fmt::format("time/{}", block.first_id));
  }
  RETURN_IF_ERROR(add_ids("findings", fmt::format(kEarlierLaunches, run_id_)));
  RETURN_IF_ERROR(add_ids("cost", fmt::format(kMeasuredProfiles, run_id_)));
  RETURN_IF_ERROR(add_ids("slices", fmt::format(kMeasuredProfiles, run_id_)));
  RETURN_IF_ERROR(add_ids("memory", fmt::format(kRecordings, run_id_)));
  RETURN_IF_ERROR(add_ids("components", "SELECT DISTINCT id / 4096 AS id FROM component_row"));
  RETURN_IF_ERROR(AddArgumentNames(names));
  RETURN_IF_ERROR(add_ids(
      "import_log",
      fmt::format("SELECT DISTINCT id / 4096 AS id FROM import_log WHERE run_id = {}", run_id_)));
  RETURN_IF_ERROR(add_ids("torch_log", fmt::format(kTorchLogBlocks, run_id_)));
  return names;
}

}  // namespace tlparse

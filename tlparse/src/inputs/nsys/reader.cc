// nsys export --type sqlite: kernels, copies, the calls that launched them, and NVTX ranges. Its
// tables are made only where there is something to hold, and older exports lack columns: each is
// looked for before it is read. The database is opened read-only, its schema untrusted.
#include "inputs/nsys/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/plural.h"
#include "base/spilling_vector.h"
#include "base/utf8.h"
#include "inputs/join/join_profile.h"
#include "inputs/nsys/range.h"
#include "rows/profile.h"

namespace tlparse {
namespace nsys {
namespace {

std::string Rows(std::int64_t count) {
  return fmt::format("{} row{} left out", count, PluralS(count));
}

// The size that the header of a database gives; 0: it is none.
std::uint64_t SizeInHeader(std::string_view header) {
  if (header.size() < 32 || !header.starts_with("SQLite format 3")) return 0;
  const auto big_endian = [&](std::size_t at, std::size_t count) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < count; ++i)
      number = number << 8 | static_cast<unsigned char>(header[at + i]);
    return number;
  };
  const std::uint64_t page_size = big_endian(16, 2);
  return (page_size == 1 ? 65536 : page_size) * big_endian(28, 4);
}

// Whether SQLite can read the file itself: it is not compressed, and not cut.
bool IsWholeDatabase(const std::string& path) {
  char header[32] = {};
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::int64_t>(file.tellg());
  file.seekg(0);
  file.read(header, sizeof(header));
  const std::string_view text(header, sizeof(header));
  return text.starts_with("SQLite format 3") &&
         SizeInHeader(text) <= static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0));
}

// All bytes of the file, for their number and hash; `bytes`: where they are kept, if anywhere. The end
// of a database that is cut is filled with zeros: SQLite then reads what comes before it.
Result<std::size_t> ReadBytes(RuntimeContext& context, SpillingBytes* bytes) {
  std::string buffer(std::size_t{1} << 20, '\0');
  std::size_t size = 0;
  while (true) {
    ASSIGN_OR_RETURN(const std::size_t count, context.Read(buffer.data(), buffer.size()));
    if (count == 0) break;
    if (bytes != nullptr) {
      if (size + count > bytes->size())
        RETURN_IF_ERROR(bytes->Grow(std::max(size + count, 2 * bytes->size())));
      std::memcpy(bytes->data() + size, buffer.data(), count);
    }
    size += count;
  }
  if (bytes == nullptr || size == 0) return size;
  constexpr std::size_t kMostTimes = 16;  // of what is there
  const std::uint64_t whole = SizeInHeader({bytes->data(), std::min<std::size_t>(size, 32)});
  if (whole <= size || whole / kMostTimes > size) return size;
  RETURN_IF_ERROR(bytes->Grow(whole));
  std::memset(bytes->data() + size, 0, whole - size);
  return static_cast<std::size_t>(whole);
}

std::int64_t PidOf(std::int64_t global_id) { return global_id >> 24 & 0xFFFFFF; }

}  // namespace

std::optional<std::int64_t> NsysReader::Thread(std::optional<std::int64_t> global_tid,
                                               RuntimeContext& context) {
  if (!global_tid) return std::nullopt;
  const auto [found, is_new] = threads_.try_emplace(*global_tid, 0);
  if (is_new) {
    RowBatch& rows = context.rows();
    found->second = context.NextId(rows.TableOf<ProfileThreadRow>());
    const std::string pid = fmt::format("{}", PidOf(*global_tid)),
                      tid = fmt::format("{}", *global_tid & 0xFFFFFF);
    rows.Add(ProfileThreadRow{.id = found->second,
                              .profile_id = context.profile_id(),
                              .pid = RowText(pid),
                              .tid = RowText(tid)});
  }
  return found->second;
}

std::optional<std::int64_t> NsysReader::Correlation(std::optional<std::int64_t> number,
                                                    std::optional<std::int64_t> global_id) {
  if (!number) return std::nullopt;
  const auto [found, is_new] =
      pids_.try_emplace(global_id ? PidOf(*global_id) : 0, static_cast<std::int64_t>(pids_.size()));
  return *number | found->second << 40;
}

std::optional<NsysReader::Span> NsysReader::SpanOf(sqlite3_stmt* row, const std::string& table,
                                                   RuntimeContext& context) {
  ProfileFacts& facts = context.facts();
  ++facts.event_count;
  const std::optional<std::int64_t> start_ns = IntAt(row, 0), end_ns = IntAt(row, 1);
  if (!start_ns || !end_ns) {
    ++without_time_[table];
    return std::nullopt;
  }
  if (!IsTimeInRange(*start_ns, 0) || !IsTimeInRange(*end_ns, 0) ||
      !IsTimeInRange(*start_ns, *end_ns - *start_ns) || !durations_.Add(*end_ns - *start_ns)) {
    ++bad_times_[table];
    return std::nullopt;
  }
  const Span span{epoch_ns_ + *start_ns, *end_ns - *start_ns};
  const std::int64_t last_ns = span.start_ns + span.duration_ns;
  facts.start_ns = std::min(facts.start_ns.value_or(span.start_ns), span.start_ns);
  facts.end_ns = std::max(facts.end_ns.value_or(last_ns), last_ns);
  ++facts.kept_count;
  return span;
}

void NsysReader::ReportLeftOut(RuntimeContext& context) const {
  if (other_ranges_ > 0) {
    context.Log(ImportCode::kProfileEventsLeftOut,
                fmt::format("{} of NVTX_EVENTS: marks, or without a text", Rows(other_ranges_)));
  }
  for (const auto& [table, count] : without_time_) {
    context.Log(ImportCode::kProfileEventsLeftOut,
                fmt::format("{} of {}: without a start or an end", Rows(count), table));
  }
  for (const auto& [table, count] : bad_times_) {
    context.Log(ImportCode::kBadProfileEvent,
                fmt::format("{} of {}: an end before the start, or a time out of range",
                            Rows(count), table));
  }
}

// Rows of CUDA activities that no reader above takes.
Result<void> NsysReader::ReportUnread(NsysExport& file, RuntimeContext& context) const {
  std::vector<std::string> tables;
  RETURN_IF_ERROR(
      file.Query("SELECT name FROM sqlite_schema "
                 "WHERE type = 'table' AND name LIKE 'CUPTI~_ACTIVITY~_KIND~_%' ESCAPE '~' "
                 "ORDER BY name LIMIT 1000",
                 [&](sqlite3_stmt* row) -> Result<void> {
                   tables.emplace_back(TextAt(row, 0));
                   return {};
                 }));
  constexpr std::string_view kPrefix = "CUPTI_ACTIVITY_KIND_";
  for (const std::string& table : tables) {
    const std::string_view kind = std::string_view(table).substr(kPrefix.size());
    const bool is_launches = kind == "RUNTIME";
    if (kind == "KERNEL" || kind == "MEMCPY" || kind == "MEMSET" || kind == "GRAPH_TRACE" ||
        !std::all_of(kind.begin(), kind.end(),
                     [](char c) { return c == '_' || IsDigit(c) || IsUpperCase(c); }))
      continue;
    std::int64_t count = 0, duration_ns = 0;
    RETURN_IF_ERROR(file.Query(
        fmt::format(
            "SELECT count(*), CAST(total(iif(typeof({0}) = 'integer' AND typeof({1}) = 'integer' "
            "AND {1} >= {0} AND {1} - {0} <= 1 << 48, {1} - {0}, 0)) AS INTEGER) "
            "FROM {2} k",
            file.Column(table, "start", "k"), file.Column(table, "end", "k"), table),
        [&](sqlite3_stmt* row) -> Result<void> {
          count = IntAt(row, 0).value_or(0);
          duration_ns = IntAt(row, 1).value_or(0);
          return {};
        }));
    if (is_launches) count -= launches_, duration_ns -= launches_ns_;
    if (count <= 0) continue;
    context.facts().event_count += count;
    const bool is_known = is_launches || kind == "SYNCHRONIZATION";
    context.Log(
        is_known ? ImportCode::kProfileEventsLeftOut : ImportCode::kUnknownProfileEvent,
        fmt::format("{} of {}: {}{}", Rows(count), table,
                    is_launches                 ? "calls that queued nothing that is in the file"
                    : kind == "SYNCHRONIZATION" ? "waits of the CPU or of a stream for others"
                                                : "a table that is not read",
                    TimeInAll(duration_ns)));
  }
  return {};
}

Result<void> NsysReader::ReadFacts(NsysExport& file, RuntimeContext& context) {
  ProfileFacts& facts = context.facts();
  RETURN_IF_ERROR(file.Query("SELECT name, value FROM META_DATA_EXPORT",
                             [&](sqlite3_stmt* row) -> Result<void> {
                               if (TextAt(row, 0) == "EXPORT_SCHEMA_VERSION")
                                 facts.format_version = SanitizeUtf8(TextAt(row, 1));
                               return {};
                             }));
  bool has_epoch = false;
  if (file.Column("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "t") != "NULL") {
    RETURN_IF_ERROR(file.Query("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME",
                               [&](sqlite3_stmt* row) -> Result<void> {
                                 const std::optional<std::int64_t> epoch_ns = IntAt(row, 0);
                                 has_epoch = epoch_ns && IsTimeInRange(*epoch_ns, 0);
                                 epoch_ns_ = has_epoch ? *epoch_ns : 0;
                                 return {};
                               }));
  }
  if (!has_epoch)
    context.Log(ImportCode::kAssumedClock,
                "the export does not say when its session began; times count from its beginning");
  if (file.Column("TARGET_INFO_SYSTEM_ENV", "value", "t") != "NULL") {
    RETURN_IF_ERROR(file.Query("SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'",
                               [&](sqlite3_stmt* row) -> Result<void> {
                                 facts.host = SanitizeUtf8(TextAt(row, 0));
                                 return {};
                               }));
  }
  return {};
}

void NsysReader::AddRange(std::string_view text, const Span& span,
                          std::optional<std::int64_t> thread, RuntimeContext& context) {
  RowBatch& rows = context.rows();
  const NsysRange range = ParseNsysRange(text);
  if (range.slice) {
    CompiledSliceRow row{.id = context.NextId(rows.TableOf<CompiledSliceRow>()),
                         .profile_id = context.profile_id(),
                         .kind = *range.slice,
                         .start_ns = span.start_ns,
                         .duration_ns = span.duration_ns};
    row.name_id = context.OptionalText(range.name);
    row.thread_id = thread;
    row.sequence_number = range.sequence;
    rows.Add(row);
  } else if (range.is_op) {
    OpRunRow row{.id = context.NextId(rows.TableOf<OpRunRow>()),
                 .profile_id = context.profile_id(),
                 .name_id = context.Text(range.name),
                 .start_ns = span.start_ns,
                 .duration_ns = span.duration_ns};
    row.thread_id = thread;
    row.sequence_number = range.sequence;
    rows.Add(row);
  } else {
    AnnotationRow row{.id = context.NextId(rows.TableOf<AnnotationRow>()),
                      .profile_id = context.profile_id(),
                      .name_id = context.Text(range.name),
                      .start_ns = span.start_ns,
                      .duration_ns = span.duration_ns};
    row.thread_id = thread;
    row.step = range.step;
    rows.Add(row);
  }
}

Result<void> NsysReader::ReadRanges(NsysExport& file, RuntimeContext& context) {
  const std::string table = "NVTX_EVENTS";
  const auto column = [&](const char* name) { return file.Column(table, name, "k"); };
  if (column("start") == "NULL" || column("end") == "NULL") return {};
  const bool has_ids = column("textId") != "NULL" && file.Has("StringIds");
  const std::string text =
      has_ids ? fmt::format("coalesce({}, s.value)", column("text")) : column("text");
  return file.Query(fmt::format("SELECT k.start, k.end, {}, {}, {} FROM {} k {}{}",
                                column("globalTid"), column("eventType"), text, table,
                                has_ids ? "LEFT JOIN StringIds s ON s.id = k.textId" : "",
                                OfProcess(file, table)),
                    [&](sqlite3_stmt* row) -> Result<void> {
                      // 59: pushed and popped, 60: started and ended; marks and open ranges have no
                      // end.
                      const std::int64_t type = IntAt(row, 3).value_or(59);
                      if ((type != 59 && type != 60) || TextAt(row, 4).empty()) {
                        ++context.facts().event_count;
                        ++other_ranges_;
                        return {};
                      }
                      const std::optional<Span> span = SpanOf(row, table, context);
                      if (!span) return {};
                      AddRange(TextAt(row, 4), *span, Thread(IntAt(row, 2), context), context);
                      return context.Flush();
                    });
}

void NsysReader::StartPart() {
  threads_.clear();
  pids_.clear();
  durations_ = {};
  without_time_.clear();
  bad_times_.clear();
  other_ranges_ = 0;
}

Result<bool> NsysReader::Read(RuntimeContext& context) {
  ProfileFacts& facts = context.facts();
  facts.kind = "nsys";
  epoch_ns_ = launches_ = launches_ns_ = 0;
  StartPart();
  const bool is_plain = IsWholeDatabase(context.input().path);
  SpillingBytes unpacked(DirectoryOf(context.database()));
  ASSIGN_OR_RETURN(const std::size_t size, ReadBytes(context, is_plain ? nullptr : &unpacked));
  Result<NsysExport> file =
      is_plain ? NsysExport::Open(context.input().path)
               : NsysExport::OpenBytes(reinterpret_cast<unsigned char*>(unpacked.data()), size);
  RETURN_IF_ERROR(LogDamage(
      file ? ReadAll(*file, context) : Result<void>(tl::unexpected<Error>(file.error())), context));
  ReportLeftOut(context);
  return true;
}

}  // namespace nsys

std::unique_ptr<RuntimeReader> MakeNsysReader() { return std::make_unique<nsys::NsysReader>(); }

}  // namespace tlparse

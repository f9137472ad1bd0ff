// Flight-recorder dumps of c10d: a pickle of plain values (its frames tell the Python lines) or
// JSON (without frames). Versions 2.x; what an entry holds beyond the known fields is kept as JSON.
#include "inputs/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "artifacts/common/text/stack_pool.h"
#include "base/ascii.h"
#include "base/json_writer.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "inputs/common/measured_span.h"
#include "inputs/common/pickle_reader.h"
#include "inputs/common/plain_json.h"
#include "inputs/recorder/name.h"
#include "inputs/recorder/numbers.h"
#include "rows/profile.h"
#include "rows/recorder.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{64} << 20;
constexpr std::size_t kMostFramesOfEntry = 1024;

// The columns that a field of an entry is copied to.
constexpr std::array<std::string_view, 22> kKnownFields = {"record_id",
                                                           "pg_id",
                                                           "process_group",
                                                           "collective_seq_id",
                                                           "p2p_seq_id",
                                                           "op_id",
                                                           "profiling_name",
                                                           "is_p2p",
                                                           "retired",
                                                           "input_sizes",
                                                           "input_dtypes",
                                                           "output_sizes",
                                                           "output_dtypes",
                                                           "state",
                                                           "time_created_ns",
                                                           "time_discovered_started_ns",
                                                           "duration_ms",
                                                           "timeout_ms",
                                                           "time_discovered_completed_ns",
                                                           "thread_id",
                                                           "thread_name",
                                                           "frames"};

class RecorderReader final : public RuntimeReader {
 public:
  void Prepare(TableSet& tables) override {
    stacks_ = std::make_unique<StackPool>(tables);
    tables.Use<RecorderEntryRow>();
    tables.Use<CollectiveRunRow>();
  }
  Result<bool> Read(RuntimeContext& context) override;

 private:
  Result<void> AddEntries(const PlainValue& root, RuntimeContext& context);
  void LogLeftOut(RuntimeContext& context) const;
  void AddEntry(const PlainValue& entry, const EntryNumber& number, std::int64_t ordinal,
                RuntimeContext& context);
  std::optional<std::int64_t> Time(const PlainValue& value);
  std::optional<double> Duration(const PlainValue& value);
  std::optional<std::int64_t> Timeout(const PlainValue& value);
  std::optional<std::int64_t> AddStack(const PlainValue& frames, RuntimeContext& context);

  std::unique_ptr<StackPool> stacks_;
  std::int64_t bad_times_ = 0;  // of the file that is read
  std::int64_t left_out_ = 0;   // entries of it
};

// The whole file, or its first kMostFileBytes.
Result<std::string> ReadAll(RuntimeContext& context) {
  std::string bytes;
  while (bytes.size() < kMostFileBytes) {
    const std::size_t before = bytes.size();
    bytes.resize(std::min(kMostFileBytes, before + (std::size_t{1} << 20)));
    ASSIGN_OR_RETURN(const std::size_t count,
                     context.Read(bytes.data() + before, bytes.size() - before));
    bytes.resize(before + count);
    if (count == 0) return bytes;
  }
  // The rest is read for its hash.
  std::string rest(std::size_t{1} << 20, '\0');
  while (true) {
    ASSIGN_OR_RETURN(const std::size_t count, context.Read(rest.data(), rest.size()));
    if (count == 0) return bytes;
  }
}

// A time; 0 and None mean that the dump has none, as does a damaged one, which counts as bad.
std::optional<std::int64_t> RecorderReader::Time(const PlainValue& value) {
  const std::optional<std::int64_t> time = NumberOf(value);
  if (value.IsNull() || time == 0) return std::nullopt;
  if (time && *time > 0 && IsTimeInRange(*time, 0)) return time;
  ++bad_times_;
  return std::nullopt;
}

std::optional<std::int64_t> RecorderReader::Timeout(const PlainValue& value) {
  const std::optional<std::int64_t> timeout_ms = NumberOf(value);
  if (timeout_ms == -1) return std::nullopt;  // c10d's kUnsetTimeout
  if (value.IsNull() || (timeout_ms && *timeout_ms >= 0 && *timeout_ms < std::int64_t{1} << 40))
    return timeout_ms;
  ++bad_times_;
  return std::nullopt;
}

std::optional<double> RecorderReader::Duration(const PlainValue& value) {
  const std::optional<double> duration_ms = value.Real();
  if (value.IsNull() || (duration_ms && *duration_ms >= 0 && *duration_ms < 1e12))
    return duration_ms;
  ++bad_times_;
  return std::nullopt;
}

std::optional<std::int64_t> Flag(const PlainValue& value) {
  if (const std::optional<bool> flag = value.Bool()) return *flag ? 1 : 0;
  return std::nullopt;
}

std::optional<std::string> Text(const PlainValue& value) {
  if (const std::optional<std::string_view> text = value.Text()) return SanitizeUtf8(*text);
  if (const std::optional<std::int64_t> number = value.Int()) return fmt::format("{}", *number);
  return std::nullopt;
}

// Members of the dump other than its entries.
std::string Metadata(const PlainValue& root, bool is_pickle) {
  JsonWriter json;
  json.BeginObject().Key("form").String(is_pickle ? "pickle" : "json");
  for (std::size_t i = 0; i < std::min<std::size_t>(root.size(), 256); ++i) {
    const auto [key, value] = root.Member(i);
    const std::optional<std::string_view> name = key.Text();
    if (!name || *name == "entries" || *name == "version" || *name == "form") continue;
    if (const std::optional<std::string> written = JsonOf(value)) json.Key(*name).Raw(*written);
  }
  return json.EndObject().Take();
}

std::optional<std::int64_t> RecorderReader::AddStack(const PlainValue& frames,
                                                     RuntimeContext& context) {
  std::int64_t id = 0;
  // Innermost first in the dump; a stack is stored from its outermost frame on.
  for (std::size_t i = std::min(frames.size(), kMostFramesOfEntry); i > 0; --i) {
    const PlainValue frame = frames.At(i - 1);
    StackPool::Frame row;
    row.file = frame["filename"].Text();
    row.line = NumberOf(frame["line"]);
    row.function = frame["name"].Text().value_or("");
    id = stacks_->Child(context.rows(), id, row);
  }
  return id == 0 ? std::nullopt : std::optional(id);
}

// Members of unknown names, and known ones whose value no column takes.
std::optional<std::string> Extra(const PlainValue& entry) {
  JsonWriter json;
  json.BeginObject();
  bool has_any = false;
  for (std::size_t i = 0; i < entry.size(); ++i) {
    const auto [key, value] = entry.Member(i);
    const std::optional<std::string_view> name = key.Text();
    if (!name || std::find(kKnownFields.begin(), kKnownFields.end(), *name) != kKnownFields.end())
      continue;
    const std::optional<std::string> written = JsonOf(value);
    json.Key(*name).Raw(written ? *written : "null");
    has_any = true;
  }
  if (!has_any) return std::nullopt;
  return json.EndObject().Take();
}

void RecorderReader::AddEntry(const PlainValue& entry, const EntryNumber& number,
                              std::int64_t ordinal, RuntimeContext& context) {
  RowBatch& rows = context.rows();
  const PlainValue group = entry["process_group"];
  const std::optional<std::string> group_name = Text(group.At(0));
  const std::optional<std::string> name = Text(entry["profiling_name"]);
  const PlainValue sequence =
      entry.Has("collective_seq_id") ? entry["collective_seq_id"] : entry["seq_id"];
  const std::optional<std::string> input_sizes = JsonOf(entry["input_sizes"]);
  const std::optional<std::string> input_dtypes = JsonOf(entry["input_dtypes"]);
  const std::optional<std::string> output_sizes = JsonOf(entry["output_sizes"]);
  const std::optional<std::string> output_dtypes = JsonOf(entry["output_dtypes"]);
  const std::optional<std::string> state = Text(entry["state"]);
  const std::optional<std::string> thread_id = Text(entry["thread_id"]);
  const std::optional<std::string> thread_name = Text(entry["thread_name"]);
  const std::optional<std::string> extra = Extra(entry);
  const std::optional<std::int64_t> created_ns = Time(entry["time_created_ns"]);
  const std::optional<std::int64_t> completed_ns = Time(entry["time_discovered_completed_ns"]);
  const bool ends_before_it_began = created_ns && completed_ns && *completed_ns < *created_ns;
  if (ends_before_it_began) ++bad_times_;
  const auto text_id = [&](const std::optional<std::string>& text) {
    return text ? std::optional(context.Text(*text)) : std::nullopt;
  };
  RecorderEntryRow row{.id = context.NextId(rows.TableOf<RecorderEntryRow>()),
                       .profile_id = context.profile_id(),
                       .ordinal = ordinal};
  row.recorder_id = NumberOf(entry["record_id"]);
  row.pg_id = NumberOf(entry["pg_id"]);
  row.group_id = text_id(group_name);
  row.group_desc_id = text_id(Text(group.At(1)));
  row.collective_seq_id = NumberOf(sequence);
  row.p2p_seq_id = NumberOf(entry["p2p_seq_id"]);
  row.op_id = NumberOf(entry["op_id"]);
  row.profiling_name_id = text_id(name);
  row.is_p2p = Flag(entry["is_p2p"]);
  row.is_retired = Flag(entry["retired"]);
  row.input_sizes = input_sizes;
  row.input_dtypes = input_dtypes;
  row.output_sizes = output_sizes;
  row.output_dtypes = output_dtypes;
  row.state = state;
  row.time_created_ns = created_ns;
  row.time_discovered_started_ns = Time(entry["time_discovered_started_ns"]);
  row.time_discovered_completed_ns = completed_ns;
  row.duration_ms = Duration(entry["duration_ms"]);
  row.timeout_ms = Timeout(entry["timeout_ms"]);
  row.thread_id = thread_id;
  row.thread_name = thread_name;
  row.stack_id = AddStack(entry["frames"], context);
  row.extra = extra;
  rows.Add(row);

  CollectiveRunRow run{.id = context.NextId(rows.TableOf<CollectiveRunRow>()),
                       .is_p2p = number.is_p2p ? 1 : 0};
  run.profile_id = context.profile_id();
  run.entry_id = row.id.value();
  run.op_id = number.op.empty() ? row.profiling_name_id : context.Text(SanitizeUtf8(number.op));
  run.group_id = row.group_id;
  run.sequence_number = number.sequence;
  run.input_shapes = input_sizes;
  run.output_shapes = output_sizes;
  run.dtype_id = text_id(Text(entry["input_dtypes"].At(0)));
  run.state = state;
  run.start_ns = created_ns;
  if (!ends_before_it_began) run.end_ns = completed_ns;
  rows.Add(run);

  ProfileFacts& facts = context.facts();
  if (created_ns) {
    facts.start_ns = std::min(facts.start_ns.value_or(*created_ns), *created_ns);
    const std::int64_t last_ns = std::max(
        {*created_ns, completed_ns.value_or(0), row.time_discovered_started_ns.value_or(0)});
    facts.end_ns = std::max(facts.end_ns.value_or(last_ns), last_ns);
  }
  ++facts.kept_count;
}

Result<void> RecorderReader::AddEntries(const PlainValue& root, RuntimeContext& context) {
  bad_times_ = left_out_ = 0;
  const PlainValue entries = root["entries"];
  const std::vector<EntryNumber> numbers = NumberEntries(root, context.facts().rank);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const PlainValue entry = entries.At(i);
    ++context.facts().event_count;
    if (entry.type() != PlainValue::Type::kDict || entry.is_cut()) {
      if (!entry.is_cut()) ++left_out_;
      continue;
    }
    AddEntry(entry, numbers[i], static_cast<std::int64_t>(i), context);
    RETURN_IF_ERROR(context.Flush());
  }
  return {};
}

void RecorderReader::LogLeftOut(RuntimeContext& context) const {
  if (left_out_ > 0) {
    context.Log(ImportCode::kBadRuntimeFile,
                fmt::format("{} left out: no dict", CountWere(left_out_, "entry")));
  }
  if (bad_times_ > 0) {
    context.Log(
        ImportCode::kBadProfileEvent,
        fmt::format("{} of the entries' times {} impossible (not a time, negative, or an end "
                    "before the begin) and left out of the collectives",
                    bad_times_, bad_times_ == 1 ? "is" : "are"));
  }
}

// JSON dumps leave the list out where it is empty: pg_status then counts no collectives.
void LogNoEntries(const PlainValue& root, RuntimeContext& context) {
  const PlainValue status = root["pg_status"];
  bool is_empty = status.type() == PlainValue::Type::kDict;
  for (std::size_t i = 0; i < status.size(); ++i)
    is_empty &= NumberOf(status.Member(i).second["last_enqueued_collective"]).value_or(1) <= 0;
  if (is_empty) return;
  context.Log(ImportCode::kBadRuntimeFile,
              status.type() == PlainValue::Type::kDict
                  ? "the dump has no list of entries, although its pg_status counts collectives"
                  : "the dump has neither a list of entries nor pg_status");
}

// After the entries: how many were kept is known then.
void LogProblem(const PlainProblem& problem, std::string_view bytes, RuntimeContext& context) {
  ImportPlace place;
  place.byte_offset = problem.byte_offset;
  const std::int64_t kept = context.facts().kept_count;
  context.Log(problem.is_cut       ? ImportCode::kCutProfile
              : problem.is_refused ? ImportCode::kRefusedPickle
                                   : ImportCode::kBadRuntimeFile,
              fmt::format("{}; {} before it {} kept",
                          bytes.size() == kMostFileBytes
                              ? "the dump is larger than 64 MiB: its first part was read"
                              : problem.message,
                          Count(kept, "entry"), kept == 1 ? "was" : "were"),
              place, bytes.substr(static_cast<std::size_t>(problem.byte_offset), 64));
}

Result<bool> RecorderReader::Read(RuntimeContext& context) {
  RETURN_IF_ERROR(stacks_->Load(context.database()));
  ASSIGN_OR_RETURN(const std::string bytes, ReadAll(context));
  if (bytes.empty()) {
    context.facts().kind = "flight_recorder";
    context.facts().rank = RankFromDumpName(context.input().path);
    context.Log(ImportCode::kCutProfile,
                fmt::format("the recorder dump is empty (0 bytes): {} ended while it wrote it, or "
                            "the disk was full",
                            context.facts().rank ? fmt::format("rank {}", *context.facts().rank)
                                                 : std::string("its process")));
    return true;
  }
  const bool is_pickle = LooksLikePickle(bytes);
  const PlainDocument document = is_pickle ? ReadPickle(bytes) : ReadPlainJson(bytes);
  const PlainValue root = document.tree.root();
  ProfileFacts& facts = context.facts();
  facts.kind = "flight_recorder";
  facts.rank = RankFromDumpName(context.input().path);
  facts.format_version = Text(root["version"]).value_or("");
  facts.metadata = Metadata(root, is_pickle);
  const PlainValue entries = root["entries"];
  if (root.type() != PlainValue::Type::kDict ||
      (root.Has("entries") && entries.type() != PlainValue::Type::kList)) {
    if (document.problem)
      LogProblem(*document.problem, bytes, context);
    else
      context.Log(ImportCode::kBadRuntimeFile, "the dump has no list of entries");
    return true;
  }
  if (!root.Has("entries") && !document.problem) LogNoEntries(root, context);
  if (!facts.format_version.empty() && !facts.format_version.starts_with("2.")) {
    context.Log(
        ImportCode::kAssumedFormat,
        fmt::format("the dump has version {}; it was read like version 2", facts.format_version));
  }
  if (!facts.rank) {
    context.Log(ImportCode::kUnknownRank,
                "the file's name does not end in a rank, and a dump does not hold one");
  }
  RETURN_IF_ERROR(AddEntries(root, context));
  if (document.problem) LogProblem(*document.problem, bytes, context);
  LogLeftOut(context);
  return true;
}

}  // namespace

std::unique_ptr<RuntimeReader> MakeRecorderReader() { return std::make_unique<RecorderReader>(); }

}  // namespace tlparse

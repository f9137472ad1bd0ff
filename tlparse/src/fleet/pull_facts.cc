#include "fleet/pull_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

using Source = FleetColumn::Source;
using Type = FleetColumn::Type;

// A value of a row as it came.
struct Value {
  bool is_null = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text;
  Hash128 hash;
};

void ReadValue(RowBinaryReader& reader, const FleetColumn& column, Value& value) {
  value = {};
  if (column.is_nullable && column.type != Type::kHash) value.is_null = reader.UInt8() != 0;
  if (value.is_null) return;
  switch (column.type) {
    case Type::kInt:
      value.integer = reader.Int64();
      break;
    case Type::kReal:
      value.real = reader.Real();
      break;
    case Type::kHash:
      value.hash = reader.Hash();
      break;
    default:
      value.text = reader.Text();
  }
}

// How one column of the database is made from the columns of the fleet's table.
struct Target {
  const SqliteColumn* column = nullptr;
  int value = -1;  // index of the value; -1: the server has none
  int hash = -1;   // index of the hash beside it
  int is_blob = -1;
  Type type = Type::kInt;
  bool is_own_id = false;
};

// Writes the rows of one table.
class TableWriter {
 public:
  TableWriter(PulledRun& run, const FleetTable& table, std::size_t load, LoadIds& ids,
              const std::string& host)
      : run_(run), table_(table), load_(load), ids_(ids), host_(host) {
    for (std::size_t i = 0; i < table.sqlite_columns.size(); ++i) {
      Target target;
      target.column = &table.sqlite_columns[i];
      target.is_own_id = table.has_id && target.column->name == "id";
      for (std::size_t c = 0; c < table.columns.size(); ++c) {
        const FleetColumn& column = table.columns[c];
        if (column.sqlite_column != static_cast<int>(i)) continue;
        if (column.source == Source::kColumn) {
          target.value = static_cast<int>(c);
          target.type = column.type;
        } else if (column.source == Source::kHash) {
          target.hash = static_cast<int>(c);
        } else if (column.source == Source::kIsBlob) {
          target.is_blob = static_cast<int>(c);
        }
      }
      targets_.push_back(target);
    }
    values_.resize(table.columns.size());
    is_pool_ = table.kind == FleetTable::Kind::kPool;
  }

  Result<void> Prepare() {
    // A pool's rows may be there from another load.
    std::string sql =
        is_pool_ || table_.name == "cache_key_set" ? "INSERT OR IGNORE INTO " : "INSERT INTO ";
    sql += table_.sqlite_name + " VALUES (";
    for (std::size_t i = 0; i < targets_.size(); ++i) sql += i == 0 ? "?" : ", ?";
    ASSIGN_OR_RETURN(insert_, run_.database.Prepare(sql + ")"));
    return {};
  }

  Result<void> Read(RowBinaryReader& reader) {
    for (std::size_t i = 0; i < values_.size(); ++i)
      ReadValue(reader, table_.columns[i], values_[i]);
    if (reader.is_short() || reader.is_damaged()) return {};
    ++run_.rows;
    if (table_.name == "text") {
      ASSIGN_OR_RETURN(
          [[maybe_unused]] const std::int64_t id,
          run_.texts.Intern(ValueOf("text").text, load_ == 0 ? ValueOf("id").integer : 0));
      return {};
    }
    bool is_new = true;
    if (table_.name == "content") is_new = InternContent();
    if (table_.name == "cache_key") is_new = InternKey();
    if (table_.name == "run") is_new = InternRun();
    if (table_.name == "launch" && run_.has_several_loads) is_new = false;
    // Of ranks that are not wanted.
    if (table_.name == "payload_content" && run_.payloads.Find(ValueOf("payload_hash").hash) == 0)
      is_new = false;
    if (table_.name == "log_file" && !WantsLog(ValueOf("id").integer)) is_new = false;
    if (!is_new) return {};
    for (std::size_t i = 0; i < targets_.size(); ++i)
      RETURN_IF_ERROR(Bind(static_cast<int>(i) + 1, targets_[i]));
    return insert_.Run();
  }

  void SetLogs(const std::set<std::int64_t>* logs) { logs_ = logs; }

 private:
  const Value& ValueOf(std::string_view column) const {
    for (std::size_t i = 0; i < table_.columns.size(); ++i)
      if (table_.columns[i].name == column) return values_[i];
    static const Value kNone{true, 0, 0, {}, {}};
    return kNone;
  }

  bool WantsLog(std::int64_t id) const { return logs_ == nullptr || logs_->count(id) > 0; }

  bool InternContent() {
    SequenceHash hash;
    hash.Add(ValueOf("kind").text);
    hash.Add(ValueOf("hash").text);
    bool is_new = false;
    const std::int64_t wished = ValueOf("id").integer;
    ids_.contents[wished] = own_id_ = run_.contents.Intern(hash.Digest(), wished, is_new);
    return is_new;
  }
  bool InternKey() {
    bool is_new = false;
    const std::int64_t wished = ValueOf("id").integer;
    ids_.keys[wished] = own_id_ = run_.keys.Intern(HashBytes(ValueOf("key").text), wished, is_new);
    return is_new;
  }
  // All loads are of one run.
  bool InternRun() {
    const bool is_new = run_.run_id == 0;
    if (is_new) run_.run_id = ValueOf("id").integer;
    own_id_ = run_.run_id;
    return is_new;
  }

  std::int64_t Shift(std::string_view table) {
    const auto found = ids_.shift.find(table);
    return found == ids_.shift.end() ? 0 : found->second;
  }

  Result<std::int64_t> Translate(const Target& target, std::int64_t id) {
    const SqliteColumn& column = *target.column;
    if (target.is_own_id) {
      if (table_.name == "content" || table_.name == "cache_key" || table_.name == "run")
        return own_id_;
      return id + Shift(table_.name);
    }
    switch (column.reference) {
      case ColumnReference::kContent: {
        const auto found = ids_.contents.find(id);
        return found == ids_.contents.end() ? id : found->second;
      }
      case ColumnReference::kKey: {
        const auto found = ids_.keys.find(id);
        return found == ids_.keys.end() ? id : found->second;
      }
      case ColumnReference::kPayload: {
        bool is_new = false;
        return run_.payloads.Intern(HashBeside(target), id, is_new);
      }
      case ColumnReference::kComponentSet: {
        bool is_new = false;
        return run_.sets.Intern(HashBeside(target), id, is_new);
      }
      case ColumnReference::kOwned: {
        const std::int64_t content = ContentBeside(target);
        const auto& bases = run_.id_base[column.referenced];
        const auto base = bases.find(content);
        return base == bases.end() ? 0 : base->second + 1 + id;
      }
      case ColumnReference::kFact:
        return column.referenced == "run" ? run_.run_id : id + Shift(column.referenced);
      default:
        return id;
    }
  }

  Hash128 HashBeside(const Target& target) const {
    return target.hash < 0 ? Hash128{} : values_[static_cast<std::size_t>(target.hash)].hash;
  }
  std::int64_t ContentBeside(const Target& target) const {
    const auto found = content_of_hash_.find(HashBeside(target));
    return found == content_of_hash_.end() ? 0 : found->second;
  }

 public:
  // Contents by hash alone, for rows below them that facts refer to.
  std::unordered_map<Hash128, std::int64_t, Hash128Hasher> content_of_hash_;

 private:
  Result<void> Bind(int parameter, const Target& target) {
    if (target.value < 0) {
      insert_.BindNull(parameter);
      return {};
    }
    const Value& value = values_[static_cast<std::size_t>(target.value)];
    const std::string& name = target.column->name;
    // Ranges of contents and launches of one load mean nothing in a run of several.
    const bool is_of_load =
        run_.has_several_loads &&
        ((table_.name == "log_file" && (name == "first_content_id" || name == "last_content_id")) ||
         target.column->referenced == "launch");
    if (value.is_null || is_of_load) {
      insert_.BindNull(parameter);
      return {};
    }
    if (target.column->reference == ColumnReference::kText) {
      ASSIGN_OR_RETURN(const std::int64_t id, run_.texts.Intern(value.text, 0));
      insert_.Bind(parameter, id);
      return {};
    }
    switch (target.type) {
      case Type::kInt: {
        ASSIGN_OR_RETURN(const std::int64_t id, Translate(target, value.integer));
        insert_.Bind(parameter, id);
        return {};
      }
      case Type::kReal:
        insert_.Bind(parameter, value.real);
        return {};
      default:
        if (target.is_blob >= 0 && values_[static_cast<std::size_t>(target.is_blob)].integer == 1) {
          insert_.BindBlob(parameter, value.text);
        } else if (table_.name == "log_file" && name == "path" && load_ > 0) {
          BindPath(parameter, value.text);
        } else {
          insert_.Bind(parameter, value.text);
        }
        return {};
    }
  }

  // Hosts may have logs of one name.
  void BindPath(int parameter, std::string_view path) {
    path_ = path;
    if (Result<Statement*> find =
            run_.database.PrepareKept("SELECT 1 FROM log_file WHERE path = ? AND run_id = ?")) {
      (*find)->Bind(1, std::string_view(path_));
      (*find)->Bind(2, run_.run_id);
      const Result<bool> exists = (*find)->Step();
      if (exists && *exists) {
        (*find)->Reset();
        path_ = fmt::format("{}:{}", host_.empty() ? std::to_string(load_ + 1) : host_, path);
        (*find)->Bind(1, std::string_view(path_));
        const Result<bool> again = (*find)->Step();
        if (again && *again) path_ = fmt::format("{} (push {})", path_, load_ + 1);
      }
      (*find)->Reset();
    }
    insert_.Bind(parameter, std::string_view(path_));
  }

  PulledRun& run_;
  const FleetTable& table_;
  std::size_t load_;
  LoadIds& ids_;
  const std::string& host_;
  std::vector<Target> targets_;
  std::vector<Value> values_;
  Statement insert_;
  bool is_pool_ = false;
  std::int64_t own_id_ = 0;
  std::string path_;
  const std::set<std::int64_t>* logs_ = nullptr;
};

bool HasColumn(const FleetTable& table, std::string_view name) {
  return std::any_of(table.columns.begin(), table.columns.end(),
                     [&](const FleetColumn& column) { return column.name == name; });
}

}  // namespace

std::string OfLoad(const PushRow& load) {
  return fmt::format("job = {} AND day = {} AND run_id = {} AND load_id = {}", QuoteText(load.job),
                     QuoteDay(load.day), QuoteUuid(ToText(load.run_id)), load.load_id);
}

std::string OfRanks(const RankRanges& ranks) {
  std::string condition;
  for (const auto& [first, last] : ranks)
    condition += fmt::format("{}(process_rank >= {} AND process_rank <= {})",
                             condition.empty() ? "" : " OR ", first, last);
  return condition.empty() ? condition : "(" + condition + ")";
}

Result<void> FactPuller::PullTable(const FleetTable& table, const PushRow& load, std::size_t index,
                                   LoadIds& ids) {
  // What the push wrote is counted in its row: nothing was written to other tables.
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < std::min(load.tables.size(), load.row_counts.size()); ++i)
    if (load.tables[i] == table.name) expected = load.row_counts[i];
  if (expected == 0) return {};
  if (on_progress_) on_progress_(run_.rows, table.name);
  TableWriter writer(run_, table, index, ids, load.host);
  RETURN_IF_ERROR(writer.Prepare());
  std::set<std::int64_t> logs;
  const bool is_filtered = !ranks_.empty();
  std::string where = OfLoad(load);
  if (is_filtered && HasColumn(table, "process_rank")) where += " AND " + OfRanks(ranks_);
  if (is_filtered && (table.name == "log_file" || HasColumn(table, "log_file_id"))) {
    ASSIGN_OR_RETURN(
        [[maybe_unused]] const std::uint64_t count,
        StreamRows(run_.client,
                   fmt::format("SELECT DISTINCT log_file_id FROM process WHERE {} AND {}",
                               OfLoad(load), OfRanks(ranks_)),
                   run_.limit, [&](RowBinaryReader& reader) -> Result<void> {
                     const std::int64_t id = reader.Int64();
                     if (!reader.is_short()) logs.insert(id);
                     return {};
                   }));
    if (table.name == "log_file") writer.SetLogs(&logs);
  }
  for (const FleetColumn& column : table.columns) {
    if (column.source != Source::kHash ||
        table.sqlite_columns[static_cast<std::size_t>(column.sqlite_column)].reference !=
            ColumnReference::kOwned)
      continue;
    ASSIGN_OR_RETURN(Statement read, run_.database.Prepare("SELECT id, hash FROM content_row"));
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, read.Step());
      if (!has_row) break;
      if (const std::optional<Hash128> hash = FromHex(read.Text(1)))
        writer.content_of_hash_[*hash] = read.Int(0);
    }
    break;
  }
  std::string select = "SELECT ";
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    select += (i == 0 ? "" : ", ") + QuoteName(table.columns[i].name);
  select += fmt::format(" FROM {} WHERE {}", QuoteName(table.name), where);
  if (!table.order_by.empty()) {
    select += " ORDER BY ";
    for (std::size_t i = 0; i < table.order_by.size(); ++i)
      select += (i == 0 ? "" : ", ") + QuoteName(table.order_by[i]);
  }
  ASSIGN_OR_RETURN(const std::uint64_t rows,
                   StreamRows(run_.client, select, run_.limit,
                              [&](RowBinaryReader& reader) { return writer.Read(reader); }));
  if (rows != expected && !(is_filtered && rows < expected))
    return Fail(
        ErrorCode::kRefused,
        fmt::format("{}: {} rows of load {} in {}, {} were pushed: the server lost some, or was "
                    "interrupted; pull again",
                    run_.client.url(), rows, load.load_id, table.name, expected));
  return {};
}

Result<void> FactPuller::SetShifts(const std::vector<PushRow>& loads, std::vector<LoadIds>& ids) {
  if (loads.size() < 2) return {};
  std::map<std::uint64_t, std::size_t> place;
  for (std::size_t i = 0; i < loads.size(); ++i) place[loads[i].load_id] = i;
  const PushRow& first = loads.front();
  for (const FleetTable& table : run_.schema.tables) {
    const bool is_numbered = table.has_id && table.name != "run" && table.name != "launch" &&
                             (table.kind == FleetTable::Kind::kFact || table.name == "stack_frame");
    if (!is_numbered) continue;
    // Not all records are pushed, and facts refer to those that are not.
    const std::string from = table.name == "record" ? "max(ifNull(last_record_id, 0)) FROM log_file"
                                                    : "max(id) FROM " + QuoteName(table.name);
    std::vector<std::int64_t> last(loads.size(), 0);
    ASSIGN_OR_RETURN(
        [[maybe_unused]] const std::uint64_t rows,
        StreamRows(
            run_.client,
            fmt::format("SELECT load_id, {} WHERE job = {} AND day = {} AND run_id = {} GROUP BY "
                        "load_id",
                        from, QuoteText(first.job), QuoteDay(first.day),
                        QuoteUuid(ToText(first.run_id))),
            run_.limit, [&](RowBinaryReader& reader) -> Result<void> {
              const std::uint64_t load = reader.UInt64();
              const std::int64_t id = reader.Int64();
              const auto found = place.find(load);
              if (!reader.is_short() && found != place.end()) last[found->second] = id;
              return {};
            }));
    std::int64_t shift = 0;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      ids[i].shift[table.name] = shift;
      shift += last[i];
    }
  }
  return {};
}

Result<void> FactPuller::PullPools(const PushRow& load, std::size_t index, LoadIds& ids) {
  constexpr std::array<std::string_view, 4> kPools = {"text", "content", "cache_key",
                                                      "stack_frame"};
  for (const std::string_view name : kPools) {
    // Strings that are not referred to again are of no use to a second load.
    if (name == "text" && index > 0) continue;
    if (const FleetTable* table = run_.schema.Find(name))
      RETURN_IF_ERROR(PullTable(*table, load, index, ids));
  }
  return {};
}

Result<void> FactPuller::PullFacts(const PushRow& load, std::size_t index, LoadIds& ids) {
  for (const FleetTable& table : run_.schema.tables)
    if (table.kind == FleetTable::Kind::kFact) RETURN_IF_ERROR(PullTable(table, load, index, ids));
  if (const FleetTable* table = run_.schema.Find("payload_content"))
    RETURN_IF_ERROR(PullTable(*table, load, index, ids));
  return {};
}

}  // namespace tlparse

#include "fleet/table_writer.h"

#include <fmt/format.h>

namespace tlparse {
namespace {

using Source = FleetColumn::Source;
using Type = FleetColumn::Type;

bool IsOfLaunches(std::string_view table) { return table == "launch" || table == "role"; }

}  // namespace

void TableWriter::ReadValue(RowBinaryReader& reader, const FleetColumn& column, Value& value) {
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

TableWriter::TableWriter(PulledRun& run, const FleetTable& table, std::size_t load, LoadIds& ids,
                         const std::string& host, const ContentIds& contents)
    : contents_(contents), run_(run), table_(table), load_(load), ids_(ids), host_(host) {
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

Result<void> TableWriter::Prepare() {
  // A pool's rows may be there from another load.
  std::string sql =
      is_pool_ || table_.name == "cache_key_set" ? "INSERT OR IGNORE INTO " : "INSERT INTO ";
  sql += table_.sqlite_name + " VALUES (";
  for (std::size_t i = 0; i < targets_.size(); ++i) sql += i == 0 ? "?" : ", ?";
  ASSIGN_OR_RETURN(insert_, run_.database.Prepare(sql + ")"));
  return {};
}

Result<void> TableWriter::Read(RowBinaryReader& reader) {
  for (std::size_t i = 0; i < values_.size(); ++i) ReadValue(reader, table_.columns[i], values_[i]);
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
  // Launches and roles of one load mean nothing in a run of several.
  if (IsOfLaunches(table_.name) && run_.has_several_loads) is_new = false;
  // Of ranks that are not wanted.
  if (table_.name == "payload_content" && run_.payloads.Find(ValueOf("payload_hash").hash) == 0)
    is_new = false;
  if (table_.name == "log_file" && !WantsLog(ValueOf("id").integer)) is_new = false;
  if (!is_new) return {};
  for (std::size_t i = 0; i < targets_.size(); ++i)
    RETURN_IF_ERROR(Bind(static_cast<int>(i) + 1, targets_[i]));
  return insert_.Run();
}

const TableWriter::Value& TableWriter::ValueOf(std::string_view column) const {
  for (std::size_t i = 0; i < table_.columns.size(); ++i)
    if (table_.columns[i].name == column) return values_[i];
  static const Value kNullValue{true, 0, 0, {}, {}};
  return kNullValue;
}

bool TableWriter::InternContent() {
  SequenceHash hash;
  hash.Add(ValueOf("kind").text);
  hash.Add(ValueOf("hash").text);
  bool is_new = false;
  const std::int64_t wished = ValueOf("id").integer;
  ids_.contents[wished] = own_id_ = run_.contents.Intern(hash.Digest(), wished, is_new);
  return is_new;
}

bool TableWriter::InternKey() {
  bool is_new = false;
  const std::int64_t wished = ValueOf("id").integer;
  ids_.keys[wished] = own_id_ = run_.keys.Intern(HashBytes(ValueOf("key").text), wished, is_new);
  return is_new;
}

bool TableWriter::InternRun() {
  const bool is_new = run_.run_id == 0;
  if (is_new) run_.run_id = ValueOf("id").integer;
  own_id_ = run_.run_id;
  return is_new;
}

std::int64_t TableWriter::Shift(std::string_view table) {
  const auto found = ids_.shift.find(table);
  return found == ids_.shift.end() ? 0 : found->second;
}

Result<std::int64_t> TableWriter::Translate(const Target& target, std::int64_t id) {
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

Hash128 TableWriter::HashBeside(const Target& target) const {
  return target.hash < 0 ? Hash128{} : values_[static_cast<std::size_t>(target.hash)].hash;
}

std::int64_t TableWriter::ContentBeside(const Target& target) const {
  const auto found = contents_.find(HashBeside(target));
  return found == contents_.end() ? 0 : found->second;
}

Result<void> TableWriter::Bind(int parameter, const Target& target) {
  if (target.value < 0) {
    insert_.BindNull(parameter);
    return {};
  }
  const Value& value = values_[static_cast<std::size_t>(target.value)];
  const std::string& name = target.column->name;
  // Nor do ranges of contents.
  const bool is_of_load =
      run_.has_several_loads &&
      ((table_.name == "log_file" && (name == "first_content_id" || name == "last_content_id")) ||
       IsOfLaunches(target.column->referenced));
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

void TableWriter::BindPath(int parameter, std::string_view path) {
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

}  // namespace tlparse

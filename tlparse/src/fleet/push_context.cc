#include "fleet/push_context.h"

#include <fmt/format.h>

#include "store/any_rows.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostTextBytes = std::size_t{24} << 20;

template <typename T>
T& At(std::vector<T>& rows, std::int64_t id) {
  if (static_cast<std::size_t>(id) >= rows.size())
    rows.resize(static_cast<std::size_t>(id) + 1 + rows.size() / 4);
  return rows[static_cast<std::size_t>(id)];
}

template <typename T>
const T* Find(const std::vector<T>& rows, std::int64_t id) {
  return id >= 0 && static_cast<std::size_t>(id) < rows.size() ? &rows[static_cast<std::size_t>(id)]
                                                               : nullptr;
}

template <typename Use>
Result<void> ForEach(Database& database, const std::string& sql, const Use& use) {
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(database, sql)) use(row);
  return {};
}

// The storage table of a public name in this database.
std::string Storage(const FleetSchema& schema, std::string_view name) {
  const FleetTable* table = schema.Find(name);
  return table == nullptr ? std::string(name) : table->sqlite_name;
}

}  // namespace

Result<PoolTexts> PoolTexts::Load(Database& database, const std::string& table) {
  PoolTexts cache;
  cache.database_ = &database;
  cache.sql_ = fmt::format("SELECT text FROM {} WHERE id = ?", table);
  RETURN_IF_ERROR(
      ForEach(database, fmt::format("SELECT id, text FROM {}", table), [&](const AnyRow& read) {
        const std::string_view text = read.Text("text");
        Place& place = At(cache.places_, read.Int("id"));
        if (cache.kept_.size() + text.size() > kMostTextBytes) {
          place.begin = kAbsent;
          return;
        }
        place = {static_cast<std::uint32_t>(cache.kept_.size()),
                 static_cast<std::uint32_t>(text.size())};
        cache.kept_ += text;
      }));
  return cache;
}

Result<std::string_view> PoolTexts::Get(std::int64_t id) {
  const Place* const place = Find(places_, id);
  if (place == nullptr) return std::string_view();
  if (place->begin != kAbsent) return std::string_view(kept_).substr(place->begin, place->size);
  ASSIGN_OR_RETURN(other_, database_->QueryText(sql_, id));
  return std::string_view(other_);
}

std::int32_t PushContext::Intern(std::string_view name) {
  const auto found = name_ids_.find(name);
  if (found != name_ids_.end()) return found->second;
  const auto id = static_cast<std::int32_t>(names_.size());
  names_.emplace_back(name);
  name_ids_.emplace(name, id);
  return id;
}

Result<PushContext> PushContext::Make(Database& database, const FleetSchema& schema,
                                      const RunSelection& run) {
  ASSIGN_OR_RETURN(PoolTexts texts, PoolTexts::Load(database, Storage(schema, "text")));
  PushContext context(database, run, std::move(texts));
  context.record_sql_ =
      fmt::format("SELECT process_id FROM {} WHERE id = ?", Storage(schema, "record"));
  context.payload_sql_ = "SELECT hash FROM payload_row WHERE id = ?";
  RETURN_IF_ERROR(context.LoadCompiles(schema));
  RETURN_IF_ERROR(context.LoadContents());
  RETURN_IF_ERROR(context.LoadComponents());
  RETURN_IF_ERROR(context.LoadOwned(schema));
  return context;
}

Result<void> PushContext::LoadCompiles(const FleetSchema& schema) {
  RETURN_IF_ERROR(
      ForEach(*database_,
              fmt::format("SELECT id, process_id, function, label, generation, duration_us FROM {}",
                          Storage(schema, "compile")),
              [&](const AnyRow& read) {
                Compile& compile = At(compiles_, read.Int("id"));
                compile.process = static_cast<std::int32_t>(read.Int("process_id"));
                compile.function = read.IsNull("function") ? -1 : Intern(read.Text("function"));
                compile.label = Intern(read.Text("label"));
                compile.generation = static_cast<std::int32_t>(read.Int("generation"));
                compile.duration_us = read.OptionalInt("duration_us").value_or(kNone);
              }));
  return ForEach(*database_,
                 fmt::format("SELECT id, compile_id, direction FROM {}", Storage(schema, "graph")),
                 [&](const AnyRow& read) {
                   Graph& graph = At(graphs_, read.Int("id"));
                   graph.compile = read.Int("compile_id");
                   graph.direction = read.IsNull("direction") ? -1 : Intern(read.Text("direction"));
                 });
}

Result<void> PushContext::LoadContents() {
  RETURN_IF_ERROR(ForEach(*database_, "SELECT id, hash FROM content_row", [&](const AnyRow& read) {
    const std::string_view hash = read.Text("hash");
    At(content_hashes_, read.Int("id")) = FromHex(hash).value_or(HashBytes(hash));
  }));
  return ForEach(*database_,
                 "SELECT payload_id, min(content_id) AS content_id "
                 "FROM payload_content_row GROUP BY payload_id",
                 [&](const AnyRow& read) {
                   At(content_of_payload_, read.Int("payload_id")) =
                       static_cast<std::int32_t>(read.Int("content_id"));
                 });
}

Result<void> PushContext::LoadComponents() {
  RETURN_IF_ERROR(ForEach(*database_,
                          "SELECT c.id, t.text AS name, c.hash, c.value "
                          "FROM component_row c JOIN text_row t ON t.id = c.name_id",
                          [&](const AnyRow& read) {
                            SequenceHash hash;
                            hash.Add(read.Text("name"));
                            // A component without a hash is identified by its text, in which
                            // U+FFFC replaces the device index.
                            hash.Add(std::int64_t{read.IsNull("hash")});
                            hash.Add(read.IsNull("hash") ? read.Text("value") : read.Text("hash"));
                            At(component_keys_, read.Int("id")) = hash.Digest();
                          }));
  RETURN_IF_ERROR(ForEach(*database_,
                          "SELECT component_set_id, component_id "
                          "FROM component_set_member ORDER BY component_set_id, ordinal",
                          [&](const AnyRow& read) {
                            sets_[read.Int("component_set_id")].push_back(read.Int("component_id"));
                          }));
  for (const auto& [set, components] : sets_) {
    SequenceHash hash;
    for (const std::int64_t component : components) {
      const Hash128 key = ComponentKey(component);
      hash.Add(static_cast<std::int64_t>(key.low));
      hash.Add(static_cast<std::int64_t>(key.high));
    }
    At(set_keys_, set) = hash.Digest();
  }
  return {};
}

Result<void> PushContext::LoadOwned(const FleetSchema& schema) {
  for (const FleetTable& table : schema.tables) {
    if (table.kind != FleetTable::Kind::kContent || !table.has_id) continue;
    std::vector<Owned>& rows = owned_[table.name];
    std::int64_t content = -1;
    std::int64_t number = 0;
    RETURN_IF_ERROR(ForEach(
        *database_,
        fmt::format("SELECT id, content_id FROM {} ORDER BY content_id, id", table.sqlite_name),
        [&](const AnyRow& read) {
          const std::int64_t of_row = read.Int("content_id");
          number = of_row == content ? number + 1 : 0;
          content = of_row;
          At(rows, read.Int("id")) = {content, number};
        }));
  }
  return {};
}

std::int64_t PushContext::ProcessOfCompile(std::int64_t compile) const {
  const Compile* const found = Find(compiles_, compile);
  return found == nullptr ? kNone : found->process;
}

std::int64_t PushContext::CompileOfGraph(std::int64_t graph) const {
  const Graph* const found = Find(graphs_, graph);
  return found == nullptr ? kNone : found->compile;
}

Result<std::int64_t> PushContext::ProcessOfRecord(std::int64_t record) {
  ASSIGN_OR_RETURN(Statement* const read, database_->PrepareKept(record_sql_));
  read->Bind(1, record);
  ASSIGN_OR_RETURN(const bool has_row, read->Step());
  const std::int64_t process = has_row ? ReadColumn<std::int64_t>(*read, 0) : kNone;
  read->Reset();
  return process;
}

std::int64_t PushContext::ProcessOf(const std::string& table, std::int64_t id) const {
  const auto rows = process_of_.find(table);
  if (rows == process_of_.end()) return kNone;
  const std::int32_t* const found = Find(rows->second, id);
  return found == nullptr ? kNone : *found - 1;
}

void PushContext::SetProcess(const std::string& table, std::int64_t id, std::int64_t process) {
  At(process_of_[table], id) = static_cast<std::int32_t>(process) + 1;
}

std::string_view PushContext::Function(std::int64_t compile) const {
  const Compile* const found = Find(compiles_, compile);
  return found == nullptr ? std::string_view() : Name(found->function);
}

std::string_view PushContext::Label(std::int64_t compile) const {
  const Compile* const found = Find(compiles_, compile);
  return found == nullptr ? std::string_view() : Name(found->label);
}

std::int64_t PushContext::Generation(std::int64_t compile) const {
  const Compile* const found = Find(compiles_, compile);
  return found == nullptr ? 0 : found->generation;
}

std::int64_t PushContext::CompileUs(std::int64_t compile) const {
  const Compile* const found = Find(compiles_, compile);
  return found == nullptr ? kNone : found->duration_us;
}

std::string_view PushContext::Direction(std::int64_t graph) const {
  const Graph* const found = Find(graphs_, graph);
  return found == nullptr ? std::string_view() : Name(found->direction);
}

std::int64_t PushContext::NextLookup(std::int64_t compile, std::int64_t layer, std::int64_t graph) {
  const Graph* const found = Find(graphs_, graph);
  return lookups_[{compile, layer, found == nullptr ? -1 : found->direction}]++;
}

Hash128 PushContext::ContentHash(std::int64_t content) const {
  const Hash128* const found = Find(content_hashes_, content);
  return found == nullptr ? Hash128{} : *found;
}

Result<Hash128> PushContext::PayloadHash(std::int64_t payload) {
  if (payload == last_payload_) return last_payload_hash_;
  ASSIGN_OR_RETURN(Statement* const read, database_->PrepareKept(payload_sql_));
  read->Bind(1, payload);
  ASSIGN_OR_RETURN(const bool has_row, read->Step());
  last_payload_ = payload;
  last_payload_hash_ =
      has_row ? FromHex(ReadColumn<std::string_view>(*read, 0)).value_or(Hash128{}) : Hash128{};
  read->Reset();
  return last_payload_hash_;
}

Hash128 PushContext::PayloadContent(std::int64_t payload) const {
  const std::int32_t* const content = Find(content_of_payload_, payload);
  return content == nullptr ? Hash128{} : ContentHash(*content);
}

Hash128 PushContext::SetKey(std::int64_t set) const {
  const Hash128* const found = Find(set_keys_, set);
  return found == nullptr ? Hash128{} : *found;
}

Hash128 PushContext::ComponentKey(std::int64_t component) const {
  const Hash128* const found = Find(component_keys_, component);
  return found == nullptr ? Hash128{} : *found;
}

const PushContext::Owned* PushContext::FindOwned(const std::string& table, std::int64_t id) const {
  const auto rows = owned_.find(table);
  return rows == owned_.end() ? nullptr : Find(rows->second, id);
}

}  // namespace tlparse

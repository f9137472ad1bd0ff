#include "inputs/input_step.h"

#include <fmt/format.h>

#include <utility>

#include "base/file_hash.h"
#include "queries/inputs/input_step.h"
#include "rows/profile.h"

namespace tlparse {
namespace {

// Between the path of a file and the name of a part of it.
constexpr std::string_view kPartMark = "#";

}  // namespace

// One file on its way through its reader.
class OpenProfile final : public RuntimeContext {
 public:
  OpenProfile(RuntimeStep& step, RuntimeStep::Load& load, const RuntimeInput& input,
              std::unique_ptr<InputStream> stream,
              const std::function<void(std::int64_t)>& on_progress)
      : step_(step),
        load_(load),
        input_(input),
        stream_(std::move(stream)),
        on_progress_(on_progress),
        rows_(step.tables_),
        path_(input.path),
        profile_id_(NextId(step.profile_table_)) {}

  const RuntimeInput& input() const override { return input_; }
  const RuntimeOptions& options() const override { return load_.options; }
  std::int64_t run_id() const override { return load_.run_id; }
  std::int64_t profile_id() const override { return profile_id_; }
  ProfileFacts& facts() override { return facts_; }
  RowBatch& rows() override { return rows_; }
  std::int64_t NextId(TableId table) override { return step_.next_ids_[table]++; }
  TextPool& texts() override { return load_.texts; }
  Database& database() override { return load_.database; }

  Result<std::size_t> Read(char* buffer, std::size_t capacity) override {
    if (is_ended_) return std::size_t{0};
    Result<std::size_t> count = stream_->Read(buffer, capacity);
    if (!count) {
      is_ended_ = is_damaged_ = true;
      Log(ImportCode::kDamagedInput, count.error().message, {}, {}, 1);
      return std::size_t{0};
    }
    hash_.Add({buffer, *count});
    size_bytes_ += static_cast<std::int64_t>(*count);
    if (on_progress_) on_progress_(stream_->compressed_bytes_read());
    return count;
  }

  bool is_damaged() const override { return is_damaged_; }

  Result<void> Flush() override { return rows_.IsFull() ? Write() : Result<void>(); }

  void Log(ImportCode code, std::string_view message, ImportPlace place, std::string_view text,
           std::int64_t line_count) override {
    constexpr std::size_t kMostText = 4096;
    place.profile_id = profile_id_;
    load_.import_log.Add(rows_, std::nullopt, place, code, message, text.substr(0, kMostText),
                         line_count);
  }

  Result<void> Write() override {
    RETURN_IF_ERROR(load_.writer.Insert(rows_));
    rows_.Clear();
    return {};
  }

  Result<void> BeginPart(std::string_view name) override {
    if (path_ != input_.path) {
      RETURN_IF_ERROR(Finish());
      profile_id_ = NextId(step_.profile_table_);
      facts_ = ProfileFacts();
    }
    path_ = fmt::format("{}{}{}", input_.path, kPartMark, name);
    return {};
  }

  // The file's own row, and what is left to be written.
  Result<void> Finish() {
    const auto text_or_null = [](const std::string& text) {
      return text.empty() ? std::nullopt : std::optional<RowText>(text);
    };
    const auto us = [&](std::optional<std::int64_t> ns) {
      return ns ? std::optional(*ns / 1000) : std::nullopt;
    };
    rows_.Add(ProfileRow{.id = profile_id_,
                         .run_id = load_.run_id,
                         .path = path_,
                         .kind = StaticText{facts_.kind},
                         .rank = facts_.rank,
                         .pid = facts_.pid,
                         .start_us = us(facts_.start_ns),
                         .end_us = us(facts_.end_ns),
                         .event_count = facts_.event_count,
                         .kept_count = facts_.kept_count,
                         .clock_offset_us = 0,
                         .own_rank = facts_.rank,
                         .world_size = facts_.world_size,
                         .host = text_or_null(facts_.host),
                         .format_version = text_or_null(facts_.format_version),
                         .size_bytes = size_bytes_,
                         .compression = StaticText{stream_->compression()},
                         .content_hash = hash_.Hex(),
                         .metadata = text_or_null(facts_.metadata)});
    return Write();
  }

 private:
  RuntimeStep& step_;
  RuntimeStep::Load& load_;
  const RuntimeInput& input_;
  std::unique_ptr<InputStream> stream_;
  const std::function<void(std::int64_t)>& on_progress_;
  RowBatch rows_;
  std::string path_;
  std::int64_t profile_id_;
  ProfileFacts facts_;
  ByteHash hash_;
  std::int64_t size_bytes_ = 0;
  bool is_ended_ = false;
  bool is_damaged_ = false;
};

RuntimeStep::RuntimeStep(TableSet& tables)
    : tables_(tables), profile_table_(tables.Use<ProfileRow>()) {
  for (const InputKind kind : RuntimeKinds()) {
    readers_.emplace_back(kind, MakeRuntimeReader(kind));
    readers_.back().second->Prepare(tables);
  }
}

RuntimeReader* RuntimeStep::Find(InputKind kind) {
  for (const auto& [known, reader] : readers_) {
    if (known == kind) return reader.get();
  }
  return nullptr;
}

Result<void> RuntimeStep::LoadIds(Database& database) {
  if (!next_ids_.empty()) return {};
  for (const TableSet::Table& table : tables_.tables()) {
    ASSIGN_OR_RETURN(
        const std::int64_t has_id,
        database.QueryInt(fmt::format(
            "SELECT count(*) FROM pragma_table_info('{}') WHERE name = 'id'", table.name)));
    std::int64_t last = 0;
    if (has_id != 0) {
      ASSIGN_OR_RETURN(last,
                       database.QueryInt(fmt::format("SELECT max(id) FROM \"{}\"", table.name)));
    }
    next_ids_.push_back(last + 1);
  }
  return {};
}

Result<bool> RuntimeStep::Read(const RuntimeInput& input, Load& load,
                               const std::function<void(std::int64_t)>& on_progress) {
  RuntimeReader* const reader = Find(input.kind);
  if (reader == nullptr)
    return Fail(ErrorCode::kInternal, fmt::format("'{}': no reader for its kind", input.path));
  RETURN_IF_ERROR(LoadIds(load.database));
  ASSIGN_OR_RETURN(std::unique_ptr<InputStream> stream, OpenInput(input.path));
  OpenProfile profile(*this, load, input, std::move(stream), on_progress);
  ASSIGN_OR_RETURN(const bool is_kept, reader->Read(profile));
  if (is_kept) {
    RETURN_IF_ERROR(profile.Finish());
    return true;
  }
  RowBatch rows(tables_);
  load.import_log.Add(rows, std::nullopt, {.path = input.path}, ImportCode::kSkippedFile,
                      profile.facts().kind);
  RETURN_IF_ERROR(load.writer.Insert(rows));
  return false;
}

namespace {

// Every table whose rows belong to one profile.
Result<std::vector<std::string>> OwnedTables(Database& database) {
  std::vector<std::string> tables;
  FOR_EACH_ROW(const TableOfProfiles& row, Query<TableOfProfiles>(database)) {
    tables.emplace_back(row.name);
  }
  return tables;
}

}  // namespace

Result<void> RemoveProfile(Database& database, std::int64_t id) {
  ASSIGN_OR_RETURN(const std::vector<std::string> tables, OwnedTables(database));
  struct Link {
    const char *table, *key, *row;
  };
  for (const auto& [link, key, row] :
       {Link{"compiled_slice_link_row", "slice_id", "compiled_slice_row"},
        Link{"kernel_run_link_row", "kernel_run_id", "kernel_run_row"},
        Link{"kernel_module_link_row", "kernel_run_id", "kernel_run_row"},
        Link{"module_link_row", "frame_id", "python_frame_row"},
        Link{"op_run_link_row", "op_run_id", "op_run_row"},
        Link{"collective_run_link_row", "collective_run_id", "collective_run_row"}}) {
    RETURN_IF_ERROR(database.Execute(
        fmt::format("DELETE FROM {} WHERE {} IN (SELECT id FROM {} WHERE profile_id = {})", link,
                    key, row, id)));
  }
  for (const std::string& table : tables) {
    RETURN_IF_ERROR(
        database.Execute(fmt::format("DELETE FROM \"{}\" WHERE profile_id = {}", table, id)));
  }
  return database.Execute(fmt::format("DELETE FROM profile WHERE id = {}", id));
}

Result<bool> ReplaceChangedProfile(Database& database, std::int64_t run_id,
                                   const std::string& path) {
  ASSIGN_OR_RETURN(const std::string hash, HashFile(path));
  const std::string parts = path + std::string(kPartMark);
  std::vector<std::int64_t> earlier;
  FOR_EACH_ROW(
      const EarlierInput& row,
      Query<EarlierInput>(database,
                          {.run_id = run_id, .path = path, .parts = parts, .content_hash = hash})) {
    if (row.is_same) return true;
    earlier.push_back(row.id);
  }
  for (const std::int64_t id : earlier) RETURN_IF_ERROR(RemoveProfile(database, id));
  return false;
}

}  // namespace tlparse

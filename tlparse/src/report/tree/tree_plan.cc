#include "report/tree/tree_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "queries/report/tree/tree_plan.h"
#include "report/file_draft.h"
#include "report/tree/file_name.h"
#include "report/tree/json_format.h"
#include "report/tree/record_scan.h"
#include "store/database.h"
#include "store/text_pool.h"

namespace tlparse {
namespace {

std::string Part(const std::optional<std::int64_t>& id) {
  return id ? std::to_string(*id) : std::string("-");
}

struct KeyIds {
  std::optional<std::int64_t> compiled_autograd;
  std::optional<std::int64_t> frame;
  std::optional<std::int64_t> frame_compile;
};

std::string DirectoryName(const KeyIds& ids, const std::optional<std::int64_t>& attempt) {
  return fmt::format("{}_{}_{}_{}", Part(ids.compiled_autograd), Part(ids.frame),
                     Part(ids.frame_compile), Part(attempt));
}

std::string KeyText(const KeyIds& ids, const std::optional<std::int64_t>& attempt) {
  return fmt::format("[{}{}/{}{}]",
                     ids.compiled_autograd ? fmt::format("!{}/", *ids.compiled_autograd) : "",
                     Part(ids.frame), Part(ids.frame_compile),
                     attempt.value_or(0) != 0 ? fmt::format("_{}", *attempt) : "");
}

// Text search instead of a parse: metadata comes before `rank`, and quotes inside strings are
// escaped. A member of that name inside metadata may be taken for it, which only decides whether
// the record's file is numbered in place or at the end.
bool HasOwnRank(std::string_view envelope) {
  return envelope.rfind("\"rank\":") != std::string_view::npos;
}

class Planner {
 public:
  Planner(const Participant& participant, const ReportOptions& options, MemoryBudget& budget)
      : participant_(participant), options_(options), budget_(budget), drafter_(options) {}

  Result<TreePlan> Run(Database& database);

 private:
  Result<void> LoadCompiles(Database& database);
  Result<FileRule> RuleOf(std::int64_t kind_id);
  // Key and directory of a compile id with attempt.
  std::pair<std::uint32_t, std::uint32_t> Place(std::int64_t compile_id,
                                                const std::optional<std::int64_t>& attempt);
  std::uint32_t DirectoryIndex(const std::string& name);
  Result<void> PlanRecord(const AnyRow& row);
  // Whether the peer drops a record for want of a rank.
  bool LacksRank(std::string_view envelope);
  // `file` has record, payload, directory and key of its record.
  Result<void> Number(FileDraft draft, PlannedFile file);
  Result<void> NumberStackTraces(PlannedFile& file, const std::string& stem);

  const Participant& participant_;
  const ReportOptions& options_;
  MemoryBudget& budget_;
  TreePlan plan_;
  FileDrafter drafter_;
  std::optional<TextCache> texts_;
  std::optional<PayloadReader> payloads_;
  std::unordered_map<std::int64_t, FileRule> rules_;
  std::unordered_map<std::int64_t, KeyIds> compiles_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::uint32_t, std::uint32_t>> places_;
  std::unordered_map<std::string, std::uint32_t> directory_ids_;
  std::unordered_map<std::string, std::uint32_t> key_ids_;
  std::unordered_set<std::int64_t> payload_files_;
  UniqueNames dump_names_;
  std::unordered_map<std::uint32_t, UniqueNames> diff_names_;  // by directory
  std::vector<std::pair<FileDraft, PlannedFile>> late_;        // of records that the peer drops
  bool rank_seen_ = false;
  std::int32_t count_ = 0;
};

Result<void> Planner::LoadCompiles(Database& database) {
  for (const ReportProcess& process : participant_.processes) {
    FOR_EACH_ROW(const CompileOfTree& row,
                 Query<CompileOfTree>(database, {.process_id = process.id})) {
      compiles_.emplace(row.id,
                        KeyIds{row.compiled_autograd_id, row.frame_id, row.frame_compile_id});
    }
  }
  return {};
}

Result<FileRule> Planner::RuleOf(std::int64_t kind_id) {
  const auto known = rules_.find(kind_id);
  if (known != rules_.end()) return known->second;
  ASSIGN_OR_RETURN(const std::string_view kind, texts_->Get(kind_id));
  return rules_.emplace(kind_id, RuleOfKind(kind, options_)).first->second;
}

std::uint32_t Planner::DirectoryIndex(const std::string& name) {
  const auto [at, added] =
      directory_ids_.emplace(name, static_cast<std::uint32_t>(plan_.directories.size()));
  if (added) {
    plan_.directories.push_back(name);
    plan_.compiles.emplace_back();
  }
  return at->second;
}

std::pair<std::uint32_t, std::uint32_t> Planner::Place(std::int64_t compile_id,
                                                       const std::optional<std::int64_t>& attempt) {
  const auto found = compiles_.find(compile_id);
  const KeyIds ids = found == compiles_.end() ? KeyIds() : found->second;
  const std::pair<std::int64_t, std::int64_t> key_of_place(
      found == compiles_.end() ? 0 : compile_id, attempt.value_or(-1));
  const auto known = places_.find(key_of_place);
  if (known != places_.end()) return known->second;
  const std::string key = KeyText(ids, attempt);
  const auto [at, added] = key_ids_.emplace(key, static_cast<std::uint32_t>(plan_.keys.size()));
  if (added) plan_.keys.push_back(PlannedKey{key, {}});
  const std::pair place(at->second, DirectoryIndex(DirectoryName(ids, attempt)));
  places_.emplace(key_of_place, place);
  return place;
}

Result<void> Planner::NumberStackTraces(PlannedFile& file, const std::string& stem) {
  if (file.payload_id == 0) return {};
  ASSIGN_OR_RETURN(const std::string_view json, payloads_->Content(file.payload_id));
  const bool is_json = IsJson(json);
  payloads_->Release();
  if (!is_json) return {};
  // The page takes the next number; the artifact takes the one after it.
  file.readable_name = SafeFileName(stem, fmt::format("_{}_readable.html", count_));
  ++count_;
  return {};
}

Result<void> Planner::Number(FileDraft draft, PlannedFile file) {
  file.form = draft.form;
  file.before_id = draft.before_id;
  file.is_artifact_of_record = draft.is_artifact_of_record;
  if (draft.place == FilePlace::kDumps) file.directory = DirectoryIndex("dump_file");
  bool is_listed = true;
  switch (file.form) {
    case FileForm::kPayload: {
      if (file.payload_id == 0) return {};
      ASSIGN_OR_RETURN(const std::int64_t size_bytes, payloads_->SizeBytes(file.payload_id));
      if (size_bytes == 0) return {};
      is_listed = false;
      file.directory = DirectoryIndex("payloads");
      ASSIGN_OR_RETURN(file.name, payloads_->Hash(file.payload_id));
      file.name += draft.extension;
      // One file per payload, however many records have it: later ones only refer to it.
      if (!payload_files_.insert(file.payload_id).second) file.payload_id = 0;
      break;
    }
    case FileForm::kDumpPage:
      file.name = dump_names_.Next(draft.stem, draft.extension);
      break;
    case FileForm::kPassDiffPage:
      file.name = diff_names_[file.directory].Next(draft.stem, draft.extension);
      break;
    case FileForm::kLink:
      file.name = std::move(draft.stem);
      file.payload_id = static_cast<std::int64_t>(plan_.link_urls.size());
      plan_.link_urls.push_back(std::move(draft.url));
      break;
    default:
      file.name = SafeFileName(draft.stem, fmt::format("_{}{}", count_, draft.extension));
      if (file.form == FileForm::kStackTraces) {
        RETURN_IF_ERROR(NumberStackTraces(file, draft.stem));
      }
  }
  if (is_listed) {
    file.number = count_++;
    plan_.keys[file.key].files.push_back(static_cast<std::uint32_t>(plan_.files.size()));
  }
  plan_.files.push_back(std::move(file));
  return {};
}

bool Planner::LacksRank(std::string_view envelope) {
  if (!participant_.rank_in_records) return false;
  const bool has_rank = HasOwnRank(envelope);
  const bool lacks = rank_seen_ && !has_rank;
  rank_seen_ |= has_rank;
  return lacks;
}

// Columns as Run asks for them.
Result<void> Planner::PlanRecord(const AnyRow& row) {
  const std::int64_t kind_id = row.Int("kind_id");
  const std::int64_t compile_id = row.Int("compile_id");
  ASSIGN_OR_RETURN(const FileRule rule, RuleOf(kind_id));
  PlannedFile file;
  file.record_id = row.Int("id");
  file.payload_id = row.Int("payload_id");
  std::tie(file.key, file.directory) = Place(compile_id, row.OptionalInt("attempt"));
  if (options_.inductor_provenance && compile_id != 0) {
    std::vector<std::int64_t>& compiles = plan_.compiles[file.directory];
    if (std::find(compiles.rbegin(), compiles.rend(), compile_id) == compiles.rend()) {
      compiles.push_back(compile_id);
    }
  }
  std::string_view envelope;
  if (rule != FileRule::kChromium || participant_.rank_in_records) envelope = row.Text("envelope");
  ASSIGN_OR_RETURN(const std::string_view kind, texts_->Get(kind_id));
  const bool lacks_rank = LacksRank(envelope);
  RecordDrafts& drafts = drafter_.Draft(rule, kind, envelope, file.payload_id);
  for (FileDraft& draft : drafts.files) {
    if (drafts.is_lost || lacks_rank) {
      late_.emplace_back(std::move(draft), file);
    } else {
      RETURN_IF_ERROR(Number(std::move(draft), file));
    }
  }
  return {};
}

Result<TreePlan> Planner::Run(Database& database) {
  ASSIGN_OR_RETURN(texts_, TextCache::Open(database));
  ASSIGN_OR_RETURN(payloads_, PayloadReader::Open(database, &budget_));
  RETURN_IF_ERROR(LoadCompiles(database));
  ASSIGN_OR_RETURN(RecordScan scan,
                   RecordScan::Open(database, participant_,
                                    "r.id, r.kind_id, r.compile_id, r.attempt, r.payload_id, "
                                    "r.envelope",
                                    "", fmt::format("r.kind_id IS NOT {}", int{kTextStr})));
  FOR_EACH_ROW(const AnyRow& row, std::move(scan)) {
    RETURN_IF_ERROR(PlanRecord(row));
  }
  for (auto& [draft, file] : late_) RETURN_IF_ERROR(Number(std::move(draft), std::move(file)));
  return std::move(plan_);
}

}  // namespace

Result<TreePlan> PlanTree(Database& database, const Participant& participant,
                          const ReportOptions& options, MemoryBudget& budget) {
  return Planner(participant, options, budget).Run(database);
}

std::string_view CacheSuffix(std::string_view path) {
  if (path.find("cache_miss") != std::string_view::npos) return "\u274C";
  if (path.find("cache_hit") != std::string_view::npos) return "\u2705";
  if (path.find("cache_bypass") != std::string_view::npos) return "\u2753";
  return {};
}

}  // namespace tlparse

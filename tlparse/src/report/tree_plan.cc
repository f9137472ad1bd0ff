#include "report/tree_plan.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "report/file_name.h"
#include "report/json_format.h"
#include "report/lenient_json.h"
#include "report/record_scan.h"
#include "store/database.h"
#include "store/text_pool.h"

namespace tlparse {
namespace {

// What a record key becomes; kOther: only a file in payloads/, if it has a payload.
enum class Rule : std::uint8_t {
  kOther,
  kText,
  kGraphDump,  // named by metadata.name
  kSplitChild,
  kGuards,
  kCode,
  kMetrics,
  kArtifact,
  kDump,
  kLink,
  kChromium,
  kSymbol,
};

Rule NormalRule(std::string_view kind) {
  static constexpr std::array<std::string_view, 10> kTexts = {
      "optimize_ddp_split_graph", "compiled_autograd_graph", "aot_forward_graph",
      "aot_backward_graph",       "aot_inference_graph",     "aot_joint_graph",
      "inductor_post_grad_graph", "inductor_pre_grad_graph", "dynamo_cpp_guards_str",
      "dynamo_output_graph"};
  for (const std::string_view text : kTexts) {
    if (kind == text) return Rule::kText;
  }
  if (kind == "artifact") return Rule::kArtifact;
  if (kind == "graph_dump") return Rule::kGraphDump;
  if (kind == "optimize_ddp_split_child") return Rule::kSplitChild;
  if (kind == "dynamo_guards") return Rule::kGuards;
  if (kind == "inductor_output_code") return Rule::kCode;
  if (kind == "compilation_metrics" || kind == "bwd_compilation_metrics" ||
      kind == "aot_autograd_backward_compilation_metrics") {
    return Rule::kMetrics;
  }
  if (kind == "dump_file") return Rule::kDump;
  if (kind == "link") return Rule::kLink;
  return Rule::kOther;
}

Rule ExportRule(std::string_view kind) {
  if (kind == "exported_program") return Rule::kText;
  if (kind == "guard_added" || kind == "propagate_real_tensors_provenance") return Rule::kSymbol;
  return Rule::kOther;
}

// The N of "<eval_with_key>.N", under which Dynamo dumps generated source.
std::string_view EvalWithKeyId(std::string_view name) {
  constexpr std::string_view kMark = "<eval_with_key>.";
  const std::size_t at = name.find(kMark);
  if (at == std::string_view::npos) return {};
  name.remove_prefix(at + kMark.size());
  return name.substr(0, name.find_first_not_of("0123456789"));
}

std::string Part(const std::optional<std::int64_t>& id) {
  return id ? std::to_string(*id) : std::string("-");
}

struct CompileIds {
  std::optional<std::int64_t> compiled_autograd;
  std::optional<std::int64_t> frame;
  std::optional<std::int64_t> frame_compile;
};

std::string DirectoryName(const CompileIds& ids, const std::optional<std::int64_t>& attempt) {
  return fmt::format("{}_{}_{}_{}", Part(ids.compiled_autograd), Part(ids.frame),
                     Part(ids.frame_compile), Part(attempt));
}

std::string KeyText(const CompileIds& ids, const std::optional<std::int64_t>& attempt) {
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

// A file whose number is not known yet.
struct Draft {
  PlannedFile file;
  std::string stem;
  std::string_view extension;  // with its dot; a literal
  bool is_listed = true;
};

class Planner {
 public:
  Planner(const Participant& participant, const ReportOptions& options)
      : participant_(participant), options_(options) {}

  Result<TreePlan> Run(Database& database);

 private:
  struct Row {
    std::int64_t id = 0;
    std::string_view kind;
    std::int64_t payload_id = 0;
    std::string_view envelope;
    std::uint32_t directory = 0;
    std::uint32_t key = 0;
  };

  Result<void> LoadCompiles(Database& database);
  Result<Rule> RuleOf(std::int64_t kind_id);
  // Key and directory of a compile id with attempt.
  std::pair<std::uint32_t, std::uint32_t> Place(std::int64_t compile_id,
                                                const std::optional<std::int64_t>& attempt);
  std::uint32_t DirectoryIndex(const std::string& name);
  Result<void> PlanRow(Rule rule, const Row& row);
  // Sets metadata_ to the value of the record key; false if the envelope cannot be read.
  bool ParseMetadata(const Row& row);
  std::string Member(std::string_view name) const;
  void PlanArtifact(const Row& row);
  void PlanGraphDump(const Row& row);
  void PlanCode(const Row& row);
  void PlanDump(const Row& row);
  void AddText(const Row& row, std::string stem);
  void AddPage(const Row& row, FileForm form, std::string stem);
  void Add(const Row& row, FileForm form, std::string stem, std::string_view extension);
  Result<void> AddPayloadFile(const Row& row);
  Result<void> Number(Draft draft);
  Result<void> NumberStackTraces(PlannedFile& file, const std::string& stem);

  const Participant& participant_;
  const ReportOptions& options_;
  TreePlan plan_;
  std::optional<TextCache> texts_;
  std::optional<PayloadReader> payloads_;
  std::unordered_map<std::int64_t, Rule> rules_;
  std::unordered_map<std::int64_t, CompileIds> compiles_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::uint32_t, std::uint32_t>> places_;
  std::unordered_map<std::string, std::uint32_t> directory_ids_;
  std::unordered_map<std::string, std::uint32_t> key_ids_;
  std::unordered_set<std::int64_t> payload_files_;
  UniqueNames dump_names_;
  std::unordered_map<std::uint32_t, UniqueNames> diff_names_;  // by directory
  std::int64_t graph_before_id_ = 0;  // what the next pass of vLLM changes: a payload; 0: not known
  LenientParser parser_;
  simdjson::dom::element metadata_;
  bool has_metadata_ = false;
  std::vector<Draft> drafts_;  // of the current record
  std::vector<Draft> late_;    // of records that the peer drops
  bool is_lost_ = false;       // the current record is one of them
  std::int32_t count_ = 0;
};

Result<void> Planner::LoadCompiles(Database& database) {
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare("SELECT id, compiled_autograd_id, frame_id, frame_compile_id "
                                    "FROM compile WHERE process_id = ? AND NOT is_synthetic"));
  for (const ReportProcess& process : participant_.processes) {
    rows.Bind(1, process.id);
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, rows.Step());
      if (!has_row) break;
      compiles_.emplace(rows.Int(0),
                        CompileIds{rows.OptionalInt(1), rows.OptionalInt(2), rows.OptionalInt(3)});
    }
  }
  return {};
}

Result<Rule> Planner::RuleOf(std::int64_t kind_id) {
  const auto known = rules_.find(kind_id);
  if (known != rules_.end()) return known->second;
  ASSIGN_OR_RETURN(const std::string_view kind, texts_->Get(kind_id));
  Rule rule = options_.export_report ? ExportRule(kind) : NormalRule(kind);
  if (kind_id == kTextChromiumEvent) rule = Rule::kChromium;
  rules_.emplace(kind_id, rule);
  return rule;
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
  const CompileIds ids = found == compiles_.end() ? CompileIds() : found->second;
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

bool Planner::ParseMetadata(const Row& row) {
  has_metadata_ = parser_.Parse(row.envelope) &&
                  parser_.root().at_key(row.kind).get(metadata_) == simdjson::SUCCESS;
  return has_metadata_;
}

std::string Planner::Member(std::string_view name) const {
  std::string_view text;
  if (has_metadata_ && metadata_.at_key(name).get(text) == simdjson::SUCCESS) {
    return std::string(text);
  }
  return {};
}

void Planner::Add(const Row& row, FileForm form, std::string stem, std::string_view extension) {
  Draft draft;
  draft.file.record_id = row.id;
  draft.file.payload_id = row.payload_id;
  draft.file.directory = row.directory;
  draft.file.key = row.key;
  draft.file.form = form;
  draft.stem = std::move(stem);
  draft.extension = extension;
  drafts_.push_back(std::move(draft));
}

void Planner::AddText(const Row& row, std::string stem) {
  Add(row, FileForm::kText, std::move(stem), ".txt");
  drafts_.back().file.is_artifact_of_record = true;
}

void Planner::AddPage(const Row& row, FileForm form, std::string stem) {
  Add(row, form, std::move(stem), ".html");
}

Result<void> Planner::AddPayloadFile(const Row& row) {
  if (row.payload_id == 0) return {};
  ASSIGN_OR_RETURN(const std::int64_t size_bytes, payloads_->SizeBytes(row.payload_id));
  if (size_bytes == 0) return {};
  Add(row, FileForm::kPayload, "", ".txt");
  drafts_.back().is_listed = false;
  drafts_.back().file.directory = DirectoryIndex("payloads");
  drafts_.back().file.is_artifact_of_record = true;
  ASSIGN_OR_RETURN(drafts_.back().stem, payloads_->Hash(row.payload_id));
  return {};
}

void Planner::PlanArtifact(const Row& row) {
  ParseMetadata(row);
  std::string name = Member("name");
  const std::string encoding = Member("encoding");
  if (name.empty() || (encoding != "string" && encoding != "json")) is_lost_ = true;
  if (name.empty()) name = "artifact";
  const bool is_json = encoding == "json";
  const bool has_page =
      is_json && name.starts_with("inductor_provenance_tracking_kernel_stack_traces");
  Add(row,
      has_page  ? FileForm::kStackTraces
      : is_json ? FileForm::kJson
                : FileForm::kText,
      std::move(name), is_json ? ".json" : ".txt");
  drafts_.back().file.is_artifact_of_record = true;
  if (drafts_.back().stem == "before_post_grad_graph") graph_before_id_ = row.payload_id;
  if (drafts_.back().stem == "vllm_compilation_config") {
    // A new model begins. The peer lists its configuration twice, and refers to the second file.
    graph_before_id_ = 0;
    drafts_.push_back(drafts_.back());
    drafts_.front().file.is_artifact_of_record = false;
  }
}

// vLLM dumps patterns as Python, and the graph after each of its passes; the page that shows what
// the pass changed has the dump's name and no number.
void Planner::PlanGraphDump(const Row& row) {
  ParseMetadata(row);
  const std::string name = Member("name");
  AddText(row, name);
  if (name.starts_with("vllm_patterns.")) drafts_.back().extension = ".py";
  if (!name.starts_with("vllm_post_grad.")) return;
  if (graph_before_id_ != 0) {
    AddPage(row, FileForm::kPassDiffPage, name + ".diff");
    drafts_.back().file.before_id = graph_before_id_;
  }
  graph_before_id_ = row.payload_id;
}

void Planner::PlanCode(const Row& row) {
  ParseMetadata(row);
  const std::string path = Member("filename");
  const std::string_view stem = FileStem(path);
  std::string name = "inductor_output_code";
  if (!stem.empty()) name += fmt::format("_{}", stem);
  if (options_.plain_text) {
    AddText(row, std::move(name));
  } else {
    AddPage(row, FileForm::kCodePage, std::move(name));
  }
}

void Planner::PlanDump(const Row& row) {
  ParseMetadata(row);
  const std::string name = Member("name");
  const std::string_view id = EvalWithKeyId(name);
  AddPage(row, FileForm::kDumpPage, id.empty() ? name : fmt::format("eval_with_key_{}", id));
  drafts_.back().file.directory = DirectoryIndex("dump_file");
}

Result<void> Planner::PlanRow(Rule rule, const Row& row) {
  bool needs_payload_file = false;
  switch (rule) {
    case Rule::kChromium:
      return {};
    case Rule::kOther:
      needs_payload_file = true;
      break;
    case Rule::kText:
      AddText(row, std::string(row.kind));
      break;
    case Rule::kArtifact:
      PlanArtifact(row);
      break;
    case Rule::kMetrics:
      AddPage(row, FileForm::kMetricsPage, std::string(row.kind));
      needs_payload_file = true;
      break;
    case Rule::kGraphDump:
      PlanGraphDump(row);
      break;
    case Rule::kSplitChild:
      ParseMetadata(row);
      AddText(row, "optimize_ddp_split_child_" + Member("name"));
      break;
    case Rule::kGuards:
      AddPage(row, FileForm::kGuardsPage, "dynamo_guards");
      needs_payload_file = true;
      break;
    case Rule::kCode:
      PlanCode(row);
      needs_payload_file = !options_.plain_text;
      break;
    case Rule::kDump:
      PlanDump(row);
      needs_payload_file = true;
      break;
    case Rule::kLink: {
      ParseMetadata(row);
      Add(row, FileForm::kLink, Member("name"), "");
      drafts_.back().file.payload_id = static_cast<std::int64_t>(plan_.link_urls.size());
      plan_.link_urls.push_back(Member("url"));
      needs_payload_file = true;
      break;
    }
    case Rule::kSymbol:
      ParseMetadata(row);
      needs_payload_file = true;
      if (row.kind != "guard_added" || Member("prefix") == "eval") {
        AddPage(row, FileForm::kSymbolPage, "symbolic_guard_information");
      }
      break;
  }
  if (needs_payload_file) RETURN_IF_ERROR(AddPayloadFile(row));
  return {};
}

Result<void> Planner::NumberStackTraces(PlannedFile& file, const std::string& stem) {
  if (file.payload_id == 0) return {};
  ASSIGN_OR_RETURN(const std::string_view json, payloads_->Content(file.payload_id));
  std::string unused;
  if (!AppendJson(json, JsonLayout::kCompact, unused)) return {};
  // The page takes a number of its own, before the artifact is listed.
  file.readable_name = SafeFileName(stem, fmt::format("_{}_readable.html", count_));
  ++count_;
  return {};
}

Result<void> Planner::Number(Draft draft) {
  PlannedFile& file = draft.file;
  if (file.form == FileForm::kPayload) {
    file.name = draft.stem + std::string(draft.extension);
    // One file per payload, however many records have it: later ones only refer to it.
    if (!payload_files_.insert(file.payload_id).second) file.payload_id = 0;
  } else if (file.form == FileForm::kDumpPage) {
    file.name = dump_names_.Next(draft.stem, draft.extension);
  } else if (file.form == FileForm::kPassDiffPage) {
    file.name = diff_names_[file.directory].Next(draft.stem, draft.extension);
  } else if (file.form == FileForm::kLink) {
    file.name = std::move(draft.stem);
  } else {
    file.name = SafeFileName(draft.stem, fmt::format("_{}{}", count_, draft.extension));
    if (file.form == FileForm::kStackTraces) {
      RETURN_IF_ERROR(NumberStackTraces(file, draft.stem));
    }
  }
  if (draft.is_listed) {
    file.number = count_++;
    plan_.keys[file.key].files.push_back(static_cast<std::uint32_t>(plan_.files.size()));
  }
  plan_.files.push_back(std::move(file));
  return {};
}

Result<TreePlan> Planner::Run(Database& database) {
  ASSIGN_OR_RETURN(texts_, TextCache::Open(database));
  ASSIGN_OR_RETURN(payloads_, PayloadReader::Open(database));
  RETURN_IF_ERROR(LoadCompiles(database));
  ASSIGN_OR_RETURN(RecordScan scan,
                   RecordScan::Open(database, participant_,
                                    "r.id, r.kind_id, r.compile_id, r.attempt, r.payload_id, "
                                    "r.envelope",
                                    "", fmt::format("r.kind_id IS NOT {}", int{kTextStr})));
  const Statement& rows = scan.row();
  bool rank_seen = false;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, scan.Step());
    if (!has_row) break;
    const std::int64_t kind_id = rows.OptionalInt(1).value_or(0);
    ASSIGN_OR_RETURN(const Rule rule, RuleOf(kind_id));
    Row row;
    row.id = rows.Int(0);
    ASSIGN_OR_RETURN(row.kind, texts_->Get(kind_id));
    row.payload_id = rows.OptionalInt(4).value_or(0);
    if (rule != Rule::kChromium || participant_.rank_in_records) row.envelope = rows.Text(5);
    const std::int64_t compile_id = rows.OptionalInt(2).value_or(0);
    std::tie(row.key, row.directory) = Place(compile_id, rows.OptionalInt(3));
    if (options_.inductor_provenance && compile_id != 0) {
      std::vector<std::int64_t>& compiles = plan_.compiles[row.directory];
      if (std::find(compiles.rbegin(), compiles.rend(), compile_id) == compiles.rend()) {
        compiles.push_back(compile_id);
      }
    }
    is_lost_ = false;
    if (participant_.rank_in_records) {
      const bool has_rank = HasOwnRank(row.envelope);
      is_lost_ = rank_seen && !has_rank;
      rank_seen |= has_rank;
    }
    RETURN_IF_ERROR(PlanRow(rule, row));
    for (Draft& draft : drafts_) {
      if (is_lost_) {
        late_.push_back(std::move(draft));
      } else {
        RETURN_IF_ERROR(Number(std::move(draft)));
      }
    }
    drafts_.clear();
  }
  for (Draft& draft : late_) RETURN_IF_ERROR(Number(std::move(draft)));
  return std::move(plan_);
}

}  // namespace

Result<TreePlan> PlanTree(Database& database, const Participant& participant,
                          const ReportOptions& options) {
  return Planner(participant, options).Run(database);
}

std::string_view CacheSuffix(std::string_view path) {
  if (path.find("cache_miss") != std::string_view::npos) return "\u274C";
  if (path.find("cache_hit") != std::string_view::npos) return "\u2705";
  if (path.find("cache_bypass") != std::string_view::npos) return "\u2753";
  return {};
}

}  // namespace tlparse

#include "report/file_draft.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "report/tree/file_name.h"

namespace tlparse {
namespace {

FileRule NormalRule(std::string_view kind) {
  static constexpr std::array<std::string_view, 10> kTexts = {
      "optimize_ddp_split_graph", "compiled_autograd_graph", "aot_forward_graph",
      "aot_backward_graph",       "aot_inference_graph",     "aot_joint_graph",
      "inductor_post_grad_graph", "inductor_pre_grad_graph", "dynamo_cpp_guards_str",
      "dynamo_output_graph"};
  for (const std::string_view text : kTexts) {
    if (kind == text) return FileRule::kText;
  }
  if (kind == "artifact") return FileRule::kArtifact;
  if (kind == "graph_dump") return FileRule::kGraphDump;
  if (kind == "optimize_ddp_split_child") return FileRule::kSplitChild;
  if (kind == "dynamo_guards") return FileRule::kGuards;
  if (kind == "inductor_output_code") return FileRule::kCode;
  if (kind == "compilation_metrics" || kind == "bwd_compilation_metrics" ||
      kind == "aot_autograd_backward_compilation_metrics") {
    return FileRule::kMetrics;
  }
  if (kind == "dump_file") return FileRule::kDump;
  if (kind == "link") return FileRule::kLink;
  return FileRule::kOther;
}

FileRule ExportRule(std::string_view kind) {
  if (kind == "exported_program") return FileRule::kText;
  if (kind == "guard_added" || kind == "propagate_real_tensors_provenance")
    return FileRule::kSymbol;
  return FileRule::kOther;
}

// The N of "<eval_with_key>.N", under which Dynamo dumps generated source.
std::string_view EvalWithKeyId(std::string_view name) {
  constexpr std::string_view kMark = "<eval_with_key>.";
  const std::size_t at = name.find(kMark);
  if (at == std::string_view::npos) return {};
  name.remove_prefix(at + kMark.size());
  return name.substr(0, name.find_first_not_of("0123456789"));
}

}  // namespace

FileRule RuleOfKind(std::string_view kind, const ReportOptions& options) {
  if (kind == "chromium_event") return FileRule::kChromium;
  return options.export_report ? ExportRule(kind) : NormalRule(kind);
}

void FileDrafter::ParseMetadata(std::string_view kind, std::string_view envelope) {
  has_metadata_ =
      parser_.Parse(envelope) && parser_.root().at_key(kind).get(metadata_) == simdjson::SUCCESS;
}

std::string FileDrafter::Member(std::string_view name) const {
  std::string_view text;
  if (has_metadata_ && metadata_.at_key(name).get(text) == simdjson::SUCCESS) {
    return std::string(text);
  }
  return {};
}

FileDraft& FileDrafter::Add(FileForm form, std::string stem, std::string_view extension) {
  FileDraft& draft = drafts_.files.emplace_back();
  draft.form = form;
  draft.stem = std::move(stem);
  draft.extension = extension;
  return draft;
}

void FileDrafter::AddText(std::string stem) {
  Add(FileForm::kText, std::move(stem), ".txt").is_artifact_of_record = true;
}

void FileDrafter::AddPage(FileForm form, std::string stem) { Add(form, std::move(stem), ".html"); }

void FileDrafter::AddPayload() {
  FileDraft& draft = Add(FileForm::kPayload, "", ".txt");
  draft.place = FilePlace::kPayloads;
  draft.is_artifact_of_record = true;
}

void FileDrafter::DraftArtifact(std::int64_t payload_id) {
  std::string name = Member("name");
  const std::string encoding = Member("encoding");
  drafts_.is_lost = name.empty() || (encoding != "string" && encoding != "json");
  if (name.empty()) name = "artifact";
  const bool is_json = encoding == "json";
  const bool has_page =
      is_json && name.starts_with("inductor_provenance_tracking_kernel_stack_traces");
  const FileForm form = has_page  ? FileForm::kStackTraces
                        : is_json ? FileForm::kJson
                                  : FileForm::kText;
  if (name == "before_post_grad_graph") graph_before_id_ = payload_id;
  if (name == "vllm_compilation_config") {
    // A new model begins. The peer lists its configuration twice, and refers to the second file.
    graph_before_id_ = 0;
    Add(form, name, is_json ? ".json" : ".txt");
  }
  Add(form, std::move(name), is_json ? ".json" : ".txt").is_artifact_of_record = true;
}

// vLLM dumps patterns as Python, and the graph after each of its passes; the page that shows what
// the pass changed has the dump's name and no number.
void FileDrafter::DraftGraphDump(std::int64_t payload_id) {
  const std::string name = Member("name");
  AddText(name);
  if (name.starts_with("vllm_patterns.")) drafts_.files.back().extension = ".py";
  if (!name.starts_with("vllm_post_grad.")) return;
  if (graph_before_id_ != 0) {
    AddPage(FileForm::kPassDiffPage, name + ".diff");
    drafts_.files.back().before_id = graph_before_id_;
  }
  graph_before_id_ = payload_id;
}

void FileDrafter::DraftCode() {
  const std::string path = Member("filename");
  const std::string_view stem = FileStem(path);
  std::string name = "inductor_output_code";
  if (!stem.empty()) name += fmt::format("_{}", stem);
  if (plain_text_) return AddText(std::move(name));
  AddPage(FileForm::kCodePage, std::move(name));
  AddPayload();
}

void FileDrafter::DraftDump() {
  const std::string name = Member("name");
  const std::string_view id = EvalWithKeyId(name);
  AddPage(FileForm::kDumpPage, id.empty() ? name : fmt::format("eval_with_key_{}", id));
  drafts_.files.back().place = FilePlace::kDumps;
  AddPayload();
}

RecordDrafts& FileDrafter::Draft(FileRule rule, std::string_view kind, std::string_view envelope,
                                 std::int64_t payload_id) {
  drafts_.files.clear();
  drafts_.is_lost = false;
  switch (rule) {
    case FileRule::kChromium:
      break;
    case FileRule::kOther:
      AddPayload();
      break;
    case FileRule::kText:
      AddText(std::string(kind));
      break;
    case FileRule::kArtifact:
      ParseMetadata(kind, envelope);
      DraftArtifact(payload_id);
      break;
    case FileRule::kMetrics:
      AddPage(FileForm::kMetricsPage, std::string(kind));
      AddPayload();
      break;
    case FileRule::kGraphDump:
      ParseMetadata(kind, envelope);
      DraftGraphDump(payload_id);
      break;
    case FileRule::kSplitChild:
      ParseMetadata(kind, envelope);
      AddText("optimize_ddp_split_child_" + Member("name"));
      break;
    case FileRule::kGuards:
      AddPage(FileForm::kGuardsPage, "dynamo_guards");
      AddPayload();
      break;
    case FileRule::kCode:
      ParseMetadata(kind, envelope);
      DraftCode();
      break;
    case FileRule::kDump:
      ParseMetadata(kind, envelope);
      DraftDump();
      break;
    case FileRule::kLink:
      ParseMetadata(kind, envelope);
      Add(FileForm::kLink, Member("name"), "").url = Member("url");
      AddPayload();
      break;
    case FileRule::kSymbol:
      ParseMetadata(kind, envelope);
      if (kind != "guard_added" || Member("prefix") == "eval") {
        AddPage(FileForm::kSymbolPage, "symbolic_guard_information");
      }
      AddPayload();
      break;
  }
  return drafts_;
}

}  // namespace tlparse

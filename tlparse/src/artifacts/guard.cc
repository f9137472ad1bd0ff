// dynamo_cpp_guards_str: the tree of guards a compile installed (torch/_dynamo/guards.py,
// CheckFunctionManager); dynamo_guards: a list of guards as JSON, for all guards in early logs,
// since 2.6 for AOTAutograd's aliasing guards only.
#include "rows/guard.h"

#include <algorithm>

#include "artifacts/artifact.h"
#include "artifacts/common/json_members.h"
#include "artifacts/common/payload_content.h"
#include "artifacts/common/text/guard_tree.h"
#include "artifacts/common/text/normalize.h"
#include "artifacts/common/text/safe_text.h"

namespace tlparse {
namespace {

class Guards final : public Ingestor {
 public:
  static void PrepareRecord(const RecordToPrepare& record, std::string& buffer,
                            PreparedRecord& prepared) {
    if (record.kind == "dynamo_cpp_guards_str")
      PrepareContent(&NormalizeGuards, record, buffer, prepared);
  }

  void Prepare(TableSet& tables) override {
    tables.Use<GuardRow>();
    tables.Use<GuardUseRow>();
  }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    if (record.payload_id == 0) return Fail(ErrorCode::kBadJson, "guards without a payload");
    if (record.kind == "dynamo_guards") return IngestList(record, context);
    std::optional<std::int64_t> content_id =
        context.contents().OfPayload(ContentKind::kGuardTree, record.payload_id);
    if (!content_id) {
      const std::string_view text = context.Payload();
      const Hash128 hash = PayloadHash(&NormalizeGuards, context, buffer_);
      const ContentId content =
          context.contents().Intern(context.rows(), ContentKind::kGuardTree, hash, record.id);
      if (content.is_new) AddTree(content.id, text, context);
      context.contents().LinkPayload(context.rows(), ContentKind::kGuardTree, record.payload_id,
                                     content.id);
      content_id = content.id;
    }
    context.rows().Add(GuardUseRow{
        .record_id = record.id, .compile_id = record.compile_row_id(), .content_id = *content_id});
    return {};
  }

 private:
  void AddTree(std::int64_t content_id, std::string_view text, IngestContext& context) {
    // Each takes some 350 bytes until it is written.
    constexpr std::ptrdiff_t kMostLines = 300'000;
    if (const std::ptrdiff_t lines = std::count(text.begin(), text.end(), '\n');
        lines > kMostLines) {
      context.Log(ImportCode::kPayloadTooLarge,
                  "the tree has " + std::to_string(lines) + " lines; its guards are left out");
      return;
    }
    std::int64_t ordinal = 0;
    for (const GuardLine& line : ParseGuardTree(text)) Add(content_id, ordinal++, line, context);
  }

  void Add(std::int64_t content_id, std::int64_t ordinal, const GuardLine& line,
           IngestContext& context) {
    RowBatch& rows = context.rows();
    const std::string_view normalized = NormalizeGuards(line.expression, buffer_);
    const auto text = [&rows](std::string_view value) {
      return value.empty() ? std::nullopt : std::optional<StaticText>(SafeText(rows, value));
    };
    rows.Add(GuardRow{
        .content_id = content_id,
        .ordinal = ordinal,
        .depth = line.depth,
        .kind_id = context.Text(line.kind),
        .expression = SafeText(rows, line.expression),
        .normalized_expression = normalized == line.expression
                                     ? std::nullopt
                                     : std::optional<StaticText>(SafeText(rows, normalized)),
        .source = text(line.source),
        .user_file_id = context.OptionalText(line.user_file),
        .user_line = line.user_line,
        .user_code = text(line.user_code),
        .user_function_id = context.OptionalText(line.user_function),
        .hint = text(line.hint)});
  }

  // [{"code": "…", "stack": […] | null, "user_stack": […] | null}]; file names are ids of this
  // process, so a payload alone does not tell the content.
  Result<void> IngestList(const Record& record, IngestContext& context) {
    ASSIGN_OR_RETURN(const simdjson::dom::element payload, context.PayloadJson());
    simdjson::dom::array list;
    if (payload.get(list) != simdjson::SUCCESS)
      return Fail(ErrorCode::kBadJson, "the payload is not a list");
    std::vector<GuardLine> lines;
    SequenceHash hash;
    hash.Add("list");
    std::int64_t position = -1;
    for (const simdjson::dom::element element : list) {
      ++position;
      simdjson::dom::object object;
      std::string_view code;
      if (element.get(object) != simdjson::SUCCESS ||
          object.at_key("code").get(code) != simdjson::SUCCESS) {
        context.Log(ImportCode::kBadPayload,
                    "guard " + std::to_string(position) + " has no code; left out");
        continue;
      }
      GuardLine line;
      line.kind = "code";
      line.expression = code;
      if (!SetFrame(object, "user_stack", record, line)) SetFrame(object, "stack", record, line);
      hash.Add(NormalizeGuards(code, buffer_));
      hash.Add(line.user_file);
      hash.Add(line.user_line.value_or(-1));
      hash.Add(line.user_function);
      lines.push_back(line);
    }
    const ContentId content = context.contents().Intern(context.rows(), ContentKind::kGuardTree,
                                                        hash.Digest(), record.id);
    if (content.is_new) {
      for (std::size_t ordinal = 0; ordinal < lines.size(); ++ordinal) {
        Add(content.id, static_cast<std::int64_t>(ordinal), lines[ordinal], context);
      }
    }
    context.rows().Add(GuardUseRow{
        .record_id = record.id, .compile_id = record.compile_row_id(), .content_id = content.id});
    return {};
  }

  // The innermost frame of a stack member.
  static bool SetFrame(const simdjson::dom::object& guard, std::string_view member,
                       const Record& record, GuardLine& line) {
    simdjson::dom::array frames;
    if (guard.at_key(member).get(frames) != simdjson::SUCCESS) return false;
    std::optional<simdjson::dom::object> innermost;
    for (const simdjson::dom::element element : frames) {
      simdjson::dom::object object;
      if (element.get(object) == simdjson::SUCCESS) innermost = object;
    }
    if (!innermost) return false;
    const simdjson::dom::object frame = *innermost;
    std::int64_t file_id = -1;
    if (frame.at_key("filename").get(file_id) == simdjson::SUCCESS && record.process != nullptr) {
      line.user_file = record.process->String(file_id).value_or("");
    }
    std::int64_t number = 0;
    if (frame.at_key("line").get(number) == simdjson::SUCCESS) line.user_line = number;
    std::string_view text;
    if (frame.at_key("name").get(text) == simdjson::SUCCESS) line.user_function = text;
    if (frame.at_key("loc").get(text) == simdjson::SUCCESS) line.user_code = text;
    return true;
  }

  std::string buffer_;
};

}  // namespace

TLPARSE_ARTIFACT(guard, Guards, OpensStretch("dynamo_cpp_guards_str"), "dynamo_guards")

}  // namespace tlparse

// tritonparse's logs: one JSON object a line, of event_type compilation, launch or launch_diff;
// raw, or as its parser wrote them again. The line at the end may be cut.
#include "inputs/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "artifacts/common/text/python_traceback.h"
#include "base/json_writer.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "inputs/common/line_stream.h"
#include "inputs/common/plain_json.h"
#include "inputs/recorder/name.h"
#include "rows/tritonparse.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostEventBytes = std::size_t{64} << 20;

// The IRs by the ending of their names, with their sizes.
std::optional<std::string> IrSizes(const PlainValue& contents) {
  if (contents.size() == 0) return std::nullopt;
  JsonWriter json;
  json.BeginObject();
  for (std::size_t i = 0; i < std::min<std::size_t>(contents.size(), 64); ++i) {
    const auto [name, content] = contents.Member(i);
    if (!name.Text() || !content.Text()) continue;
    json.Key(name.Text()->substr(name.Text()->rfind('.') + 1))
        .Int(static_cast<std::int64_t>(content.Text()->size()));
  }
  return json.EndObject().Take();
}

// Arguments without what differs from run to run.
std::optional<std::string> Arguments(const PlainValue& arguments) {
  if (arguments.size() == 0) return std::nullopt;
  JsonWriter json;
  json.BeginObject();
  for (std::size_t i = 0; i < std::min<std::size_t>(arguments.size(), 256); ++i) {
    const auto [name, facts] = arguments.Member(i);
    if (!name.Text()) continue;
    json.Key(*name.Text()).BeginObject();
    for (const std::string_view key : {"type", "value", "shape", "dtype", "stride", "device"}) {
      if (const std::optional<std::string> value = JsonOf(facts[key]);
          value && value->size() < 4096)
        json.Key(key).Raw(*value);
    }
    json.EndObject();
  }
  return json.EndObject().Take();
}

class TritonparseReader final : public RuntimeReader {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<TritonCompilationRow>();
    tables.Use<TritonLaunchRow>();
  }
  Result<bool> Read(RuntimeContext& context) override;

 private:
  void AddCompilation(const PlainValue& event, std::int64_t line, RuntimeContext& context);
  void AddLaunch(const PlainValue& event, std::int64_t line, RuntimeContext& context);
};

void TritonparseReader::AddCompilation(const PlainValue& event, std::int64_t line,
                                       RuntimeContext& context) {
  RowBatch& rows = context.rows();
  const PlainValue payload = event["payload"];
  const PlainValue metadata = payload["metadata"];
  const PlainValue source = payload["python_source"];
  const PlainValue compile = payload.Has("pt_info") ? payload["pt_info"] : event["pt_info"];
  const std::optional<std::string> hash = TextOf(metadata["hash"]),
                                   target = JsonOf(metadata["target"]),
                                   constants = JsonOf(metadata["src_constants"]),
                                   ir = IrSizes(payload["file_content"]),
                                   times = JsonOf(payload.Has("times") ? payload["times"]
                                                                       : metadata["times"]);
  std::string label;
  if (compile["frame_id"].Int() && compile["frame_compile_id"].Int()) {
    if (compile["compiled_autograd_id"].Int())
      label = fmt::format("!{}/", *compile["compiled_autograd_id"].Int());
    label += fmt::format("{}/{}", *compile["frame_id"].Int(), *compile["frame_compile_id"].Int());
  }
  TritonCompilationRow row{.id = context.NextId(rows.TableOf<TritonCompilationRow>()),
                           .profile_id = context.profile_id(),
                           .line = line};
  const auto text_id = [&](const PlainValue& value) {
    const std::optional<std::string_view> text = value.Text();
    return text ? context.OptionalText(*text) : std::nullopt;
  };
  row.pid = event["pid"].Int();
  row.name_id = text_id(metadata["name"]);
  row.hash = hash;
  if (!label.empty()) row.label = label;
  row.attempt = compile["attempt"].Int();
  row.num_warps = metadata["num_warps"].Int();
  row.num_stages = metadata["num_stages"].Int();
  row.num_ctas = metadata["num_ctas"].Int();
  row.shared_bytes = metadata["shared"].Int();
  row.target = target;
  if (const std::optional<bool> is_hit = metadata["cache_hit"].Bool())
    row.is_cache_hit = *is_hit ? 1 : 0;
  row.constants = constants;
  row.file_id = text_id(source["file_path"]);
  row.start_line = source["start_line"].Int();
  row.end_line = source["end_line"].Int();
  // Outermost first.
  const PlainValue stack = event["stack"];
  for (std::size_t i = stack.size(); i > 0; --i) {
    const std::optional<std::string_view> file = stack.At(i - 1)["filename"].Text();
    if (!file || !IsUserFile(*file)) continue;
    if (file->find("/tritonparse/structured_logging.py") != file->npos) continue;
    row.user_file_id = context.OptionalText(*file);
    row.user_line = stack.At(i - 1)["line"].Int();
    break;
  }
  row.ir = ir;
  row.times = times;
  rows.Add(row);
}

void TritonparseReader::AddLaunch(const PlainValue& event, std::int64_t line,
                                  RuntimeContext& context) {
  RowBatch& rows = context.rows();
  const PlainValue metadata = event["compilation_metadata"];
  const std::optional<std::string> hash = TextOf(metadata["hash"]), grid = JsonOf(event["grid"]),
                                   arguments = Arguments(event["extracted_args"]);
  TritonLaunchRow row{.id = context.NextId(rows.TableOf<TritonLaunchRow>()),
                      .profile_id = context.profile_id(),
                      .line = line};
  row.pid = event["pid"].Int();
  const std::optional<std::string_view> name =
      (event.Has("name") ? event["name"] : metadata["name"]).Text();
  if (name) row.name_id = context.OptionalText(*name);
  row.hash = hash;
  row.grid = grid;
  row.stream = event["stream"].Int();
  row.arguments = arguments;
  rows.Add(row);
}

Result<bool> TritonparseReader::Read(RuntimeContext& context) {
  ProfileFacts& facts = context.facts();
  facts.kind = "tritonparse";
  LineStream lines(context, kMostEventBytes);
  std::map<std::int64_t, std::int64_t> lines_of_pid;
  std::map<std::string, std::int64_t> left_out;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<LineStream::Line> line, lines.Next());
    if (!line) break;
    if (!line->is_too_long && line->text.find_first_not_of(" \t") == std::string_view::npos)
      continue;
    ++facts.event_count;
    ImportPlace place;
    place.line = line->number;
    place.byte_offset = line->byte_offset;
    if (line->is_too_long) {
      context.Log(ImportCode::kProfileEventTooLarge,
                  "a line is longer than 64 MiB; it was left out", place);
      continue;
    }
    const PlainDocument document = ReadPlainJson(line->text);
    const PlainValue event = document.tree.root();
    if (document.problem || event.type() != PlainValue::Type::kDict) {
      const bool is_cut = document.problem && document.problem->is_cut && !line->is_terminated;
      context.Log(is_cut ? ImportCode::kCutProfile : ImportCode::kBadProfileEvent,
                  document.problem ? document.problem->message : "the line is no JSON object",
                  place, line->text.substr(0, 256));
      continue;
    }
    if (const std::optional<std::int64_t> pid = event["pid"].Int()) ++lines_of_pid[*pid];
    const std::string_view type = event["event_type"].Text().value_or("");
    if (type == "compilation") {
      AddCompilation(event, line->number, context);
      ++facts.kept_count;
    } else if (type == "launch") {
      AddLaunch(event, line->number, context);
      ++facts.kept_count;
    } else {
      ++left_out[SanitizeUtf8(type.substr(0, 64))];
    }
    RETURN_IF_ERROR(context.Flush());
  }
  for (const auto& [type, count] : left_out)
    context.Log(ImportCode::kUnknownProfileEvent,
                fmt::format("{} of type '{}' {} left out", Count(count, "event"), type,
                            count == 1 ? "was" : "were"));
  if (lines_of_pid.size() == 1) facts.pid = lines_of_pid.begin()->first;
  const std::string& path = context.input().path;
  if (path.substr(path.rfind('/') + 1).find("_rank_") != std::string::npos)
    facts.rank = RankFromDumpName(path);
  return true;
}

}  // namespace

std::unique_ptr<RuntimeReader> MakeTritonparseReader() {
  return std::make_unique<TritonparseReader>();
}

}  // namespace tlparse

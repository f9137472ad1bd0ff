#include "cli/mcp/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "cli/mcp/output_schema.h"

namespace tlparse {
namespace {

using Type = McpArgument::Type;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr McpArgument kRunArgument = {"run", Type::kText, "name of a run; default: the latest"};
constexpr McpArgument kLaunchArgument = {"launch", Type::kNumber,
                                         "start of the job, 1 is the first; default: the latest"};
constexpr McpArgument kRankArgument = {"rank", Type::kNumber, "only this rank"};
constexpr McpArgument kProcessArgument = {"process", Type::kNumber, "only the process of this pid"};

// Of every tool that reads a database.
constexpr std::array kCommon = {
    McpArgument{"db", Type::kText, "as `open` names it; default: the first"},
    McpArgument{"limit", Type::kNumber, "most rows"},
    McpArgument{"cursor", Type::kText, "next_cursor of the answer before"},
    McpArgument{"list", Type::kText, "a list that left_out names, whole"},
    McpArgument{"budget", Type::kNumber, "bytes, 500 to 50000; default 2000"}};

constexpr std::array kOpen = {McpArgument{
    "path", Type::kText, "directory or file: logs, or a database of tlparse", "", true}};
constexpr std::array kFindings = {
    kRunArgument,
    kLaunchArgument,
    kRankArgument,
    kProcessArgument,
    McpArgument{"severity", Type::kText, "this severity and above", "error|warning|note"},
    McpArgument{"kind", Type::kText, "only these kinds, separated by commas"},
    McpArgument{"world-size", Type::kNumber, "how many ranks there should be"}};
constexpr std::array kEvidence = {McpArgument{"id", Type::kText, "id of a finding", "", true},
                                  kRunArgument, kLaunchArgument};
constexpr std::array kExplain = {McpArgument{"kind", Type::kText, "a kind of finding"}};
constexpr std::array kOfProcess = {kRunArgument, kLaunchArgument, kRankArgument, kProcessArgument};
constexpr std::array kCache = {kRunArgument, kLaunchArgument, kRankArgument, kProcessArgument,
                               McpArgument{"one-artifact", Type::kFlag, "would one's serve all"}};
constexpr std::array kCompile = {
    McpArgument{"compile", Type::kText, "its label: 1/0", "", true, true}, kRunArgument,
    kLaunchArgument, kRankArgument, kProcessArgument};
constexpr std::array kCost = {
    kRunArgument, kRankArgument, kProcessArgument,
    McpArgument{"by", Type::kText, "what to add up", "line|kernel|node|graph|op|module"},
    McpArgument{"steps", Type::kText, "steps of the profiler, like 3-5"}};
constexpr std::array kMemory = {
    kRunArgument, kRankArgument, kProcessArgument,
    McpArgument{"by", Type::kText, "what to add up", "line|graph|node|category|stack"},
    McpArgument{"at", Type::kText, "when", "peak|oom|end|number of a step"}};
constexpr std::array kProvenance = {
    kRunArgument,
    kLaunchArgument,
    kRankArgument,
    kProcessArgument,
    McpArgument{"kernel", Type::kText, "a kernel by name, name:handle or pattern (*)"},
    McpArgument{"source", Type::kText, "a Python line, FILE:LINE, or a FILE"},
    McpArgument{"node", Type::kText, "a post-grad or pre-grad graph node"},
    McpArgument{"sort", Type::kText, "order", "compile|cost"}};
constexpr std::array kSource = {
    McpArgument{"place", Type::kText, "FILE:LINE, or a FILE; FILE may be the end of a path", "",
                true, true},
    kRunArgument, kRankArgument, kProcessArgument};
constexpr std::array kDiff = {
    McpArgument{"other", Type::kText, "the other database, DB:run, log or directory"},
    McpArgument{"ranks", Type::kText, "of one database, two ranks: 0,3"},
    McpArgument{"launches", Type::kText, "of one database, two launches: 1,2"},
    McpArgument{"code", Type::kFlag, "with differences of the generated code"}};
constexpr std::array kProblems = {
    kRunArgument, kLaunchArgument, kRankArgument, kProcessArgument,
    McpArgument{"severity", Type::kText, "only these", "error|warning|info"}};
constexpr std::array kSearch = {
    McpArgument{"text", Type::kText, "what to look for, at least 2 bytes", "", true, true},
    McpArgument{"kind", Type::kText, "only in these", "graph|code|guard|log"}, kRunArgument,
    kRankArgument, kProcessArgument};
constexpr std::array kSql = {
    McpArgument{"query", Type::kText, "one SELECT of SQLite; resource tlparse://schema", "", true}};

// What another tool answers, or a client does not need.
constexpr std::array<std::string_view, 4> kOfFindings = {"query", "launch_count", "log_lines",
                                                         "looked_for"};
constexpr std::array<std::string_view, 2> kFindingsAgain = {"findings", "engine_findings"};
constexpr std::array<std::string_view, 1> kPairs = {"recompiles"};
constexpr std::array<std::string_view, 1> kAllOptions = {"options"};
constexpr std::array<std::string_view, 1> kSearched = {"read_bytes"};
constexpr std::array<std::string_view, 1> kElapsed = {"elapsed_ms"};

constexpr std::array kTools = {
    McpTool{"open",
            "Reads a directory of logs, or opens a database, for the other tools.",
            kOpen,
            "",
            {},
            ""},
    McpTool{"findings",
            "What is wrong with the job and why, the most urgent first. Ask this first, then "
            "evidence of what you want to check.",
            kFindings, "findings", kOfFindings, "answers/findings"},
    McpTool{"evidence",
            "What one finding stands on: its rows, its query, and the lines of the logs.",
            kEvidence,
            "findings",
            {},
            "answers/findings",
            "findings"},
    McpTool{"explain",
            "What a kind of finding means, what looks like it, what to ask and to try. Without a "
            "kind: all kinds.",
            kExplain,
            "kinds",
            {},
            "answers/explain"},
    McpTool{"status",
            "Where the log of each rank ends: in which compile and phase, since when.",
            kOfProcess,
            "rows",
            {},
            "answers/status"},
    McpTool{"history",
            "The compiles in order of time: duration by phase, status, graph breaks, caches.",
            kOfProcess,
            "compiles",
            {},
            "answers/history",
            {},
            "compile_count"},
    McpTool{"compile",
            "One compile on one rank: caller, traced lines and which only other ranks traced, "
            "inputs, guards, phases, caches and why, the whole exception, what came next.",
            kCompile, "", kAllOptions, "answers/compile"},
    McpTool{
        "recompiles",
        "Which guards failed, why functions were compiled again: a row a guard, with its values "
        "in order, seconds lost, whether the limit was reached.",
        kOfProcess, "series", kPairs, "answers/recompiles"},
    McpTool{"ranks", "Classes of equal ranks, what sets the others apart, the slowest, missing.",
            kOfProcess, "classes", kFindingsAgain, "answers/ranks"},
    McpTool{"cache", "Lookups of compile caches, where ranks' keys differ and why.", kCache,
            "findings", kFindingsAgain, "answers/cache"},
    McpTool{"collectives", "Which rank schedules or issued other collectives, where.", kOfProcess,
            "classes", kFindingsAgain, "answers/collectives"},
    McpTool{"execution", "Differences in the order of executed graphs, runtimes, tensors.",
            kOfProcess, "classes", kFindingsAgain, "answers/execution"},
    McpTool{"cost",
            "With a profile: time by line, kernel, node, graph, op or module.",
            kCost,
            "rows",
            {},
            "answers/cost"},
    McpTool{
        "memory",
        "With a memory snapshot or profile: who holds the bytes at the peak, OOM, end or after a "
        "step; what grew.",
        kMemory,
        "devices",
        {},
        "answers/memory"},
    McpTool{"autotune",
            "Which choices of kernels the compiler timed (max-autotune), which won, which failed.",
            kOfProcess,
            "kernels",
            {},
            "answers/autotune"},
    McpTool{"provenance",
            "From a kernel to its Python lines and back.",
            kProvenance,
            "kernels",
            {},
            "answers/provenance",
            {},
            "kernel_count"},
    McpTool{"source",
            "What came of a line of Python: functions, graph breaks, recompiles, failures, guards, "
            "graph nodes and kernels.",
            kSource,
            "outcomes",
            {},
            "answers/source"},
    McpTool{"diff",
            "What changed between two runs, two launches or two ranks.",
            kDiff,
            "",
            {},
            "answers/diff"},
    McpTool{"import_log",
            "What was dropped, odd or damaged in the inputs.",
            kProblems,
            "rows",
            {},
            "answers/import_log",
            "import-log"},
    McpTool{"search",
            "Where a text occurs in graphs, generated code, guards, other payloads and lines of "
            "TORCH_LOGS.",
            kSearch, "texts", kSearched, "viewer/search_answer"},
    McpTool{"sql", "One read-only query, with limits of time and rows.", kSql, "rows", kElapsed,
            "viewer/sql_answer"},
};

Error Usage(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

const McpArgument* FindArgument(const McpTool& tool, std::string_view name) {
  const auto is_it = [&](const McpArgument& one) { return one.name == name; };
  const auto own = std::find_if(tool.arguments.begin(), tool.arguments.end(), is_it);
  if (own != tool.arguments.end()) return &*own;
  if (tool.name == "open") return nullptr;
  const auto* const common = std::find_if(kCommon.begin(), kCommon.end(), is_it);
  return common == kCommon.end() ? nullptr : common;
}

bool IsChoice(std::string_view choices, std::string_view text) {
  while (!choices.empty()) {
    const std::string_view one = choices.substr(0, choices.find('|'));
    if (one == text) return true;
    choices.remove_prefix(std::min(choices.size(), one.size() + 1));
  }
  return false;
}

// The value of an argument as text.
Result<std::string> ReadValue(const McpArgument& argument, element value) {
  const auto wrong = [&](std::string_view wanted) {
    return tl::unexpected<Error>(Usage(fmt::format("{}: {} is expected", argument.name, wanted)));
  };
  switch (argument.type) {
    case Type::kFlag:
      if (!value.is_bool()) return wrong("true or false");
      return std::string(bool(value) ? "true" : "");
    case Type::kNumber:
      if (!value.is_int64()) return wrong("an integer");
      return fmt::format("{}", std::int64_t(value));
    default:
      break;
  }
  if (!value.is_string()) return wrong("text");
  std::string text(std::string_view(value.get_string().value_unsafe()));
  if (text.find('\0') != std::string::npos) return wrong("text without NUL");
  if (!argument.choices.empty() && !IsChoice(argument.choices, text))
    return wrong(fmt::format("one of {}", argument.choices));
  return text;
}

Result<std::size_t> ReadCount(std::string_view name, const std::string& text, std::size_t least,
                              std::size_t most) {
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < least || count > most)
    return tl::unexpected<Error>(
        Usage(fmt::format("{}: a number from {} to {} is expected", name, least, most)));
  return count;
}

Result<void> Take(const McpArgument& argument, std::string value, McpCall& call) {
  constexpr std::size_t kMostRows = 1'000'000'000;
  if (argument.name == "db") {
    call.database = std::move(value);
  } else if (argument.name == "cursor") {
    ASSIGN_OR_RETURN(call.cursor, ReadCount("cursor", value, 0, kMostRows));
  } else if (argument.name == "list") {
    call.list = std::move(value);
  } else if (argument.name == "limit") {
    ASSIGN_OR_RETURN(call.limit, ReadCount("limit", value, 1, kMostRows));
  } else if (argument.name == "budget") {
    ASSIGN_OR_RETURN(call.budget, ReadCount("budget", value, kLeastBudget, kMostBudget));
  } else {
    if (argument.is_positional) {
      call.names.push_back(value);
    } else if (argument.type == Type::kFlag) {
      if (!value.empty()) call.options.push_back(fmt::format("--{}", argument.name));
    } else {
      call.options.push_back(fmt::format("--{}={}", argument.name, value));
    }
    call.texts.emplace_back(argument.name, std::move(value));
  }
  return {};
}

void WriteArgument(JsonWriter& json, const McpArgument& argument) {
  json.Key(argument.name).BeginObject().Key("type");
  json.String(argument.type == Type::kText     ? "string"
              : argument.type == Type::kNumber ? "integer"
                                               : "boolean");
  json.Key("description").String(argument.description);
  if (!argument.choices.empty()) {
    json.Key("enum").BeginArray();
    for (std::string_view rest = argument.choices; !rest.empty();) {
      const std::string_view one = rest.substr(0, rest.find('|'));
      json.String(one);
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    }
    json.EndArray();
  }
  json.EndObject();
}

}  // namespace

std::span<const McpTool> McpTools() { return kTools; }

const McpTool* FindMcpTool(std::string_view name) {
  const auto* const found = std::find_if(kTools.begin(), kTools.end(),
                                         [&](const McpTool& one) { return one.name == name; });
  return found == kTools.end() ? nullptr : found;
}

std::string_view McpCall::Text(std::string_view name) const {
  for (const auto& [key, value] : texts)
    if (key == name) return value;
  return {};
}

Result<McpCall> ReadCall(const McpTool& tool, element arguments) {
  McpCall call;
  object members;
  if (!arguments.is_null() && arguments.get(members) != simdjson::SUCCESS)
    return tl::unexpected<Error>(Usage("arguments: an object is expected"));
  if (!arguments.is_null()) {
    for (const auto& [key, value] : members) {
      const McpArgument* const argument = FindArgument(tool, key);
      if (argument == nullptr)
        return tl::unexpected<Error>(Usage(fmt::format("{} has no argument '{}'", tool.name, key)));
      if (value.is_null()) continue;
      ASSIGN_OR_RETURN(std::string text, ReadValue(*argument, value));
      RETURN_IF_ERROR(Take(*argument, std::move(text), call));
    }
  }
  for (const McpArgument& argument : tool.arguments) {
    if (argument.is_required && call.Text(argument.name).empty())
      return tl::unexpected<Error>(
          Usage(fmt::format("{} needs the argument '{}'", tool.name, argument.name)));
  }
  return call;
}

void WriteTool(JsonWriter& json, const McpTool& tool) {
  json.BeginObject().Key("name").String(tool.name).Key("description").String(tool.description);
  json.Key("inputSchema")
      .BeginObject()
      .Key("type")
      .String("object")
      .Key("properties")
      .BeginObject();
  for (const McpArgument& argument : tool.arguments) WriteArgument(json, argument);
  if (tool.name != "open")
    for (const McpArgument& argument : kCommon) WriteArgument(json, argument);
  json.EndObject();
  const auto is_required = [](const McpArgument& one) { return one.is_required; };
  if (std::any_of(tool.arguments.begin(), tool.arguments.end(), is_required)) {
    json.Key("required").BeginArray();
    for (const McpArgument& argument : tool.arguments)
      if (argument.is_required) json.String(argument.name);
    json.EndArray();
  }
  json.Key("additionalProperties").Bool(false).EndObject();
  json.Key("outputSchema").Raw(OutputSchema(tool.schema, tool.omitted));
  json.Key("annotations").BeginObject().Key("readOnlyHint").Bool(true);
  json.Key("openWorldHint").Bool(false).EndObject().EndObject();
}

}  // namespace tlparse

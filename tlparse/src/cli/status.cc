// tlparse status <db>: a line for each process: where its log ends.
#include "facts/job/status.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "cli/answer.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/rank_output.h"

namespace tlparse {
namespace {

std::string TimeText(const std::optional<std::int64_t>& us) {
  if (!us) return "";
  return fmt::format("{:%H:%M:%S}.{:03}", fmt::gmtime(static_cast<std::time_t>(*us / 1'000'000)),
                     *us / 1000 % 1000);
}

std::string StateText(RankState state) {
  std::string text(Name(state));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

void Print(const StatusAnswer& answer) {
  std::optional<std::int64_t> latest;
  for (const ProcessStatus& row : answer.rows) latest = std::max(latest, row.last_record_us);
  PrintHeading(fmt::format(
      "run {}{}: {}", answer.run,
      answer.launch_count > 1 ? fmt::format(", launch {} of {}", answer.launch, answer.launch_count)
                              : "",
      Count(answer.rows.size(), "process")));
  Table table({{"rank"},
               {"pid", Table::Align::kLeft, 1},
               {"state"},
               {"compile"},
               {"function"},
               {"in"},
               {"since (UTC)", Table::Align::kLeft, 2},
               {"last record (UTC)"},
               {"behind", Table::Align::kRight},
               {"done", Table::Align::kRight, 3}});
  for (const ProcessStatus& row : answer.rows) {
    table.Add({row.name, std::to_string(row.pid),
               StateText(row.state) + (row.is_backward ? " backward" : "") +
                   (row.readable_bytes ? ", log damaged" : ""),
               row.compile, row.function, row.phase, TimeText(row.since_us),
               TimeText(row.last_record_us),
               row.last_record_us && latest
                   ? HumanDuration(static_cast<double>(*latest - *row.last_record_us) / 1e6)
                   : "",
               std::to_string(row.compiles_done)});
  }
  for (const StatusAnswer::EmptyLog& log : answer.empty_logs)
    table.Add(
        {log.rank ? std::to_string(*log.rank) : "", "", "no record", "", "", "", "", "", "", ""});
  table.Print();
  const bool has_unread = std::any_of(answer.rows.begin(), answer.rows.end(),
                                      [](const ProcessStatus& row) { return row.readable_bytes; });
  if (has_unread)
    PrintWrapped(
        "log damaged: the compressed file is cut or damaged (tlparse import-log). The row is of "
        "the last record that could be read; what came after is not known.",
        0, 2);
}

JsonWriter ToJson(const StatusAnswer& answer) {
  const auto text = [](const std::string& value) { return NonEmpty(value); };
  JsonWriter json;
  json.BeginObject().Key("run").String(answer.run).Key("launch").Int(answer.launch);
  json.Key("launch_count").Int(answer.launch_count).Key("rows").BeginArray();
  for (const ProcessStatus& row : answer.rows) {
    json.BeginObject().Key("launch").Int(row.launch);
    json.Key("rank").OptionalInt(row.rank).Key("pid").Int(row.pid);
    json.Key("state").String(Name(row.state)).Key("compile").OptionalString(text(row.compile));
    json.Key("function").OptionalString(text(row.function));
    json.Key("is_backward").Bool(row.is_backward);
    json.Key("phase").OptionalString(text(row.phase)).Key("since_us").OptionalInt(row.since_us);
    json.Key("first_record_us").OptionalInt(row.first_record_us);
    json.Key("last_record_us").OptionalInt(row.last_record_us);
    json.Key("compiles_done").Int(row.compiles_done).Key("process_id").Int(row.process_id);
    json.Key("readable_bytes").OptionalInt(row.readable_bytes);
    json.Key("log").String(row.log_path).EndObject();
  }
  json.EndArray().Key("logs_without_records").BeginArray();
  for (const StatusAnswer::EmptyLog& log : answer.empty_logs)
    json.BeginObject().Key("rank").OptionalInt(log.rank).Key("log").String(log.path).EndObject();
  json.EndArray().EndObject();
  return json;
}

}  // namespace

int RunStatus(std::span<const std::string> arguments) {
  Arguments app(
      "The state of each rank at the end of its log: in which compile and phase, since when, and "
      "how long before the last record of all. A log does not show why it ends: that of a process "
      "that hangs looks like that of one that was killed.",
      "status");
  AnswerArguments common;
  StatusOptions options;
  AddAnswerArguments(app, common);
  app.Add("--run", options.run, "the run of this name (default: the latest)");
  app.Add("--launch", options.launch, "this launch (1 is the first; default: the latest)")
      .Positive();
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Result<Database> database = OpenAnswerDatabase(common.database);
  if (!database) return ReportError(database.error());
  const Result<StatusAnswer> answer = AnalyzeStatus(*database, options);
  if (!answer) return ReportError(answer.error());
  if (common.json) {
    PrintJson(ToJson(*answer));
  } else {
    Print(*answer);
  }
  return kExitDone;
}

}  // namespace tlparse

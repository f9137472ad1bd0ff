// tlparse fleet jobs | time | cache | …: tables for people, JSON for programs.
#include "cli/fleet_answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "cli/command.h"
#include "cli/fleet_arguments.h"
#include "cli/terminal.h"
#include "fleet/fleet_answer.h"

namespace tlparse {
namespace {

using Kind = FleetColumnOfAnswer::Kind;

bool IsNumber(const std::string& text) {
  const bool has_digits = text.find_first_of("0123456789") != std::string::npos;
  return has_digits && text.find_first_not_of("-+.0123456789e") == std::string::npos;
}

JsonWriter FleetJson(const FleetAnswer& answer) {
  JsonWriter json;
  json.BeginObject();
  for (const FleetSection& section : answer.sections) {
    json.Key(section.name).BeginArray();
    for (const auto& row : section.rows) {
      json.BeginObject();
      for (std::size_t i = 0; i < section.columns.size(); ++i) {
        json.Key(section.columns[i].name);
        const Kind kind = section.columns[i].kind;
        if (!row[i] || (kind != Kind::kText && !IsNumber(*row[i]))) {
          json.Null();
        } else if (kind == Kind::kBool) {
          json.Bool(*row[i] != "0");
        } else if (kind == Kind::kText) {
          json.String(*row[i]);
        } else if (kind == Kind::kInt) {
          json.Int(std::strtoll(row[i]->c_str(), nullptr, 10));
        } else {
          json.Real(std::strtod(row[i]->c_str(), nullptr));
        }
      }
      json.EndObject();
    }
    json.EndArray();
  }
  json.Key("notes").BeginArray();
  for (const std::string& note : answer.notes) json.String(note);
  json.EndArray().EndObject();
  return json;
}

bool IsShown(const FleetColumnOfAnswer& column) { return column.name != "start_us"; }

std::string ValueText(const FleetColumnOfAnswer& column, const std::optional<std::string>& value) {
  if (!value) return {};
  if (column.kind == Kind::kBool) return *value == "0" ? "" : "yes";
  return column.name.ends_with("_us") ? HumanDuration(std::strtod(value->c_str(), nullptr) / 1e6)
                                      : *value;
}

// A duration is printed with its unit.
std::string Heading(std::string name) {
  if (name.ends_with("_us")) name.resize(name.size() - 3);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

void Print(const FleetAnswer& answer, std::int64_t limit) {
  for (const FleetSection& section : answer.sections) {
    std::printf("%s\n", Styled(Heading(section.name), Style::kBold).c_str());
    if (section.rows.empty()) {
      std::puts("  none");
      continue;
    }
    std::vector<Table::Column> columns;
    for (const FleetColumnOfAnswer& column : section.columns)
      if (IsShown(column))
        columns.push_back({Heading(column.name), column.kind == Kind::kText
                                                     ? Table::Align::kLeft
                                                     : Table::Align::kRight});
    Table table(columns);
    for (const auto& row : section.rows) {
      std::vector<std::string> cells;
      for (std::size_t i = 0; i < section.columns.size(); ++i)
        if (IsShown(section.columns[i])) cells.push_back(ValueText(section.columns[i], row[i]));
      table.Add(std::move(cells));
    }
    table.Print();
    if (static_cast<std::int64_t>(section.rows.size()) == limit)
      std::printf("  (at most %zu rows: --limit)\n", section.rows.size());
  }
  for (const std::string& note : answer.notes) std::printf("%s\n", Printable(note).c_str());
}

struct FleetAnswerCommand {
  std::string_view name;
  const char* description;
  Result<FleetAnswer> (*ask)(FleetReader&, const FleetQuestion&);
};
constexpr FleetAnswerCommand kAnswers[] = {
    {"jobs", "Runs that were pushed, the latest first.", &FleetJobs},
    {"time",
     "Compile time of one function in each run, with the run at which it changed and what else "
     "changed there; without --function the functions that took longest.",
     &FleetTime},
    {"cache", "Hit rates by job, day and layer; components of keys that change most often.",
     &FleetCache},
    {"ranks", "One run: what differs between its ranks, and why.", &FleetRanks},
    {"breaks", "Graph breaks, the costliest first.", &FleetBreaks},
    {"recompiles", "Recompiles, the costliest first.", &FleetRecompiles},
    {"code", "Generated code that differs between versions of torch.", &FleetCode},
    {"findings", "Findings of all runs, the most urgent first; new ones are marked.",
     &FleetFindings},
    {"kernel", "The runs that compiled a kernel, and the lines it comes from.", &FleetKernel},
};

// An empty answer about a job that no run was pushed of, at any time, is a mistake in its name.
Result<void> CheckJob(FleetReader& reader, FleetQuestion question, const FleetAnswer& answer) {
  const bool is_empty = std::all_of(answer.sections.begin(), answer.sections.end(),
                                    [](const FleetSection& one) { return one.rows.empty(); });
  if (question.job.empty() || !is_empty) return {};
  question.since_day = 0;
  question.limit = 100;
  ASSIGN_OR_RETURN(const FleetAnswer own, FleetJobs(reader, question));
  if (!own.sections.front().rows.empty()) return {};
  const std::string job = std::exchange(question.job, std::string());
  ASSIGN_OR_RETURN(const FleetAnswer all, FleetJobs(reader, question));
  constexpr std::size_t kMost = 5;
  std::vector<std::string> names;
  for (const auto& row : all.sections.front().rows) {
    const std::string name = row.front().value_or("");
    if (names.size() < kMost && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  return Fail(ErrorCode::kNotFound,
              names.empty()
                  ? fmt::format("no job '{}': no run was pushed", job)
                  : fmt::format("no job '{}'; the last ones are {}", job, fmt::join(names, ", ")));
}

}  // namespace

int RunFleetAnswer(const std::string& name, std::span<const std::string> given) {
  const auto* const command = std::find_if(std::begin(kAnswers), std::end(kAnswers),
                                           [&](const auto& one) { return one.name == name; });
  if (command == std::end(kAnswers))
    return ReportError({ErrorCode::kInternal, "no such answer of a fleet: " + name});
  Arguments app(command->description, "fleet " + name);
  FleetArguments fleet;
  FleetQuestion question;
  std::string since = "30d";
  std::optional<std::int64_t> limit;
  bool json = false;
  if (name == "kernel") app.Add("kernel", question.kernel, "name of the kernel").Required();
  fleet.timeout_s = 30;
  fleet.AddTo(app);
  app.Add("--job", question.job, "only runs of this job");
  app.Add("--since", since, "only runs since then: 30d, or a day like 2026-11-22").ShowDefault();
  if (name == "time") app.Add("--function", question.function, "the compiled function");
  if (name == "ranks")
    app.Add("--run-id", question.run_id, "the run (default: the latest of the job)");
  app.Add("--limit", limit, "rows at most (default: 20; 100,000 with --json)").Positive();
  app.Flag("--json", json, "JSON instead of a table");
  if (const std::optional<int> code = app.Parse(given)) return *code;
  const std::optional<std::int64_t> since_s = ParseSince(since);
  if (!since_s)
    return ReportError(
        {ErrorCode::kUsage, fmt::format("'{}' is no time like 30d or 2026-11-22", since)});
  question.since_day = std::max<std::int64_t>(0, *since_s / 86400);
  question.limit = limit.value_or(json ? 100'000 : 20);
  const Result<std::vector<ClickHouseOptions>> servers = fleet.Servers();
  if (!servers) return ReportFleetError(servers.error());
  question.servers = *servers;
  if (isatty(STDERR_FILENO) != 0)
    question.on_progress = [](std::size_t done, std::size_t count) {
      std::fprintf(stderr, "\rfindings of %zu of %zu runs derived%s", done, count,
                   done == count ? "\n" : "");
    };
  Result<FleetReader> reader = FleetReader::Make(*servers);
  if (!reader) return ReportFleetError(reader.error());
  const Result<FleetAnswer> answer = command->ask(*reader, question);
  if (!answer) return ReportFleetError(answer.error());
  if (const Result<void> checked = CheckJob(*reader, question, *answer); !checked)
    return ReportFleetError(checked.error());
  if (json) {
    PrintJson(FleetJson(*answer));
  } else {
    Print(*answer, question.limit);
  }
  return kExitDone;
}

}  // namespace tlparse

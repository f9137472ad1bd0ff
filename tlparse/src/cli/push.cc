// tlparse push <db | logs …>: a run, or a host's part of it, into a fleet's tables.
#include "fleet/push.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/plural.h"
#include "cli/answer_input.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/fleet_arguments.h"
#include "cli/terminal.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

struct PushArguments {
  FleetArguments fleet;
  std::vector<std::string> inputs;
  std::vector<std::string> tags;
  std::string ranks, day;
  int spread_s = 0;
  bool without_text = false;
  bool json = false;
  PushOptions options;
};

void Describe(Arguments& app, PushArguments& arguments) {
  PushOptions& options = arguments.options;
  app.Add("input", arguments.inputs,
          "database, DB:run, output directory, logs or directories of logs");
  arguments.fleet.AddTo(app);
  app.Add("--run", options.run, "the run of this name in the database (default: the latest)");
  app.Add(
      "--job", options.job,
      "name of the job, which its runs have in common (default: the last part of the run's name)");
  app.Add(
      "--job-key", options.job_key,
      "a text that is the same on all hosts of one run, and different for other runs (default: the "
      "environment's TORCHELASTIC_RUN_ID, else SLURM_JOB_ID, for logs; databases know their run)");
  app.Add("--day", arguments.day,
          "day of the run, like 2026-11-22 (default: of its first compile)");
  app.Add("--tag", arguments.tags, "KEY=VALUE, kept with the run; may be repeated").OneValueEach();
  app.Add("--ranks", arguments.ranks, "only these ranks, like 0-63,128");
  app.Flag("--with-records", options.rows.with_records,
           "also records, payloads and events that no answer reads");
  app.Flag("--without-text", arguments.without_text,
           "send hashes instead of source code, its values and messages");
  app.Add("--spread", arguments.spread_s,
          "first wait a random time of up to this number of seconds: for a thousand hosts at once");
  app.Flag("--dry-run", options.dry_run, "count what would be sent, send nothing");
  app.Flag("--json", arguments.json, "JSON instead of text");
}

// The job key of a run whose logs are pushed where it ran.
std::string JobKeyOfEnvironment() {
  if (const char* id = std::getenv("TORCHELASTIC_RUN_ID");
      id != nullptr && *id != '\0' && std::string_view(id) != "none")
    return std::string("torchelastic ") + id;
  if (const char* id = std::getenv("SLURM_JOB_ID"); id != nullptr && *id != '\0') {
    const char* restarts = std::getenv("SLURM_RESTART_COUNT");
    return fmt::format("slurm {} {}", id, restarts == nullptr ? "0" : restarts);
  }
  return {};
}

Result<void> Complete(PushArguments& arguments) {
  PushOptions& options = arguments.options;
  if (arguments.inputs.empty())
    return Fail(ErrorCode::kUsage, "push needs a database or logs; see 'tlparse push --help'");
  ASSIGN_OR_RETURN(options.servers, arguments.fleet.Servers());
  ASSIGN_OR_RETURN(options.ranks, ParseRankRanges(arguments.ranks));
  if (!arguments.day.empty()) {
    options.day = ParseDay(arguments.day);
    if (options.day < 0)
      return Fail(ErrorCode::kUsage, fmt::format("'{}' is no day like 2026-11-22", arguments.day));
  }
  for (const std::string& tag : arguments.tags) {
    const std::size_t equals = tag.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Fail(ErrorCode::kUsage, fmt::format("'{}' is no tag like KEY=VALUE", tag));
    options.tags.emplace_back(tag.substr(0, equals), tag.substr(equals + 1));
  }
  options.rows.with_text = !arguments.without_text;
  options.spread_s = arguments.spread_s;
  return {};
}

class PushProgress {
 public:
  ~PushProgress() {
    if (is_shown_) std::fputs("\r\x1b[K", stderr);
  }
  void Show(std::uint64_t rows, std::string_view table) {
    if (!Terminal::Err().is_terminal) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - start_ < std::chrono::milliseconds(500) ||
        now - last_ < std::chrono::milliseconds(150))
      return;
    last_ = now;
    is_shown_ = true;
    std::fprintf(stderr, "\r\x1b[K%s rows read, %s", fmt::format("{}", rows).c_str(),
                 std::string(table).c_str());
    std::fflush(stderr);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = start_;
  bool is_shown_ = false;
};

std::string Sentence(const PushSummary& summary, bool is_dry) {
  const std::string run = fmt::format("run {} of job {}, {}", ToText(summary.run_id),
                                      Printable(summary.job), DayText(summary.day));
  if (summary.was_there) return run + ": already there, nothing sent";
  if (summary.was_withdrawn)
    return run + ": another push of the same logs was first; this one was withdrawn";
  const PushCounters& counters = summary.counters;
  std::string text =
      fmt::format("{}: {}, {} ({} compressed) {}", run, Count(counters.rows, "row"),
                  HumanBytes(static_cast<std::int64_t>(counters.plain_bytes)),
                  HumanBytes(static_cast<std::int64_t>(counters.sent_bytes)),
                  is_dry ? "would be sent at most (contents that are there are not sent again)"
                         : "sent to " + summary.url);
  if (summary.replaced_loads > 0)
    text += fmt::format("; replaces {} earlier {}", summary.replaced_loads,
                        summary.replaced_loads == 1 ? "push" : "pushes");
  return text;
}

JsonWriter PushJson(const PushSummary& summary, bool is_dry) {
  JsonWriter json;
  json.BeginObject().Key("run_id").String(ToText(summary.run_id));
  json.Key("job").String(summary.job).Key("day").String(DayText(summary.day));
  json.Key("url").String(summary.url).Key("load_id").String(std::to_string(summary.load_id));
  json.Key("state").String(is_dry                  ? "dry_run"
                           : summary.was_there     ? "already_there"
                           : summary.was_withdrawn ? "withdrawn"
                                                   : "pushed");
  json.Key("replaced_loads").Int(static_cast<std::int64_t>(summary.replaced_loads));
  json.Key("rows").Int(static_cast<std::int64_t>(summary.counters.rows));
  json.Key("plain_bytes").Int(static_cast<std::int64_t>(summary.counters.plain_bytes));
  json.Key("sent_bytes").Int(static_cast<std::int64_t>(summary.counters.sent_bytes));
  json.Key("retries").Int(static_cast<std::int64_t>(summary.counters.retries));
  json.Key("tables").BeginObject();
  for (const auto& [table, count] : summary.row_counts)
    json.Key(table).Int(static_cast<std::int64_t>(count));
  json.EndObject().EndObject();
  return json;
}

}  // namespace

int RunPush(std::span<const std::string> given) {
  Arguments app(
      "Copy a run, or a host's part of it, to a fleet's ClickHouse. It becomes visible as a whole; "
      "a repeated push changes nothing. 'tlparse fleet init' creates the tables.",
      "push");
  PushArguments arguments;
  Describe(app, arguments);
  if (const std::optional<int> code = app.Parse(given)) return *code;
  if (Result<void> completed = Complete(arguments); !completed)
    return ReportFleetError(completed.error());
  PushOptions& options = arguments.options;
  Result<AnswerInput> input = OpenAnswerInputs(arguments.inputs);
  if (!input) return ReportError(input.error());
  if (options.run.empty()) options.run = input->run;
  if (input->is_from_logs && options.job_key.empty()) options.job_key = JobKeyOfEnvironment();
  PushProgress progress;
  options.on_progress = [&](std::uint64_t done, std::uint64_t, std::string_view table) {
    progress.Show(done, table);
  };
  const Result<PushSummary> summary = Push(input->database, options);
  if (!summary) return ReportFleetError(summary.error());
  if (arguments.json) {
    PrintJson(PushJson(*summary, options.dry_run));
  } else {
    std::puts(Sentence(*summary, options.dry_run).c_str());
  }
  return kExitDone;
}

}  // namespace tlparse

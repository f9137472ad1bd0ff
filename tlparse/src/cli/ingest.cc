// tlparse <log | directory | -> …: ingest and report, the main job.
#include "queries/cli/ingest.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <unordered_set>

#include "base/durable_rename.h"
#include "base/free_memory.h"
#include "base/plural.h"
#include "base/remove_on_signal.h"
#include "base/step_times.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/finding_output.h"
#include "cli/ingest_options.h"
#include "cli/kept_answers.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/version_text.h"
#include "cli/what_is_here.h"
#include "facts/job/participants.h"
#include "facts/ranks/job_facts.h"
#include "findings/findings.h"
#include "import/importer.h"
#include "inputs/size_estimate.h"
#include "report/output_directory.h"
#include "report/report.h"
#include "report/viewer/export.h"
#include "store/unfinished_database.h"

namespace tlparse {

namespace {

// The same path twice is one file.
template <typename File>
void KeepOnePerPath(std::vector<File>& files) {
  std::unordered_set<std::string> known;
  std::erase_if(files, [&](const File& file) { return !known.insert(file.path).second; });
}

Result<FoundInputs> InputsOf(const IngestOptions& options) {
  FoundInputs found;
  for (const std::string& input : options.inputs) {
    if (input == "-") {
      found.logs.push_back({"-", std::nullopt, 0});
      continue;
    }
    std::string path = input;
    struct stat status {};
    if (options.latest && stat(input.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      ASSIGN_OR_RETURN(path, LatestLog(input));
    }
    ASSIGN_OR_RETURN(FoundInputs part, FindInputs(path));
    AppendInputs(std::move(part), found);
  }
  KeepOnePerPath(found.logs);
  KeepOnePerPath(found.runtime);
  if (options.only == "logs") found.runtime.clear();
  if (options.only == "profiles") found.logs.clear();
  if (found.logs.empty() && found.runtime.empty()) {
    const auto damaged = std::find_if(found.skipped.begin(), found.skipped.end(),
                                      [](const SkippedFile& file) { return file.IsUnknown(); });
    if (damaged != found.skipped.end())
      return Fail(
          ErrorCode::kDamagedInput,
          fmt::format(
              "nothing in '{}' can be read: {}: {}{}", options.inputs.front(), damaged->path,
              damaged->reason,
              damaged->reason.find("data is cut") == std::string::npos ? "" : "; copy it again"));
    return Fail(ErrorCode::kNotFound,
                fmt::format("no structured trace{} in '{}'; TORCH_TRACE=<directory> makes PyTorch "
                            "write one",
                            options.only == "logs" ? "" : ", profile or recorder dump",
                            options.inputs.front()));
  }
  return found;
}

// Where the database is created: next to the output directory until everything has succeeded.
std::string DatabaseBeside(const IngestOptions& options) {
  std::string base = options.output;
  while (base.size() > 1 && base.back() == '/') base.pop_back();
  RemoveAbandonedDatabases(base);
  return fmt::format("{}.{}.db", base, getpid());
}

Result<void> MakeParent(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error)
    return Fail(ErrorCode::kIo, fmt::format("cannot make the directory '{}': {}", parent.string(),
                                            error.message()));
  return {};
}

Result<ImportSummary> Import(const IngestOptions& options, const FoundInputs& found,
                             const std::string& database, StepTimes& times,
                             std::optional<Database>& reader) {
  ImportOptions import;
  import.reader = &reader;
  import.threads = options.threads;
  import.times = &times;
  import.database_path = database;
  import.append = options.database.has_value();
  import.run_name =
      options.run.value_or(options.inputs.front() == "-" ? "stdin" : options.inputs.front());
  import.runtime_inputs = found.runtime;
  import.derive = &WriteJobFacts;
  import.runtime.keep_python_frames = options.keep_python_frames;
  ProgressLine progress(found.logs.size() + found.runtime.size());
  import.on_progress = [&](const ImportProgress& state) { progress.Show(state);
};
return ImportLogs(found.logs, found.skipped, import);
}  // namespace

void Say(const IngestOptions& options, const ImportSummary& summary, double seconds) {
  if (!options.verbose) return;
  std::fprintf(
      stderr, "%s\n",
      fmt::format("{} of {} ({}) in {}, {:.0f} MB/s; import log: {}, {}, {}",
                  Count(summary.record_count, "record"), Count(summary.log_count, "log"),
                  HumanBytes(summary.size_bytes), HumanDuration(seconds),
                  static_cast<double>(summary.size_bytes) / 1e6 / std::max(seconds, 1e-9),
                  Count(summary.error_count, "error"), Count(summary.warning_count, "warning"),
                  Count(summary.info_count, "info"))
          .c_str());
}

void AnnounceSize(const IngestOptions& options, const FoundInputs& found) {
  const std::int64_t bytes = EstimateDatabaseBytes(found);
  if (bytes <= kAnnouncedDatabaseBytes) return;
  std::fprintf(stderr, "tlparse: the database will %s about %s (estimated from the input's size)\n",
               options.database ? "grow by" : "take", HumanBytes(bytes).c_str());
}

// What the benchmark reads: the CPU seconds of each step, and of its longest task.
void SayTimes(const IngestOptions& options, const StepTimes& times) {
  if (!options.verbose) return;
  std::string line = "CPU seconds (longest task):";
  for (std::size_t i = 0; i < kStepNames.size(); ++i) {
    const auto step = static_cast<LoadStep>(i);
    line += fmt::format("{} {} {:.4f} ({:.4f})", i == 0 ? "" : ",", kStepNames[i],
                        times.Seconds(step), times.LongestSeconds(step));
  }
  std::fprintf(stderr, "%s\n", line.c_str());
}

// --strict and --strict-compile-id ask the finished database.
int Judge(const IngestOptions& options, Database& database, const ImportSummary& summary) {
  int code = kExitDone;
  if (options.strict && summary.error_count + summary.warning_count > 0) {
    std::fprintf(stderr,
                 "tlparse: --strict: the import log holds %lld errors and %lld warnings; see "
                 "'tlparse import-log %s'\n",
                 static_cast<long long>(summary.error_count),
                 static_cast<long long>(summary.warning_count), Printable(database.path()).c_str());
    code = kExitNo;
  }
  if (options.strict_compile_id) {
    const Result<FirstRow<StretchesWithoutId>> row =
        First(Query<StretchesWithoutId>(database, {summary.run_id}));
    if (!row) return ReportError(row.error());
    if (const std::int64_t count = (*row)->stretches; count > 0) {
      std::fprintf(stderr,
                   "tlparse: --strict-compile-id: %lld stretches of records have no compile id\n",
                   static_cast<long long>(count));
      code = kExitNo;
    }
  }
  return code;
}

void OpenBrowser(const std::string& page) {
  if (fork() != 0) return;
  setsid();
  execlp("xdg-open", "xdg-open", page.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

Result<void> Report(const IngestOptions& options, const Directory& directory, Database& database,
                    std::int64_t run_id, StepTimes& times) {
  ReportOptions report;
  report.threads = options.threads;
  report.times = &times;
  report.plain_text = options.plain_text;
  report.with_profile = options.with_profile;
  report.export_report = options.export_report;
  report.inductor_provenance = options.inductor_provenance;
  report.rank_directories = options.all_ranks_html;
  report.custom_header_html = options.custom_header_html;
  report.run_id = run_id;
  report.world_size = options.world_size;
  // With the viewer, its page is index.html, and the plain list of files is another file.
  report.viewer = !ViewerPage().empty();
  if (report.viewer) report.root_index_name = kPlainIndexName;
  const Result<ReportSummary> written = WriteReport(database, directory, report);
  if (!written)
    return Fail(written.error().code,
                fmt::format("{}; '{}' holds a part of the report{}: --overwrite replaces it",
                            written.error().message, options.output,
                            options.database ? "" : " and all of trace.db"));
  const ReportSummary& summary = *written;
  if (summary.left_out > 0) {
    std::fprintf(stderr,
                 "tlparse: %lld more ranks, of logs with more than 1024 ranks, have no files of "
                 "their own; their records are in the database and on the page\n",
                 static_cast<long long>(summary.left_out));
  }
  if (options.verbose) {
    std::fprintf(stderr, "%lld files in %lld directories\n", static_cast<long long>(summary.files),
                 static_cast<long long>(summary.logs));
  }
  return {};
}

// What could not be read whole of profiles and dumps, and files of which nothing could: answers
// count only what was read.
Result<void> TellDamage(Database& database, const ImportSummary& summary) {
  std::int64_t shown = 0, all = 0;
  FOR_EACH_ROW(const InputReadInPart& row,
               Query<InputReadInPart>(database, {.run_id = summary.run_id})) {
    ++shown;
    all = row.all_count;
    // A message about compressed data names the file, and says itself what was read.
    const bool names_file = !row.path || row.message.starts_with(std::string(*row.path) + ": ");
    const std::string what = names_file        ? std::string()
                             : row.is_left_out ? fmt::format("{}: ", *row.path)
                                               : fmt::format("not all of {} was read: ", *row.path);
    std::fprintf(stderr, "tlparse: %s%s\n", Printable(what).c_str(),
                 Printable(row.message).c_str());
  }
  if (shown == 0) return {};
  std::fprintf(stderr, "tlparse: %ssee 'tlparse import-log %s'\n",
               all > shown ? fmt::format("and {}; ", Count(all - shown, "more file")).c_str() : "",
               Printable(database.path()).c_str());
  return {};
}

// The five most urgent ones, for the terminal.
Result<void> TellFindings(Database& database, const ImportSummary& summary,
                          const IngestOptions& options, const std::string& path) {
  FindingsOptions findings_options;
  findings_options.world_size = options.world_size;
  ASSIGN_OR_RETURN(findings_options.run, NameOfRun(database, summary.run_id));
  ASSIGN_OR_RETURN(const std::vector<Finding> findings, FindFindings(database, findings_options));
  constexpr std::size_t kMost = 5;
  PrintTopFindings(findings, kMost, options.db_only || options.database ? path : options.output);
  return {};
}

// Of what was loaded: the connection of the load, if it stayed open.
Result<Database> Reader(std::optional<Database> loaded, const std::string& path) {
  if (!loaded) return Database::Open(path, Database::Mode::kReadOnly);
  RETURN_IF_ERROR(loaded->ReadOn(path));
  return std::move(*loaded);
}

Result<int> IngestInputs(const IngestOptions& options) {
  ASSIGN_OR_RETURN(const FoundInputs found, InputsOf(options));
  const bool has_directory = !(options.database && options.db_only);
  if (has_directory) {
    Result<void> checked = CheckOutputDirectory(options.output, options.overwrite);
    if (!checked && options.database)
      return Fail(checked.error().code,
                  checked.error().message +
                      " (the report is written there; --db-only writes the database alone)");
    RETURN_IF_ERROR(checked);
  }
  const std::string loaded = options.database ? *options.database : DatabaseBeside(options);
  RETURN_IF_ERROR(MakeParent(loaded));
  std::optional<RemoveOnSignal> remove_loaded;  // until it stands where it belongs
  if (!options.database) remove_loaded.emplace(loaded);
  AnnounceSize(options, found);
  const auto start = std::chrono::steady_clock::now();
  StepTimes times;
  std::optional<Database> reader;
  ASSIGN_OR_RETURN(const ImportSummary summary, Import(options, found, loaded, times, reader));
  GiveBackFreeMemory();
  Say(options, summary,
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  std::string final_path = loaded;
  std::optional<Directory> output;
  if (has_directory) {
    Result<Directory> directory = CreateOutputDirectory(options.output, options.overwrite);
    if (directory && !options.database) {
      final_path = directory->path() + "/trace.db";
      if (Result<void> renamed = RenameDurably(loaded, final_path); !renamed)
        directory = tl::unexpected<Error>(std::move(renamed).error());
    }
    remove_loaded.reset();
    if (!directory) {
      if (!options.database) unlink(loaded.c_str());
      return tl::unexpected<Error>(std::move(directory).error());
    }
    output = std::move(*directory);
  }
  ASSIGN_OR_RETURN(Database database, Reader(std::move(reader), final_path));
  if (!options.db_only) RETURN_IF_ERROR(Report(options, *output, database, summary.run_id, times));
  KeepAnswers(final_path);
  SayTimes(options, times);
  const std::string page = options.output + "/index.html";
  std::puts(Printable(options.db_only ? final_path : page).c_str());
  std::fflush(stdout);
  if (summary.error_count > 0) RETURN_IF_ERROR(TellDamage(database, summary));
  if (Terminal::Err().is_terminal)
    RETURN_IF_ERROR(TellFindings(database, summary, options, final_path));
  if (options.browser && !options.db_only) OpenBrowser(page);
  const int judged = Judge(options, database, summary);
  if (!options.serve) return judged;
  std::fflush(stdout);
  std::vector<std::string> arguments = {options.db_only || options.database ? final_path
                                                                            : options.output};
  if (options.port) arguments.insert(arguments.end(), {"--port", *options.port});
  if (options.world_size)
    arguments.insert(arguments.end(), {"--world-size", std::to_string(*options.world_size)});
  return RunServe(arguments);
}

}  // namespace tlparse

int RunIngest(std::span<const std::string> arguments) {
  Arguments app("Ingest structured traces of PyTorch (TORCH_TRACE) into SQLite, and report.");
  IngestOptions options;
  Describe(app, options);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  if (options.version) {
    std::puts(VersionText(options.verbose).c_str());
    return kExitDone;
  }
  if (options.inputs.empty()) {
    const char* trace = std::getenv("TORCH_TRACE");
    if (!options.latest || trace == nullptr || *trace == '\0') {
      const std::string here = WhatIsHere();
      return ReportError(
          {ErrorCode::kUsage,
           "no input; " + (here.empty() ? "give a log, a directory of logs, or - for standard "
                                          "input (see 'tlparse --help')"
                                        : here)});
    }
    options.inputs.emplace_back(trace);
  }
  if (options.all_ranks_html && options.latest) {
    std::fputs(
        "tlparse: --all-ranks-html wants every rank, --latest a single log; leave one of the two "
        "out\n",
        stderr);
    return kExitUsage;
  }
  Result<int> code = IngestInputs(options);
  return code ? *code : ReportError(code.error());
}

}  // namespace tlparse

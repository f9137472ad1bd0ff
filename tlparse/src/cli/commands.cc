#include "cli/commands.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/compile.h"
#include "cli/search.h"
#include "cli/sharing.h"
#include "cli/terminal.h"
#include "cli/watch.h"

namespace tlparse {

namespace {

// In the order of --help. A new command is a file, a declaration in commands.h and a row here.
constexpr Command kCommands[] = {
    {"sql", "<db> \"SELECT …\"", "run any query", &RunSql},
    {"findings", "<db> [--launch N] [--severity S] [--markdown]",
     "what is wrong and why, the most urgent first", &RunFindings},
    {"history", "<db>",
     "the compiles: when, how long by phase, status, graph breaks, recompiles, caches",
     &RunHistory},
    {"compile", "<db> 1/0 [--rank N] [--process PID]",
     "one compile on one rank: caller, lines, inputs, guards, times, caches, end", &RunCompile},
    {"ranks", "<db> [--all]",
     "one screen for a job: classes of ranks, what sets them apart, the slowest, the missing",
     &RunRanks},
    {"cache", "<db> [--rank R] [--all]",
     "hits and misses of caches, where the keys of ranks differ and why, the time that caches "
     "saved",
     &RunCache},
    {"collectives", "<db> [--all]",
     "which rank schedules its collectives differently, where, and how", &RunCollectives},
    {"execution", "<db> [--all]",
     "differences between ranks in order of execution, estimated runtimes and output tensors",
     &RunExecution},
    {"diff", "<a> <b> [--code]",
     "what changed between two runs or two ranks (databases, DB:run, logs, directories)", &RunDiff},
    {"check", "<db> --no-failures …", "budgets for CI: exit code 1 and the violations",
     &RunCheckCommand},
    {"status", "<db> [--launch N]",
     "the state of each rank at the end of its log: in which compile, since when", &RunStatus},
    {"watch", "<directory> [--once] [--json] [--until-idle 60s]",
     "ingest while the job runs: state of its ranks, findings", &RunWatch},
    {"run", "[options] -- COMMAND …",
     "start a command with everything recorded, follow it, print the findings",
     &RunCommandRecorded},
    {"try", "<db> <finding> [--yes] [-- COMMAND …]",
     "run the command again with the change that a finding suggests, and say what came of it",
     &RunTry},
    {"bisect", "--bad B (--good A | --good-rank N --bad-rank N) [--yes] [-- COMMAND …]",
     "which of the options in which two runs differ makes one bad, by running the command again",
     &RunBisect},
    {"doctor", "[--python PROGRAM]", "what run would record here, and what stands in its way",
     &RunDoctor},
    {"recompiles", "<db>", "why frames were compiled again", &RunRecompiles},
    {"provenance", "<db> [--kernel K | --source FILE:LINE | --node N]",
     "from a kernel to its Python line and back", &RunProvenance},
    {"source", "<db> FILE[:LINE]", "what came of a line of Python", &RunSource},
    {"cost", "<db> [--by line|kernel|node|graph|op|module] [--steps 3-5]",
     "time of the profiled steps by line, kernel, graph; time outside compiled graphs", &RunCost},
    {"autotune", "<db> [--all]",
     "which choices of kernels the compiler timed, which won, which failed, how long it took",
     &RunAutotune},
    {"memory", "<db> [--by line|graph|node|category|stack] [--at peak|oom|end|STEP|+TIME]",
     "who holds the memory, by snapshots of the allocator and profiles with memory events",
     &RunMemory},
    {"timeline", "<db> -o FILE.json[.gz] [--rank N] [--compile 1/0] [--steps 3-5]",
     "a file for Perfetto: compile events, graph calls, profiles, collectives, memory on one clock",
     &RunTimeline},
    {"search", "<db> TEXT [--kind graph|code|guard|log]",
     "where a text occurs in graphs, generated code, guards and other payloads", &RunSearch},
    {"import-log", "<db>", "what was dropped, odd or damaged in the logs", &RunImportLog},
    {"push", "<db | logs …> --url URL [--job J]",
     "copy a run, or a host's part of it, to a fleet's ClickHouse", &RunPush},
    {"pull", "--url URL (--run-id UUID | --job J --latest) -o DB",
     "copy a run of a fleet to a database", &RunPull},
    {"fleet", "<command> --url URL", "questions about all runs of a fleet; init creates its tables",
     &RunFleet},
    {"explain", "[kind]", "what a kind of finding means, what to ask, what to try", &RunExplain},
    {"schema", "[answer]", "the JSON Schema of what an answer writes with --json", &RunSchema},
    {"mcp", "[dir | db …]", "the same answers for agents (Model Context Protocol)", &RunMcp},
    {"serve", "<db> [--port N] [--host ADDRESS]",
     "the report as a page over HTTP, with an SQL console", &RunServe},
    {"redact", "<log | directory> … -o DIR [--key FILE]",
     "copies that may be shown to others: names become pseudonyms, answers stay", &RunRedact},
    {"unredact", "--key FILE [file]", "a text about such copies, with the names", &RunUnredact},
    {"bundle", "<directory> -o report.zip [--redact]",
     "what a bug report needs in one file: logs, findings, versions", &RunBundle},
    {"manual", "", "the manual page of all commands, for man -l", &RunManual},
    {"completion", "bash|zsh|fish",
     "a script that makes a shell complete commands, options, runs, ranks and kernels",
     &RunCompletion},
};

}  // namespace

std::span<const Command> Commands() { return kCommands; }

int ReportError(const Error& error) {
  std::fprintf(stderr, "tlparse: %s\n", Printable(error.message).c_str());
  return error.code == ErrorCode::kInternal ? kExitInternal : kExitUsage;
}

Result<Database> OpenAnswerDatabase(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    const std::string inside = path + "/trace.db";
    if (stat(inside.c_str(), &status) != 0) {
      return Fail(
          ErrorCode::kNotFound,
          fmt::format(
              "the directory '{}' has no trace.db: give an output directory of tlparse or a "
              "database",
              path));
    }
    return Database::Open(inside, Database::Mode::kReadOnly);
  }
  return Database::Open(path, Database::Mode::kReadOnly);
}

void PrintJson(const JsonWriter& json) {
  if (Terminal::Out().is_terminal) {
    const std::string text = PrintableJson(json.text());
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    std::fwrite(json.text().data(), 1, json.text().size(), stdout);
  }
  std::fputc('\n', stdout);
}

}  // namespace tlparse

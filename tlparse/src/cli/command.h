// The subcommands of tlparse. Each has one file in this folder; commands.cc has the table of all.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Exit codes, a public promise.
inline constexpr int kExitDone = 0;
inline constexpr int kExitNo = 1;     // the answer is "no" (check, --strict)
inline constexpr int kExitUsage = 2;  // usage, or input that cannot be read
inline constexpr int kExitInternal = 3;

// A subcommand: `arguments` are those after its name. Prints its answer and returns an exit code.
struct Command {
  std::string_view name;
  std::string_view usage;    // "<db> [--json]"
  std::string_view summary;  // one line
  int (*run)(std::span<const std::string> arguments);
};
std::span<const Command> Commands();
std::span<const Command> FleetCommands();  // of `tlparse fleet`; some have no `run`

// Ingest and report, the main task: called if there is no subcommand.
int RunIngest(std::span<const std::string> arguments);

// What a command line may become, for the scripts of `tlparse completion`.
int RunComplete(std::span<const std::string> arguments);

// Prints "tlparse: <message>" and returns the exit code of the error.
int ReportError(const Error& error);

// Opens the database of an answer: a database file, or an output directory that holds trace.db.
Result<Database> OpenAnswerDatabase(const std::string& path);

// Prints the text and a newline.
void PrintJson(const JsonWriter& json);

}  // namespace tlparse

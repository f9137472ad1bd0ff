// Answers about a job of many ranks, made when it was read: on 10,240 ranks each takes a second. They
// are in a file beside the database, and hold until something is written to it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

// The file; the database may be without it.
std::string KeptAnswersOf(const std::string& database_path);

// Writes it if the job has more than 1,024 processes with a rank: what `tlparse mcp` asks of findings,
// ranks and cache. Says nothing if it cannot be written.
void KeepAnswers(const std::string& database_path);

// What the command gives with these arguments, those before the database. `path`: of the database, or of
// the directory that it is in. Nothing: it is not kept, the database was written to since, or another
// program made it.
std::optional<std::string> KeptAnswer(const std::string& path, std::string_view command,
                                      std::span<const std::string> arguments);

}  // namespace tlparse

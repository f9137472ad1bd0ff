#include "cli/kept_answers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <vector>

#include "base/file_descriptor.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "queries/cli/ingest.h"
#include "store/database.h"

namespace tlparse {
namespace {

constexpr std::int64_t kManyRanks = 1024;

struct KeptQuestion {
  std::string_view command;
  std::array<std::string_view, 2> arguments;
};
constexpr std::array kKeptQuestions = {KeptQuestion{"findings", {"--json", "--evidence"}},
                                       KeptQuestion{"ranks", {"--json", "--no-findings"}},
                                       KeptQuestion{"cache", {"--json", "--no-findings"}}};

std::string HexOf(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// The database's header, in which transactions count, its size and when it was written: where SQLite has
// a write-ahead log, the count stays. Empty: it cannot be read, or the last transactions are in that log.
std::string HeaderOf(const std::string& path) {
  struct stat log {};
  if (stat((path + "-wal").c_str(), &log) == 0 && log.st_size > 0) return {};
  constexpr std::size_t kHeaderSize = 100;
  std::array<char, kHeaderSize> header;
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat written {};
  if (file.get() < 0 || fstat(file.get(), &written) != 0 ||
      pread(file.get(), header.data(), kHeaderSize, 0) != static_cast<ssize_t>(kHeaderSize))
    return {};
  return fmt::format("{} {}.{:09} {}", written.st_size, written.st_mtim.tv_sec,
                     written.st_mtim.tv_nsec, HexOf({header.data(), kHeaderSize}));
}

// The first line of the file: what the answers are of, and which program made them.
std::string HeadingOf(const std::string& path) {
  const std::string header = HeaderOf(path);
  struct stat program {};
  if (header.empty() || stat("/proc/self/exe", &program) != 0) return {};
  return fmt::format("tlparse {} {}.{:09} {}", program.st_size, program.st_mtim.tv_sec,
                     program.st_mtim.tv_nsec, header);
}

std::string Answered(const KeptQuestion& question, const std::string& path) {
  const std::vector<std::string> arguments = {std::string(question.arguments[0]),
                                              std::string(question.arguments[1]), "--", path};
  int code = kExitInternal;
  std::string text;
  for (const Command& command : Commands()) {
    if (command.name == question.command) text = Captured([&] { code = command.run(arguments); });
  }
  return code == kExitDone ? text : std::string();
}

bool HasManyRanks(const std::string& path) {
  Result<Database> database = Database::Open(path, Database::Mode::kReadOnly);
  if (!database) return false;
  const Result<FirstRow<ProcessesWithRank>> row = First(Query<ProcessesWithRank>(*database));
  return row && (*row)->count > kManyRanks;
}

}  // namespace

std::string KeptAnswersOf(const std::string& database_path) { return database_path + ".answers"; }

void KeepAnswers(const std::string& database_path) {
  if (!HasManyRanks(database_path)) return;
  const std::string heading = HeadingOf(database_path);
  const std::string name = KeptAnswersOf(database_path);
  const std::string unfinished = fmt::format("{}.{}", name, getpid());
  if (heading.empty()) return;
  bool is_written = true;
  {
    std::ofstream file(unfinished, std::ios::binary);
    file << heading << '\n';
    for (const KeptQuestion& question : kKeptQuestions) {
      const std::string text = Answered(question, database_path);
      if (!text.empty())
        file << fmt::format("{} {} {}\n", text.size(), question.command,
                            fmt::join(question.arguments, " "))
             << text;
    }
    file.close();
    is_written = file.good();
  }
  if (!is_written || rename(unfinished.c_str(), name.c_str()) != 0) unlink(unfinished.c_str());
}

std::optional<std::string> KeptAnswer(const std::string& path, std::string_view command,
                                      std::span<const std::string> arguments) {
  struct stat status {};
  const bool is_directory = stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  const std::string database_path = is_directory ? path + "/trace.db" : path;
  std::ifstream file(KeptAnswersOf(database_path), std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || line != HeadingOf(database_path)) return std::nullopt;
  const std::string wanted = fmt::format("{} {}", command, fmt::join(arguments, " "));
  while (std::getline(file, line)) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), size);
    constexpr std::size_t kMostSize = std::size_t{64} << 20;
    if (error != std::errc() || size == 0 || size > kMostSize) return std::nullopt;
    if (std::string_view(line).substr(static_cast<std::size_t>(end - line.data())) !=
        " " + wanted) {
      file.seekg(static_cast<std::streamoff>(size), std::ios::cur);
      continue;
    }
    std::string text(size, '\0');
    if (!file.read(text.data(), static_cast<std::streamsize>(size))) return std::nullopt;
    return text;
  }
  return std::nullopt;
}

}  // namespace tlparse

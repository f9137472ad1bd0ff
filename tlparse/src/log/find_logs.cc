#include "log/find_logs.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/ascii.h"
#include "base/input.h"
#include "log/glog_time.h"
#include "log/output_marker.h"
#include "log/rank.h"

namespace tlparse {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnreadMark = ": cannot be read: ";
constexpr std::string_view kOnlyRecorded =
    "it is an output directory of tlparse run: only its folder recorded is read";
constexpr std::size_t kProbeBytes = 64 << 10;

bool IsSuffixCharacter(char c) { return IsDigit(c) || IsLowerCase(c) || c == '_'; }

bool ConsumePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::string_view ConsumeDigits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

// What a file name says: whether it is a trace's, and the digits of its rank.
struct TraceName {
  bool is_trace = false;
  std::string_view rank_digits;
};

TraceName ParseTraceName(std::string_view path) {
  constexpr std::size_t kSuffixCharacters = 8;  // of Python's tempfile module
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (!ConsumePrefix(name, "dedicated_log_torch_trace_")) return {};
  for (const std::string_view compressed : {".gz", ".zst"}) {
    if (name.ends_with(compressed)) {
      name.remove_suffix(compressed.size());
      break;
    }
  }
  constexpr std::string_view kExtension = ".log";
  if (!name.ends_with(kExtension)) return {};
  name.remove_suffix(kExtension.size());
  const auto is_suffix = [](std::string_view text) {
    return text.size() == kSuffixCharacters &&
           std::all_of(text.begin(), text.end(), IsSuffixCharacter);
  };
  std::string_view rest = name;
  if (ConsumePrefix(rest, "rank_")) {
    const std::string_view digits = ConsumeDigits(rest);
    // People rename logs: what follows the rank need not be what PyTorch wrote.
    if (!digits.empty() && (rest.empty() || rest.front() == '_')) return {true, digits};
  }
  return {is_suffix(name), {}};
}

std::int64_t ModificationTimeNs(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return INT64_MIN;
  return status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

// Why a file without a trace's name is not one; an empty reason if it is.
SkippedFile ReasonToSkip(const std::string& path) {
  SkippedFile file{path, {}, true};
  Result<std::unique_ptr<InputStream>> input = OpenInput(path);
  if (!input) {
    file.reason = input.error().message.substr(path.size() + 2);  // "path: reason"
    file.is_other_file = false;
    file.code = ImportCode::kUnreadInput;
    return file;
  }
  std::string bytes(kProbeBytes, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const Result<std::size_t> count = (*input)->Read(bytes.data() + size, bytes.size() - size);
    if (size == 0 && !count && count.error().code == ErrorCode::kDamagedInput)
      file.code = ImportCode::kDamagedInput;
    if (!count || *count == 0) break;  // what is readable of damaged data is enough
    size += *count;
  }
  if (file.IsUnknown())
    file.reason = fmt::format("its {} data is cut or damaged: nothing of it could be read",
                              (*input)->compression());
  else if (size == 0)
    file.reason = "it is empty";
  if (!file.reason.empty()) return file;
  for (std::string_view rest(bytes.data(), size); !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (IsTraceHeaderLine(rest.substr(0, end))) return file;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  file.reason = "no record of a structured trace begins in its first 64 kB";
  return file;
}

// Ours has a marker; the Rust program's has the list of its compiles, which ours has too.
bool IsOutputOfTlparse(const std::string& directory) {
  return std::any_of(std::begin(kOutputFileNames), std::end(kOutputFileNames),
                     [&](std::string_view name) {
                       struct stat status {};
                       const std::string path = directory + "/" + std::string(name);
                       return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
                     });
}

// The folder of an output of `tlparse run` that holds what it recorded; empty: the directory is
// another one.
std::string RecordedIn(const std::string& directory) {
  struct stat status {};
  std::string path = fmt::format("{}/{}", directory, kRecordedFolder);
  const bool is_there = ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  return is_there && IsOutputOfTlparse(directory) ? path : std::string();
}

// Walks through a directory and those below it, without recursion.
class Search {
 public:
  explicit Search(FoundLogs& found) : found_(found) {}

  Result<void> Run(const std::string& directory) {
    const std::string recorded = RecordedIn(directory);
    if (!recorded.empty()) Skip(directory, std::string(kOnlyRecorded));
    RETURN_IF_ERROR(Enter(recorded.empty() ? directory : recorded));
    while (!pending_.empty()) {
      const std::string path = std::move(pending_.back());
      pending_.pop_back();
      Look(path);
    }
    return {};
  }

 private:
  // Puts the entries of a directory before everything else that is pending, in order of name.
  Result<void> Enter(const std::string& directory) {
    struct stat status {};
    if (::stat(directory.c_str(), &status) != 0) {
      return Fail(ErrorCode::kIo,
                  directory + std::string(kUnreadMark) + std::generic_category().message(errno));
    }
    seen_.emplace(status.st_dev, status.st_ino);
    std::error_code error;
    std::vector<std::string> entries;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
      entries.push_back(entry->path().string());
    }
    if (error) {
      return Fail(ErrorCode::kIo, directory + std::string(kUnreadMark) + error.message());
    }
    std::sort(entries.begin(), entries.end(), std::greater<>());
    std::move(entries.begin(), entries.end(), std::back_inserter(pending_));
    return {};
  }

  void Look(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      return SkipUnread(path, std::generic_category().message(errno));
    }
    if (!seen_.emplace(status.st_dev, status.st_ino).second) {
      return Skip(path, "it was already found under another name");
    }
    if (S_ISDIR(status.st_mode)) {
      if (const std::string recorded = RecordedIn(path); !recorded.empty()) {
        Skip(path, std::string(kOnlyRecorded));
        return Look(recorded);
      }
      if (IsOutputOfTlparse(path)) return Skip(path, "it is an output directory of tlparse");
      // A container makes a directory of a file that it does not find.
      if (IsTraceFileName(path)) SkipUnread(path, "it is a directory");
      const Result<void> entered = Enter(path);
      if (!entered)
        SkipUnread(path, entered.error().message.substr(path.size() + kUnreadMark.size()));
      return;
    }
    // Opening a pipe would wait for a writer.
    if (!S_ISREG(status.st_mode)) return Skip(path, "it is not a regular file");
    if (::access(path.c_str(), R_OK) != 0)
      return SkipUnread(path, std::generic_category().message(errno));
    if (!IsTraceFileName(path)) {
      SkippedFile file = ReasonToSkip(path);
      if (!file.reason.empty()) {
        found_.skipped.push_back(std::move(file));
        return;
      }
    }
    found_.logs.push_back({path, RankFromFileName(path), status.st_size});
  }

  void Skip(const std::string& path, std::string reason) {
    found_.skipped.push_back({path, std::move(reason), false});
  }
  void SkipUnread(const std::string& path, const std::string& why) {
    found_.skipped.push_back(SkippedFile::Unread(path, why));
  }

  FoundLogs& found_;
  std::vector<std::string> pending_;  // the next one is the last
  std::set<std::pair<dev_t, ino_t>> seen_;
};

}  // namespace

Result<FoundLogs> FindLogs(const std::string& path) {
  FoundLogs found;
  if (path == "-") {
    found.logs.push_back({path, std::nullopt, -1});
    return found;
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const ErrorCode code =
        errno == ENOENT || errno == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Fail(code, path + ": " + std::generic_category().message(errno));
  }
  if (!S_ISDIR(status.st_mode)) {
    found.logs.push_back({path, RankFromFileName(path),
                          S_ISREG(status.st_mode) ? std::int64_t{status.st_size} : -1});
    return found;
  }
  RETURN_IF_ERROR(Search(found).Run(path));
  std::sort(found.logs.begin(), found.logs.end(), [](const FoundLog& a, const FoundLog& b) {
    return std::tuple(!a.rank, a.rank, std::string_view(a.path)) <
           std::tuple(!b.rank, b.rank, std::string_view(b.path));
  });
  return found;
}

std::optional<int> RankFromFileName(std::string_view path) {
  const std::string_view digits = ParseTraceName(path).rank_digits;
  int rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (digits.empty() || error != std::errc() || !IsRank(rank)) return std::nullopt;
  return rank;
}

bool IsTraceFileName(std::string_view path) { return ParseTraceName(path).is_trace; }

bool IsTraceHeaderLine(std::string_view line) {
  if (ConsumePrefix(line, "[rank")) {
    if (ConsumeDigits(line).empty() || !ConsumePrefix(line, "]:")) return false;
  }
  constexpr std::size_t kLevelAndTimeCharacters = 1 + 20;
  if (line.size() < kLevelAndTimeCharacters ||
      std::string_view("VIWEC").find(line[0]) == line.npos ||
      !HasPrefixTimeShape(line.substr(1, 20))) {
    return false;
  }
  line.remove_prefix(kLevelAndTimeCharacters);
  if (!ConsumePrefix(line, " ")) return false;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (ConsumeDigits(line).empty() || !ConsumePrefix(line, " ") || line.empty()) return false;
  // A path of at least one character, a colon, digits, and the envelope; the path may hold the
  // like.
  for (std::size_t end = line.find("] {"); end != line.npos; end = line.find("] {", end + 1)) {
    std::size_t digits = end;
    while (digits > 0 && IsDigit(line[digits - 1])) --digits;
    if (digits < end && digits >= 2 && line[digits - 1] == ':') return true;
  }
  return false;
}

Result<std::string> LatestLog(const std::string& directory) {
  ASSIGN_OR_RETURN(const FoundLogs found, FindLogs(directory));
  const FoundLog* latest = nullptr;
  std::int64_t latest_ns = 0;
  for (const FoundLog& log : found.logs) {
    const std::int64_t time_ns = ModificationTimeNs(log.path);
    if (latest == nullptr || time_ns > latest_ns) {
      latest = &log;
      latest_ns = time_ns;
    }
  }
  if (latest == nullptr) {
    return Fail(ErrorCode::kNotFound, directory + ": holds no structured trace");
  }
  return latest->path;
}

}  // namespace tlparse

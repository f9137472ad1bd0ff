#include "store/unfinished_database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/durable_rename.h"
#include "base/file_lock.h"

namespace tlparse {

namespace {

bool IsStillNamed(int descriptor, const std::string& name) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(name.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino && S_ISREG(opened.st_mode);
}

// ".123.tmp" or ".123.db.45.tmp"
bool IsUnfinishedSuffix(std::string_view suffix) {
  const auto skip_number = [&] {
    if (!suffix.starts_with('.')) return false;
    suffix.remove_prefix(1);
    const std::size_t digits = std::min(suffix.find_first_not_of("0123456789"), suffix.size());
    suffix.remove_prefix(digits);
    return digits > 0;
  };
  if (!skip_number()) return false;
  if (suffix.starts_with(".db.")) {
    suffix.remove_prefix(3);
    if (!skip_number()) return false;
  }
  return suffix == ".tmp";
}

void RemoveIfAbandoned(const std::string& name) {
  const FileDescriptor file(
      ::open(name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK));
  if (!file.is_open()) return;
  // All bytes: an earlier tlparse has only SQLite's locks.
  if (IsStillNamed(file.get(), name) && LockBytes(file.get(), 0) && IsStillNamed(file.get(), name))
    ::unlink(name.c_str());
}

}  // namespace

void RemoveAbandonedDatabases(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string stem = whole.filename().string();
  const std::filesystem::path directory =
      whole.has_parent_path() ? whole.parent_path() : std::filesystem::path(".");
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(stem) && IsUnfinishedSuffix(std::string_view(name).substr(stem.size())))
      names.push_back(entry->path().string());
  }
  for (const std::string& name : names) RemoveIfAbandoned(name);
}

Result<std::unique_ptr<UnfinishedDatabase>> UnfinishedDatabase::Make(const std::string& path) {
  RemoveAbandonedDatabases(path);
  // Of a process with the same id in another container the name is taken: then another one.
  constexpr std::int64_t kMostIds = 10'000'000, kMostNames = 10;
  std::int64_t number = getpid();
  while (true) {
    const std::string name = fmt::format("{}.{}.tmp", path, number);
    std::optional<HoldSignals> hold(std::in_place);
    FileDescriptor file(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file.is_open() && errno == EEXIST && number < kMostIds * kMostNames) {
      number += kMostIds;
      continue;
    }
    if (!file.is_open()) {
      const int code = errno;
      return Fail(ErrorCode::kIo,
                  fmt::format("cannot write the database '{}': {}", name, std::strerror(code)));
    }
    std::unique_ptr<UnfinishedDatabase> made(new UnfinishedDatabase(name, std::move(file)));
    hold.reset();
    (void)LockBytes(made->descriptor_.get(), 1);
    // Another process may have taken it for abandoned before it was locked.
    if (IsStillNamed(made->descriptor_.get(), name)) return made;
  }
}

UnfinishedDatabase::~UnfinishedDatabase() {
  if (IsStillNamed(descriptor_.get(), name_)) ::unlink(name_.c_str());
}

Result<void> UnfinishedDatabase::Rename(const std::string& path) {
  return RenameDurably(name_, path);
}

}  // namespace tlparse

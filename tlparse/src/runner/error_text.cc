#include "runner/error_text.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace tlparse {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;  // the last of the text
constexpr const char* kOwn = "/proc/self/fd/2";

std::vector<AbortText> AbortsIn(const std::string& path, std::int64_t from) {
  AbortTexts aborts;
  struct stat file {};
  if (stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return {};
  std::ifstream text(path, std::ios::binary);
  text.seekg(std::max(from, file.st_size - kMostBytes));
  std::string line;
  for (std::int64_t number = 1; std::getline(text, line); ++number) aborts.Add(line, number);
  aborts.End();
  return std::move(aborts.texts);
}

bool IsOwn(const std::string& path) {
  struct stat own {
  }, other{};
  return stat(kOwn, &own) == 0 && stat(path.c_str(), &other) == 0 && own.st_dev == other.st_dev &&
         own.st_ino == other.st_ino;
}

}  // namespace

ErrorText::ErrorText() {
  struct stat file {};
  if (fstat(STDERR_FILENO, &file) != 0 || !S_ISREG(file.st_mode)) return;
  const bool appends = (fcntl(STDERR_FILENO, F_GETFL) & O_APPEND) != 0;
  from_ = appends ? file.st_size : lseek(STDERR_FILENO, 0, SEEK_CUR);
}

std::vector<AbortText> ErrorText::Aborts(const std::vector<WatchedProcess>& processes) const {
  std::vector<AbortText> all;
  if (from_ >= 0) all = AbortsIn(kOwn, from_);
  struct Writers {
    std::int64_t from = INT64_MAX;
    std::set<std::optional<std::int64_t>> ranks;
  };
  std::map<std::string, Writers> files;
  for (const WatchedProcess& one : processes) {
    const bool is_fault = one.signal == SIGABRT || one.signal == SIGSEGV || one.signal == SIGBUS ||
                          one.signal == SIGILL || one.signal == SIGFPE;
    if (one.errors.empty() || !is_fault || IsOwn(one.errors)) continue;
    Writers& writers = files[one.errors];
    writers.from = std::min(writers.from, one.errors_from);
    writers.ranks.insert(one.rank);
  }
  for (const auto& [path, writers] : files) {
    for (AbortText& text : AbortsIn(path, writers.from)) {
      if (!text.rank && writers.ranks.size() == 1) text.rank = *writers.ranks.begin();
      all.push_back(std::move(text));
    }
  }
  return all;
}

}  // namespace tlparse

#include "runner/error_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace tlparse {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;  // the last of the text

}  // namespace

ErrorText::ErrorText() {
  struct stat file {};
  if (fstat(STDERR_FILENO, &file) != 0 || !S_ISREG(file.st_mode)) return;
  const bool appends = (fcntl(STDERR_FILENO, F_GETFL) & O_APPEND) != 0;
  from_ = appends ? file.st_size : lseek(STDERR_FILENO, 0, SEEK_CUR);
}

std::vector<AbortText> ErrorText::Aborts() const {
  AbortTexts aborts;
  struct stat file {};
  if (from_ < 0 || fstat(STDERR_FILENO, &file) != 0) return {};
  std::ifstream text("/proc/self/fd/2", std::ios::binary);
  text.seekg(std::max(from_, file.st_size - kMostBytes));
  std::string line;
  for (std::int64_t number = 1; std::getline(text, line); ++number) aborts.Add(line, number);
  return std::move(aborts.texts);
}

}  // namespace tlparse

#include "report/output_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace tlparse {
namespace {

namespace fs = std::filesystem;

bool IsOneComponent(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

tl::unexpected<Error> SystemError(std::string_view doing, std::string_view path, int error) {
  return Fail(ErrorCode::kIo, fmt::format("cannot {} '{}': {}", doing, path, std::strerror(error)));
}

tl::unexpected<Error> BadName(std::string_view name) {
  return Fail(ErrorCode::kInternal, fmt::format("'{}' is no name for a file of a report", name));
}

bool HasMarker(const std::string& path) {
  struct stat status {};
  const std::string marker = path + "/" + std::string(kMarkerFileName);
  return lstat(marker.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

Result<Directory> OpenDirectory(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return SystemError("open the directory", path, errno);
  return Directory(FileDescriptor(descriptor), path);
}

// Empties a directory that has our marker.
Result<void> EmptyDirectory(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    // The marker goes last, so that an interrupted deletion can be repeated.
    if (entry->path().filename() == kMarkerFileName) continue;
    fs::remove_all(entry->path(), error);
    if (error) break;
  }
  if (!error) fs::remove(path + "/" + std::string(kMarkerFileName), error);
  if (error) {
    return Fail(ErrorCode::kIo, fmt::format("cannot empty '{}': {}", path, error.message()));
  }
  return {};
}

// Whether what is at `path` may be emptied.
Result<void> CheckExisting(const std::string& path, bool overwrite) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return Fail(
        ErrorCode::kRefused,
        fmt::format("'{}' exists and is not a directory; choose another one with -o", path));
  }
  if (!overwrite) {
    return Fail(ErrorCode::kRefused,
                fmt::format("'{}' already exists; add --overwrite to replace it, or choose another "
                            "directory with -o",
                            path));
  }
  const bool is_empty = fs::is_empty(path, error);
  if (error) {
    return Fail(ErrorCode::kIo, fmt::format("cannot read '{}': {}", path, error.message()));
  }
  if (is_empty) return {};
  if (!HasMarker(path)) {
    return Fail(ErrorCode::kRefused,
                fmt::format("'{}' was not made by tlparse (it has no {}), so it is not deleted; "
                            "remove it yourself or choose another directory with -o",
                            path, kMarkerFileName));
  }
  return {};
}

}  // namespace

Result<Directory> Directory::Child(std::string_view name) const {
  if (!IsOneComponent(name)) return BadName(name);
  const std::string component(name);
  std::string path = path_ + "/" + component;
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int descriptor = openat(descriptor_.get(), component.c_str(), kFlags);
  if (descriptor < 0 && errno == ENOENT) {
    if (mkdirat(descriptor_.get(), component.c_str(), 0777) != 0 && errno != EEXIST) {
      return SystemError("make the directory", path, errno);
    }
    descriptor = openat(descriptor_.get(), component.c_str(), kFlags);
  }
  if (descriptor < 0) return SystemError("open the directory", path, errno);
  return Directory(FileDescriptor(descriptor), std::move(path));
}

Result<FileDescriptor> Directory::CreateFile(std::string_view name) const {
  if (!IsOneComponent(name)) return BadName(name);
  const std::string component(name);
  const int descriptor = openat(descriptor_.get(), component.c_str(),
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    const std::string path = path_ + "/" + component;
    if (errno == EEXIST) {
      return Fail(ErrorCode::kInternal, fmt::format("'{}' would be written twice", path));
    }
    return SystemError("make the file", path, errno);
  }
  return FileDescriptor(descriptor);
}

bool Directory::Link(const Directory& root, const std::string& from,
                     const std::string& name) const {
  return IsOneComponent(name) &&
         linkat(root.descriptor_.get(), from.c_str(), descriptor_.get(), name.c_str(), 0) == 0;
}

Result<void> CheckOutputDirectory(const std::string& path, bool overwrite) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return {};
  return CheckExisting(path, overwrite);
}

Result<Directory> CreateOutputDirectory(const std::string& path, bool overwrite) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error))) {
    RETURN_IF_ERROR(CheckExisting(path, overwrite));
    RETURN_IF_ERROR(EmptyDirectory(path));
  } else {
    fs::create_directories(path, error);
    if (error) {
      return Fail(ErrorCode::kIo,
                  fmt::format("cannot make the directory '{}': {}", path, error.message()));
    }
  }
  ASSIGN_OR_RETURN(Directory directory, OpenDirectory(path));
  FileWriter marker;
  RETURN_IF_ERROR(marker.Open(directory, std::string(kMarkerFileName)));
  marker.Append("This directory was made by tlparse; tlparse --overwrite deletes all of it.\n");
  RETURN_IF_ERROR(marker.Close());
  return directory;
}

Result<Directory> OpenOutputDirectory(const std::string& path) {
  if (!HasMarker(path)) {
    return Fail(ErrorCode::kRefused,
                fmt::format("'{}' is not a directory made by tlparse (it has no "
                            "{})",
                            path, kMarkerFileName));
  }
  return OpenDirectory(path);
}

FileWriter::FileWriter() : buffer_(std::make_unique_for_overwrite<char[]>(kCapacity)) {}

Result<void> FileWriter::Open(const Directory& directory, const std::string& name) {
  size_ = 0;
  flushed_ = false;
  error_ = 0;
  path_ = directory.path() + "/" + name;
  ASSIGN_OR_RETURN(descriptor_, directory.CreateFile(name));
  return {};
}

void FileWriter::Restart() {
  size_ = 0;
  if (!flushed_) return;
  flushed_ = false;
  if (ftruncate(descriptor_.get(), 0) != 0 || lseek(descriptor_.get(), 0, SEEK_SET) != 0) {
    error_ = errno;
  }
}

Result<void> FileWriter::Close() {
  Flush();
  if (close(descriptor_.Release()) != 0 && error_ == 0) error_ = errno;
  if (error_ != 0) return SystemError("write", path_, error_);
  return {};
}

void FileWriter::AppendSlowly(std::string_view bytes) {
  Flush();
  if (bytes.size() < kCapacity) return Append(bytes);
  Write(bytes);
}

void FileWriter::Flush() {
  if (size_ > 0) Write(std::string_view(buffer_.get(), size_));
  size_ = 0;
}

void FileWriter::Write(std::string_view bytes) {
  flushed_ = true;
  while (!bytes.empty() && error_ == 0) {
    const ssize_t count = write(descriptor_.get(), bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

}  // namespace tlparse

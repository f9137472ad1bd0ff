// The file in which a new database is made: it gets its name when it is complete.
#pragma once

#include <memory>
#include <string>

#include "base/file_descriptor.h"
#include "base/remove_on_signal.h"
#include "base/result.h"

namespace tlparse {

// `PATH.<pid>.tmp`, locked while the process lives. A process that is killed leaves it behind; the
// next one that makes or continues the database at PATH removes it.
class UnfinishedDatabase {
 public:
  // An empty file beside `path`. kIo with the system's message.
  static Result<std::unique_ptr<UnfinishedDatabase>> Make(const std::string& path);
  ~UnfinishedDatabase();                                   // removes the file unless it was renamed
  UnfinishedDatabase(const UnfinishedDatabase&) = delete;  // owns a file
  UnfinishedDatabase& operator=(const UnfinishedDatabase&) = delete;

  const std::string& name() const { return name_; }
  // Gives it the name `path`. All connections must be closed.
  Result<void> Rename(const std::string& path);

 private:
  UnfinishedDatabase(std::string name, FileDescriptor descriptor)
      : name_(std::move(name)), descriptor_(std::move(descriptor)), remove_(name_) {}

  std::string name_;
  FileDescriptor descriptor_;  // holds the lock
  RemoveOnSignal remove_;
};

// Removes the files `PATH.<pid>.tmp` and `PATH.<pid>.db.<pid>.tmp` whose process has ended: those
// that no process has locked. Files that cannot be locked, as on some network file systems, stay.
void RemoveAbandonedDatabases(const std::string& path);

}  // namespace tlparse

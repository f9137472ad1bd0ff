// A place for a pulled run that is removed after use.
#pragma once

#include <memory>
#include <string>

#include "base/remove_on_signal.h"
#include "base/result.h"

namespace tlparse {

// The path of a database in a directory of its own, which only this user can read. Both are removed
// by the destructor, and by a signal that ends the process.
class TemporaryDatabase {
 public:
  static Result<std::unique_ptr<TemporaryDatabase>> Make();
  explicit TemporaryDatabase(std::string folder);  // use Make
  ~TemporaryDatabase();
  TemporaryDatabase(const TemporaryDatabase&) = delete;
  TemporaryDatabase& operator=(const TemporaryDatabase&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
  RemoveOnSignal remove_folder_, remove_;
};

}  // namespace tlparse

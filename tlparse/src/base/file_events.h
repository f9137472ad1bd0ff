// Waits until a file in one of several directories may have changed.
#pragma once

#include <chrono>
#include <set>
#include <string>

#include "base/file_descriptor.h"

namespace tlparse {

// Uses inotify where it works; otherwise each wait takes its full time. Changes that other machines
// make to a network file system are not seen: look at the files after every wait.
class FileEvents {
 public:
  FileEvents();

  // Watches the files of the directory from now on. Adding it again does nothing.
  void Add(const std::string& directory);
  // Returns when something has changed, a signal was received, or the time is over: at once if it is
  // negative.
  void Wait(std::chrono::milliseconds longest);

 private:
  FileDescriptor descriptor_;
  std::set<std::string> directories_;
};

}  // namespace tlparse

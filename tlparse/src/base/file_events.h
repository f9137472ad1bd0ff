// Waits until a file in one of several directories may have changed.
#pragma once

#include <chrono>
#include <set>
#include <string>

namespace tlparse {

// Uses inotify where it works; otherwise each wait takes its full time. Changes that other machines
// make to a network file system are not seen: look at the files after every wait.
class FileEvents {
 public:
  FileEvents();
  ~FileEvents();
  FileEvents(const FileEvents&) = delete;  // owns a descriptor
  FileEvents& operator=(const FileEvents&) = delete;

  // Watches the files of the directory from now on. Adding it again does nothing.
  void Add(const std::string& directory);
  // Returns when something has changed, a signal was received, or the time is over.
  void Wait(std::chrono::milliseconds longest);

 private:
  int descriptor_;
  std::set<std::string> directories_;
};

}  // namespace tlparse

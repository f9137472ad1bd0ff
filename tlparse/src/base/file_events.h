// Waits until something may have changed in directories.
#pragma once

#include <chrono>
#include <set>
#include <string>

namespace tlparse {

// By inotify where that works; otherwise each wait takes its full time. Changes that other machines
// make to a network file system are not seen: look at the files after each wait in any case.
class FileEvents {
 public:
  FileEvents();
  ~FileEvents();
  FileEvents(const FileEvents&) = delete;  // owns a descriptor
  FileEvents& operator=(const FileEvents&) = delete;

  // From now on changes of the directory's files count. Adding it again does nothing.
  void Add(const std::string& directory);
  // Returns when something has changed, a signal has come, or the time is over.
  void Wait(std::chrono::milliseconds longest);

 private:
  int descriptor_;
  std::set<std::string> directories_;
};

}  // namespace tlparse

// A file that does not outlive its process where somebody ends it: Ctrl+C, SIGTERM, SIGHUP.
#pragma once

#include <cstddef>
#include <string>

namespace tlparse {

// As long as it lives, one of these signals deletes the file `path`, if there is one, before the
// process ends by it. A signal that is ignored (nohup) stays so. For a few files at once; what is
// one too many is left behind.
class RemoveOnSignal {
 public:
  explicit RemoveOnSignal(std::string path);
  ~RemoveOnSignal();
  RemoveOnSignal(const RemoveOnSignal&) = delete;
  RemoveOnSignal& operator=(const RemoveOnSignal&) = delete;

 private:
  std::string path_;
  std::size_t slot_;
};

}  // namespace tlparse

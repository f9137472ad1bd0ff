#include "base/file_events.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace tlparse {

FileEvents::FileEvents() : descriptor_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

void FileEvents::Add(const std::string& directory) {
  if (!descriptor_.is_open() || !directories_.insert(directory).second) return;
  inotify_add_watch(descriptor_.get(), directory.c_str(),
                    IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE);
}

void FileEvents::Wait(std::chrono::milliseconds longest) {
  pollfd waited{descriptor_.get(), POLLIN, 0};
  if (poll(&waited, descriptor_.is_open() ? 1 : 0,
           std::max(0, static_cast<int>(longest.count()))) <= 0)
    return;
  std::array<char, 1 << 16> events;
  while (read(descriptor_.get(), events.data(), events.size()) > 0) {
  }
}

}  // namespace tlparse

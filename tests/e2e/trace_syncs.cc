// Preloaded into tlparse by test_durable.py: appends to the file $TRACE_SYNCS a line for each call
// that decides what a power cut leaves: "fsync PATH", "rename FROM TO", "unlink PATH".
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

void Note(const std::string& line) {
  const char* path = std::getenv("TRACE_SYNCS");
  if (path == nullptr) return;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  const std::string text = line + "\n";
  if (write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  close(file);
}

std::string PathOf(int file) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = readlink(link.c_str(), path, sizeof path);
  return std::string(path, length < 0 ? 0 : static_cast<std::size_t>(length));
}

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int fsync(int file) {
  Note("fsync " + PathOf(file));
  return Real<int(int)>("fsync")(file);
}
int fdatasync(int file) {
  Note("fsync " + PathOf(file));
  return Real<int(int)>("fdatasync")(file);
}
int rename(const char* from, const char* to) noexcept {
  Note(std::string("rename ") + from + " " + to);
  return Real<int(const char*, const char*)>("rename")(from, to);
}
int unlink(const char* path) noexcept {
  Note(std::string("unlink ") + path);
  return Real<int(const char*)>("unlink")(path);
}

}  // extern "C"

#include "cuda/cupti.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include <atomic>
#include <string_view>
#include <vector>

#include "core/per_process.h"

namespace libtrace::cupti {
namespace {

struct Opened {
  Library library;
  Status status;
};

template <class Function>
bool Find(void* handle, const char* name, Function& function, Status& status) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (function == nullptr) status = Status::Error(std::string("CUPTI has no ") + name);
  return function != nullptr;
}

bool FindAll(void* handle, Library& l, Status& status) {
  return Find(handle, "cuptiGetVersion", l.get_version, status) &&
         Find(handle, "cuptiActivityRegisterCallbacks", l.register_callbacks, status) &&
         Find(handle, "cuptiActivityEnable", l.enable, status) &&
         Find(handle, "cuptiActivityDisable", l.disable, status) &&
         Find(handle, "cuptiActivityFlushAll", l.flush_all, status) &&
         Find(handle, "cuptiActivityGetNextRecord", l.get_next_record, status) &&
         Find(handle, "cuptiActivityGetNumDroppedRecords", l.get_dropped, status) &&
         Find(handle, "cuptiActivityPushExternalCorrelationId", l.push_id, status) &&
         Find(handle, "cuptiActivityPopExternalCorrelationId", l.pop_id, status) &&
         Find(handle, "cuptiGetResultString", l.get_result_string, status);
}

// Files of the CUPTIs in this process, under whatever name and by whomever they were loaded.
std::vector<std::string> LoadedFiles() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* out) {
        const std::string_view path = object->dlpi_name == nullptr ? "" : object->dlpi_name;
        const std::string_view file = path.substr(path.rfind('/') + 1);
        if (file.substr(0, 11) == "libcupti.so")
          static_cast<std::vector<std::string>*>(out)->emplace_back(path);
        return 0;
      },
      &files);
  return files;
}

void* OpenAny(const std::vector<std::string>& names, int extra_flags, std::string& path) {
  for (const std::string& name : names) {
    path = name;
    if (void* const handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL | extra_flags))
      return handle;
  }
  return nullptr;
}

// Without a driver CUPTI 13.2 crashes in every call, 13.3 and later answer each with "unknown error".
// A stand-in for CUPTI brings its own.
bool HasDriver(void* cupti) {
  return dlsym(cupti, "cuInit") != nullptr ||
         dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

Opened OpenFirst() {
  Opened opened;
  std::string& path = opened.library.path;
  void* handle = nullptr;
  if (const char* chosen = secure_getenv("LIBTRACE_CUPTI")) {
    handle = OpenAny({chosen}, 0, path);
  } else {
    handle = OpenAny(LoadedFiles(), RTLD_NOLOAD, path);
    if (handle == nullptr) {
      handle = OpenAny(
          {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11", "libcupti.so",
           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", "/usr/local/cuda/lib64/libcupti.so"},
          0, path);
    }
  }
  if (handle == nullptr) {
    opened.status = Status::Error("no CUPTI: " + path + " cannot be opened");
  } else if (!HasDriver(handle)) {
    opened.status = Status::Error("no NVIDIA driver: libcuda.so.1 cannot be opened");
  } else if (FindAll(handle, opened.library, opened.status)) {
    opened.library.get_version(&opened.library.version);
    opened.library.get_timestamp = reinterpret_cast<decltype(opened.library.get_timestamp)>(
        dlsym(handle, "cuptiGetTimestamp"));
  }
  return opened;
}

}  // namespace

std::string Library::Text(int result) const {
  const char* text = nullptr;
  if (get_result_string(result, &text) != 0 || text == nullptr) return std::to_string(result);
  return text;
}

Status Open(const Library*& library) {
  static constinit std::atomic<Opened*> place{nullptr};
  const Opened& opened = detail::MadeOnce(place, [] { return new Opened(OpenFirst()); });
  library = opened.status.ok() ? &opened.library : nullptr;
  return opened.status;
}

}  // namespace libtrace::cupti

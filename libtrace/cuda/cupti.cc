#include "cuda/cupti.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
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

// Whether the functions of CUPTI are in `file` itself ("": the program), not in what it needs.
bool HoldsCupti(const std::string& file) {
  void* const handle =
      dlopen(file.empty() ? nullptr : file.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  void* const found = dlsym(handle, "cuptiActivityRegisterCallbacks");
  Dl_info place{};
  link_map* object = nullptr;
  const bool is_here =
      found != nullptr &&
      dladdr1(found, &place, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) != 0 &&
      object != nullptr && file == object->l_name;
  dlclose(handle);
  return is_here;
}

// Files of the CUPTIs in this process, under whatever name and by whomever they were loaded. One
// whose functions are hidden, as of a library that links CUPTI statically, cannot be found so;
// CUPTI's own answer to a second subscriber finds it where it is in use.
std::vector<std::string> LoadedFiles() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* out) {
        static_cast<std::vector<std::string>*>(out)->emplace_back(
            object->dlpi_name == nullptr ? "" : object->dlpi_name);
        return 0;
      },
      &files);
  files.erase(std::remove_if(files.begin(), files.end(),
                             [](const std::string& file) { return !HoldsCupti(file); }),
              files.end());
  return files;
}

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat of_a {
  }, of_b{};
  if (stat(a.c_str(), &of_a) != 0 || stat(b.c_str(), &of_b) != 0) return a == b;
  return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

std::string Joined(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files)
    text += (text.empty() ? "" : ", ") + (file.empty() ? std::string("the program") : file);
  return text;
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
void* OpenDriver(void* cupti) {
  if (dlsym(cupti, "cuInit") != nullptr) return cupti;
  return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
}

// Not ok: there is none, or the process would have two.
Status OpenTheOne(void*& handle, std::string& path) {
  const std::vector<std::string> loaded = LoadedFiles();
  const char* const chosen = secure_getenv("LIBTRACE_CUPTI");
  if (loaded.empty()) {
    if (chosen != nullptr) {
      handle = OpenAny({chosen}, 0, path);
    } else {
      handle = OpenAny(
          {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11", "libcupti.so",
           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", "/usr/local/cuda/lib64/libcupti.so"},
          0, path);
    }
    if (handle == nullptr) return Status::Error("no CUPTI: " + path + " cannot be opened");
    return {};
  }
  path = loaded.front();
  if (chosen != nullptr) {
    const auto same = std::find_if(loaded.begin(), loaded.end(), [&](const std::string& file) {
      return IsSameFile(file, chosen);
    });
    if (same == loaded.end()) {
      return Status::Error("LIBTRACE_CUPTI is " + std::string(chosen) +
                           ", but the process has loaded " + Joined(loaded) +
                           "; two CUPTIs in a process disturb each other");
    }
    path = *same;
  } else if (loaded.size() > 1) {
    return Status::Error("the process has several CUPTIs: " + Joined(loaded) +
                         "; LIBTRACE_CUPTI=<file> chooses one of them");
  }
  handle = dlopen(path.empty() ? nullptr : path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) return Status::Error("no CUPTI: " + path + " was unloaded");
  if (path.empty()) path = "the program";
  return {};
}

template <class Function>
void FindOptional(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
}

Opened OpenFirst() {
  Opened opened;
  Library& library = opened.library;
  void* handle = nullptr;
  opened.status = OpenTheOne(handle, library.path);
  if (!opened.status) return opened;
  void* const driver = OpenDriver(handle);
  if (driver == nullptr) {
    opened.status = Status::Error("no NVIDIA driver: libcuda.so.1 cannot be opened");
  } else if (FindAll(handle, library, opened.status)) {
    library.get_version(&library.version);
    FindOptional(handle, "cuptiGetTimestamp", library.get_timestamp);
    FindOptional(handle, "cuptiSubscribe", library.subscribe);
    FindOptional(handle, "cuptiUnsubscribe", library.unsubscribe);
    FindOptional(handle, "cuptiActivityEnableRuntimeApi", library.enable_runtime_call);
    FindOptional(handle, "cuptiActivityEnableDriverApi", library.enable_driver_call);
    FindOptional(handle, "cuptiActivityGetEnabledKinds", library.get_enabled_kinds);
    FindOptional(driver, "cuDriverGetVersion", library.call_driver);
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

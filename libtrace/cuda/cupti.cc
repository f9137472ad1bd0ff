#include "cuda/cupti.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

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

Opened OpenFirst() {
  std::vector<std::string> names = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11",
                                    "libcupti.so",
                                    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
  if (const char* chosen = std::getenv("LIBTRACE_CUPTI")) names = {chosen};
  Opened opened;
  for (const std::string& name : names) {
    void* const handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) continue;
    opened.library.path = name;
    if (FindAll(handle, opened.library, opened.status))
      opened.library.get_version(&opened.library.version);
    return opened;
  }
  opened.status = Status::Error("no CUPTI: " + names.back() + " cannot be opened");
  return opened;
}

}  // namespace

std::string Library::Text(int result) const {
  const char* text = nullptr;
  if (get_result_string(result, &text) != 0 || text == nullptr) return std::to_string(result);
  return text;
}

Status Open(const Library*& library) {
  static const Opened opened = OpenFirst();
  library = opened.status.ok() ? &opened.library : nullptr;
  return opened.status;
}

}  // namespace libtrace::cupti

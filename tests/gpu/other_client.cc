#include "tests/gpu/other_client.h"

#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "cuda/cupti.h"
#include "libtrace/cuda/cuda_activity.h"

namespace gpu_check {
namespace {

using namespace libtrace::cupti;

constexpr int32_t kKinds[] = {kRuntime, kDriver, kMemcpy, kExternalCorrelation, kConcurrentKernel};
constexpr size_t kBufferSize = size_t{1} << 20;

std::mutex g_mutex;
std::set<uint8_t*> g_buffers;
size_t g_kernel_count = 0, g_foreign_buffer_count = 0;
const Library* g_library = nullptr;

void Requested(uint8_t** buffer, size_t* size_bytes, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferSize));
  *size_bytes = *buffer == nullptr ? 0 : kBufferSize;
  *max_records = 0;
  const std::lock_guard lock(g_mutex);
  g_buffers.insert(*buffer);
}

void Completed(void*, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  const std::lock_guard lock(g_mutex);
  if (g_buffers.erase(buffer) == 0) {
    ++g_foreign_buffer_count;
    return;
  }
  Record* record = nullptr;
  while (valid_bytes > 0 && g_library->get_next_record(buffer, valid_bytes, &record) == 0)
    g_kernel_count += record->kind == kConcurrentKernel;
  std::free(buffer);
}

class OtherClient {
 public:
  explicit OtherClient(const Library& library) : library_(library) {}

  // False: CUPTI refused, or has no subscriptions.
  bool Subscribe() {
    return library_.subscribe != nullptr && library_.unsubscribe != nullptr &&
           library_.subscribe(
               &subscriber_, [](void*, int, uint32_t, const void*) {}, nullptr) == 0;
  }
  void Unsubscribe() { library_.unsubscribe(subscriber_); }
  bool Start() {
    {
      const std::lock_guard lock(g_mutex);
      g_library = &library_;
      g_kernel_count = g_foreign_buffer_count = 0;
    }
    bool is_right = library_.register_callbacks(Requested, Completed) == 0;
    for (const int32_t kind : kKinds) is_right &= library_.enable(kind) == 0;
    return is_right;
  }
  void Stop() {
    library_.flush_all(kFlushForced);
    for (const int32_t kind : kKinds) library_.disable(kind);
  }
  // Since the start.
  size_t kernel_count() const {
    const std::lock_guard lock(g_mutex);
    return g_kernel_count;
  }

 private:
  const Library& library_;
  void* subscriber_ = nullptr;
};

std::string CountOf(size_t seen, size_t expected) {
  return std::to_string(seen) + " of " + std::to_string(expected);
}

// Another profiler came first: ours is refused, and takes nothing from it.
void CheckSecond(Page& page, OtherClient& other, const std::function<void()>& run_kernel) {
  if (!other.Subscribe()) {
    page.Check(true, "not tried: CUPTI lets nobody subscribe");
    return;
  }
  page.Check(other.Start(), "another client starts");
  run_kernel();
  libtrace::CudaActivity activity;
  page.Check(!activity.status().ok(), "beside a client that came first, CudaActivity is refused",
             activity.status().message());
  run_kernel();
  activity.Emit();
  other.Stop();
  page.Check(other.kernel_count() == 2, "and that client has its kernels",
             CountOf(other.kernel_count(), 2));
  other.Unsubscribe();
}

// Another profiler comes later, as torch.profiler in a program that libtrace watches.
void CheckFirst(Page& page, OtherClient& other, const std::function<void()>& run_kernel) {
  libtrace::CudaActivity activity;
  page.Check(activity.status().ok(), "after that client CudaActivity watches",
             activity.status().message());
  run_kernel();
  page.Check(other.Start(), "another client starts beside it");
  run_kernel();  // CUPTI may write it into a buffer of ours that it still has, and give that to the other
  activity.Emit();
  const auto clients = activity.clients();
  page.Check(clients.end.has_value(), "a client that comes later is noticed",
             clients.end ? clients.end->reason : "");
  run_kernel();
  other.Stop();
  page.Check(other.kernel_count() >= 1, "and it has the kernel after Emit",
             std::to_string(other.kernel_count()));
}

}  // namespace

void CheckBesideAnotherClient(Page& page, const std::function<void()>& run_kernel) {
  const Library* library = nullptr;
  if (!Open(library).ok()) return page.Check(false, "CUPTI is there");
  OtherClient other(*library);
  CheckSecond(page, other, run_kernel);
  CheckFirst(page, other, run_kernel);
  // What ours left enabled is disabled, for what follows.
  for (const int32_t kind : {kPeerMemcpy, kMemset}) library->disable(kind);
  libtrace::CudaActivity again;
  run_kernel();
  again.Emit();
  page.Check(again.Records().size() == 1 && !again.clients().end,
             "alone again it has all of its own", CountOf(again.Records().size(), 1));
}

}  // namespace gpu_check

#include "cuda/session.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <unordered_map>

#include "core/per_process.h"
#include "cuda/quiet_calls.h"
#include "libtrace/traceparent.h"

namespace libtrace::cupti {
namespace {

struct NamedKind {
  int32_t kind;
  const char* name;
};
// CUPTI makes external-correlation records only with a record of a runtime or driver call.
constexpr NamedKind kSessionKinds[] = {
    {kDriver, "CUPTI_ACTIVITY_KIND_DRIVER"},
    {kRuntime, "CUPTI_ACTIVITY_KIND_RUNTIME"},
    {kMemcpy, "CUPTI_ACTIVITY_KIND_MEMCPY"},
    {kPeerMemcpy, "CUPTI_ACTIVITY_KIND_MEMCPY2"},
    {kMemset, "CUPTI_ACTIVITY_KIND_MEMSET"},
    {kExternalCorrelation, "CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION"},
    {kConcurrentKernel, "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"}};
constexpr size_t kBufferSize = size_t{1} << 20;

// CUPTI's callbacks are plain functions: whom a buffer belongs to is found here.
struct Sessions {
  std::mutex mutex;  // never held while CUPTI is called
  std::shared_ptr<Session> current;
  struct Buffer {
    std::weak_ptr<Session> owner;
    uint64_t number = 0;
  };
  // Every buffer that CUPTI has of us, a stopped session's too.
  std::unordered_map<const uint8_t*, Buffer> buffers;
  uint64_t buffer_count = 0;  // made so far: the number of the last one
  uint16_t started_count = 0;
};
// Never destroyed: CUPTI may call while the process ends.
constinit std::atomic<detail::PerProcess<Sessions>*> g_sessions{nullptr};
Sessions& TheSessions() { return detail::MadeOnce(g_sessions).get(); }

std::shared_ptr<Session> CurrentSession() {
  Sessions& sessions = TheSessions();
  const std::lock_guard lock(sessions.mutex);
  return sessions.current;
}

// Nobody's callback: the subscription is asked for, never used.
void IgnoreCallback(void*, int, uint32_t, const void*) {}

// Every client of CUPTI subscribes before it starts (cupti_callbacks.h, cuptiSubscribe), so that a
// second one is refused. The subscription is given back at once: Kineto asks for it once in the life
// of the process, and were it refused then, torch.profiler would see no GPU until the process ends
// (https://github.com/pytorch/pytorch/pull/191944).
Status AskForOtherClients(const Library& library) {
  if (library.subscribe != nullptr && library.unsubscribe != nullptr) {
    void* subscriber = nullptr;
    const int result = library.subscribe(&subscriber, IgnoreCallback, nullptr);
    if (result == kMultipleSubscribers) {
      return Status::Error(
          "CUPTI has another client, and serves one: a profiler of this process (torch.profiler "
          "stays subscribed after its first profile of CUDA, unless TEARDOWN_CUPTI=1), or a tool "
          "of NVIDIA's that started it: cuptiSubscribe: " +
          library.Text(result));
    }
    if (result != 0)
      return Status::Error("CUPTI cannot be used: cuptiSubscribe: " + library.Text(result));
    library.unsubscribe(subscriber);
  }
  uint32_t count = 0;
  if (library.get_enabled_kinds != nullptr &&
      library.get_enabled_kinds(nullptr, nullptr, nullptr, &count) == 0 && count > 0) {
    return Status::Error("CUPTI has another client, and serves one: " + std::to_string(count) +
                         " kinds of activities are enabled already");
  }
  return {};
}

}  // namespace

struct Callbacks {
  // Without a buffer CUPTI drops the records and counts them.
  static void OnRequested(uint8_t** buffer, size_t* size_bytes, size_t* max_records) {
    *buffer = nullptr;
    *size_bytes = 0;
    *max_records = 0;  // as many as fit
    try {
      Sessions& sessions = TheSessions();
      const std::lock_guard lock(sessions.mutex);
      const std::shared_ptr<Session>& session = sessions.current;
      if (session == nullptr) return;
      if (session->held_buffer_count_ < session->max_buffers_)
        *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferSize));
      if (*buffer == nullptr) {
        ++session->refused_buffer_count_;
        return;
      }
      sessions.buffers[*buffer] = {session, ++sessions.buffer_count};
      ++session->held_buffer_count_;
      *size_bytes = kBufferSize;
    } catch (...) {  // no memory
      std::free(*buffer);
      *buffer = nullptr;
    }
  }

  static void OnCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t,
                          size_t valid_bytes) {
    if (buffer == nullptr) return;
    std::shared_ptr<Session> current, owner;
    bool is_ours = false;
    {
      Sessions& sessions = TheSessions();
      const std::lock_guard lock(sessions.mutex);
      current = sessions.current;
      const auto place = sessions.buffers.find(buffer);
      is_ours = place != sessions.buffers.end();
      if (is_ours) {
        owner = place->second.owner.lock();
        sessions.buffers.erase(place);
      }
    }
    // It belongs to a client that was registered before us; only that one can free it.
    if (!is_ours) {
      if (current != nullptr) ++current->foreign_buffer_count_;
      return;
    }
    if (owner != nullptr) --owner->held_buffer_count_;
    if (owner != nullptr && owner == current) owner->Read(context, stream, buffer, valid_bytes);
    std::free(buffer);
  }
};

void Session::Read(void* context, uint32_t stream, uint8_t* buffer, size_t valid_bytes) {
  try {
    Record* record = nullptr;
    while (valid_bytes > 0 && library_->get_next_record(buffer, valid_bytes, &record) == 0)
      store_.Add(*record);
  } catch (...) {  // no memory: the rest of this buffer is lost
    store_.AddLost(1);
  }
  size_t dropped = 0;
  if (library_->get_dropped(context, stream, &dropped) == 0) store_.AddLost(dropped);
}

Status Session::Start(const CudaActivityOptions& options, std::shared_ptr<Session>& session) {
  const Library* library = nullptr;
  if (Status status = Open(library); !status) return status;
  Sessions& sessions = TheSessions();
  std::shared_ptr<Session> started;
  {
    const std::lock_guard lock(sessions.mutex);
    if (sessions.current != nullptr) return Status::Error("another CudaActivity is watching");
    started.reset(new Session(*library, options, ++sessions.started_count));
    sessions.current = started;
  }
  Status status = AskForOtherClients(*library);
  if (status) status = started->Enable();
  if (status) {
    session = std::move(started);
    return status;
  }
  const std::lock_guard lock(sessions.mutex);
  sessions.current.reset();
  return status;
}

Status Session::Enable() {
  // At every start: another client may have registered its own since.
  if (const int result =
          library_->register_callbacks(Callbacks::OnRequested, Callbacks::OnCompleted);
      result != 0) {
    return Status::Error("CUPTI is in use by something else: cuptiActivityRegisterCallbacks: " +
                         library_->Text(result));
  }
  enabled_.reserve(std::size(kSessionKinds));
  for (const NamedKind& named : kSessionKinds) {
    const int result = library_->enable(named.kind);
    if (result == 0) {
      enabled_.push_back(named.kind);
      continue;
    }
    Disable();
    return Status::Error(std::string("CUPTI sees no GPU that it can watch: ") + named.name + ": " +
                         library_->Text(result));
  }
  LeaveOutQuietCalls();
  // The first may be written into a buffer that CUPTI still has of an earlier client.
  has_probe_ = ProbeArrives(0) || ProbeArrives(0);
  size_t of_probe = 0;  // where there is no buffer for it
  library_->get_dropped(nullptr, 0, &of_probe);
  return {};
}

// An error is no harm: those calls leave records that nothing waits for.
void Session::LeaveOutQuietCalls() {
  for (const uint32_t call : kQuietRuntimeCalls) {
    if (library_->enable_runtime_call != nullptr) library_->enable_runtime_call(call, 0);
  }
  for (const uint32_t call : kQuietDriverCalls) {
    if (library_->enable_driver_call != nullptr) library_->enable_driver_call(call, 0);
  }
}

void Session::Disable() {
  for (const int32_t kind : enabled_) library_->disable(kind);
  enabled_.clear();
}

void Session::CountDropped() {
  size_t dropped = 0;  // also those that never got a buffer
  if (library_->get_dropped(nullptr, 0, &dropped) == 0) store_.AddLost(dropped);
}

// Makes a call whose record must come back: the one way to learn of every CUPTI whether it still
// writes into our buffers.
bool Session::ProbeArrives(uint32_t flush_flags) {
  if (library_->call_driver == nullptr) return false;
  const uint64_t before = store_.probe_count();
  int version = 0;
  if (library_->push_id(kExternalKind, store_.ProbeId()) != 0) return false;
  library_->call_driver(&version);
  uint64_t id = 0;
  library_->pop_id(kExternalKind, &id);
  library_->flush_all(flush_flags);
  return store_.probe_count() > before;
}

// Not said where the probe's record never came, not even at the start.
std::optional<CudaActivityEnd> Session::FindEnd() {
  if (!has_probe_) return std::nullopt;
  Sessions& sessions = TheSessions();
  uint64_t last_number = 0;
  {
    const std::lock_guard lock(sessions.mutex);
    last_number = sessions.buffer_count;
  }
  const uint64_t refused = refused_buffer_count_;
  if (ProbeArrives(kFlushForced)) return std::nullopt;
  if (refused_buffer_count_ != refused) {  // our own limit
    constexpr size_t kOfProbe = 2;         // records: the call and its external id
    size_t dropped = 0;
    library_->get_dropped(nullptr, 0, &dropped);
    store_.AddLost(dropped - std::min(dropped, kOfProbe));
    return std::nullopt;
  }
  CudaActivityEnd end;
  end.last_call_ns = store_.last_call_ns();
  if (library_->get_timestamp != nullptr) library_->get_timestamp(&end.noticed_ns);
  const std::lock_guard lock(sessions.mutex);
  // A forced flush returns all buffers to the registered callback.
  const bool is_taken =
      std::any_of(sessions.buffers.begin(), sessions.buffers.end(), [&](const auto& entry) {
        return entry.second.number <= last_number && entry.second.owner.lock().get() == this;
      });
  end.reason = is_taken ? "buffers_taken" : "not_recorded";
  return end;
}

bool Session::Fetch() {
  if (clients_.end) return false;
  library_->flush_all(0);
  CountDropped();
  // Calls were made and none was seen. The forced flush of the probe also fetches what still runs,
  // without times: so it is not done each time.
  const uint64_t pushes = push_count_, call_ns = store_.last_call_ns();
  if (pushes != fetched_push_count_ && call_ns == fetched_call_ns_) clients_.end = FindEnd();
  fetched_push_count_ = pushes;
  fetched_call_ns_ = call_ns;
  return !clients_.end;
}

void Session::Stop() {
  library_->flush_all(kFlushForced);
  CountDropped();
  if (!clients_.end) clients_.end = FindEnd();
  if (clients_.end) {
    // Another client may rely on what is enabled.
    clients_.left_enabled_count = static_cast<uint32_t>(enabled_.size());
  } else {
    Disable();
    library_->flush_all(kFlushForced);
    CountDropped();
  }
  store_.DropUnsampled();
  clients_.foreign_buffer_count = foreign_buffer_count_;
  Sessions& sessions = TheSessions();
  const std::lock_guard lock(sessions.mutex);
  sessions.current.reset();
}

bool Session::Push(std::string_view op, const std::string* node) {
  const std::shared_ptr<Session> session = CurrentSession();
  if (session == nullptr) return false;
  ++session->push_count_;
  ActivityStore& store = session->store_;
  const bool is_wanted = !session->only_sampled_requests_ || IsSampled(CurrentTraceparent());
  const uint64_t id = is_wanted ? store.LabelOf(op, node) : store.UnsampledId();
  return session->library_->push_id(kExternalKind, id) == 0;
}

void Session::Pop() {
  const Library* library = nullptr;
  uint64_t id = 0;
  if (Open(library)) library->pop_id(kExternalKind, &id);
}

}  // namespace libtrace::cupti

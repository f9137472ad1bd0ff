// One use of CUPTI by this process, from start to stop, beside other clients of CUPTI.
//
// CUPTI's activity interface has one pair of buffer callbacks, which is the last that was registered,
// and one switch for each kind of record, both of the whole process (cupti_activity.h). A second
// client takes the buffers of the first, and what it disables is disabled for both. So a session
//   * does not start, and changes nothing, if CUPTI says that there is another client;
//   * tells its buffers and external ids from others, and leaves those alone;
//   * notices when its records stop coming because another client came, and then disables nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/activity_store.h"
#include "cuda/cupti.h"
#include "libtrace/cuda/cuda_activity.h"
#include "libtrace/status.h"

namespace libtrace::cupti {

// Thread-safe, except Start, Fetch and Stop; Start and Stop are called once each.
class Session {
 public:
  // At most one session of the process is between Start and Stop. Not ok: none was started; nothing
  // that another client enabled or registered was changed.
  static Status Start(const CudaActivityOptions& options, std::shared_ptr<Session>& session);
  void Stop();
  // Between Start and Stop, of one thread: fetches what is complete. False, for good: another client
  // ended the records, as clients().end says.
  bool Fetch();

  // Of the session that was started and not stopped. False: there is none, or CUPTI refused.
  static bool Push(std::string_view op, const std::string* node);
  static void Pop();

  const Library& library() const { return *library_; }
  ActivityStore& store() { return store_; }
  // After Stop: what other clients did meanwhile.
  const CudaActivityClients& clients() const { return clients_; }

 private:
  friend struct Callbacks;
  void Read(void* context, uint32_t stream, uint8_t* buffer, size_t valid_bytes);
  Session(const Library& library, const CudaActivityOptions& options, uint16_t number)
      : library_(&library),
        max_buffers_(options.max_buffers),
        only_sampled_requests_(options.only_sampled_requests),
        store_(options, library.has_graph_ids(), number) {}

  Status Enable();
  void LeaveOutQuietCalls();
  void Disable();
  void CountDropped();
  bool ProbeArrives(uint32_t flush_flags);
  std::optional<CudaActivityEnd> FindEnd();

  const Library* const library_;
  const uint32_t max_buffers_;
  const bool only_sampled_requests_;
  ActivityStore store_;
  std::vector<int32_t> enabled_;                // kinds, by this session
  bool has_probe_ = false;                      // records of the call that the probe makes arrive
  std::atomic<uint32_t> held_buffer_count_{0};  // that CUPTI has
  std::atomic<uint64_t> refused_buffer_count_{0};
  std::atomic<uint64_t> foreign_buffer_count_{0};
  std::atomic<uint64_t> push_count_{0};
  uint64_t fetched_push_count_ = 0, fetched_call_ns_ = 0;  // at the last Fetch()
  CudaActivityClients clients_;
};

}  // namespace libtrace::cupti

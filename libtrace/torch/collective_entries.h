// The entries of a CollectiveLog, as the observer and the decorator make them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/thread_id.h"
#include "libtrace/torch/collectives.h"

namespace libtrace {

using Work = c10::intrusive_ptr<c10d::Work>;
using TensorList = std::vector<at::Tensor>;

std::string ReduceOpName(const c10d::ReduceOp& op);
inline bool IsPointToPoint(const std::string& op) { return op == "send" || op == "recv"; }

struct CollectiveLog::Impl {
  explicit Impl(const CollectiveLogOptions& chosen) : options(chosen) {}

  // A group that is given to the log at `place`, before it issues anything.
  void AddGroup(const CallSite& place) {
    if (IsInherited()) return;
    const std::lock_guard lock(mutex);
    if (location.file == nullptr) location = place;
  }

  // In a forked child: another thread of its parent's may hold the lock, and no group of its
  // parent's lives on in it.
  bool IsInherited() const { return process_id_ != detail::ProcessId(); }

  struct Issued : IssuedCollective {
    bool is_written = true;    // false: beyond the limit
    bool takes_number = true;  // false: it has that of the one before
  };
  // One collective that is being issued; null in a forked child.
  using Entry = std::shared_ptr<Issued>;
  // Adds what is not set yet (shapes, dtype, time, compile, numbers), writes or keeps it. With
  // `shares_number` it has the collective_seq_id of the one before. Throws std::bad_alloc only.
  Entry Append(IssuedCollective collective, const TensorList& inputs, const TensorList& outputs,
               bool shares_number);
  // When `work` completes or fails, or now if there is none, `entry` gets its duration since
  // `start_ns`.
  static void FinishWith(const std::shared_ptr<Impl>& log, const Entry& entry, int64_t start_ns,
                         const Work& work);
  // The backend did not take it. Its number is free again, unless another has been issued since.
  void Refuse(Issued& entry, std::string error);
  void EmitKept();

  const CollectiveLogOptions options;
  CallSite location;  // of the first group
  mutable std::mutex mutex;
  uint64_t unwritten_count = 0;
  std::vector<Entry> kept;
  std::vector<std::optional<std::string>> schedule;  // bounded as the collectives are

 private:
  struct Numbers {
    uint64_t next = 0, collective = 0, p2p = 0;
  };
  void Finish(Issued& entry, int64_t start_ns, std::optional<std::string> error = {});

  const uint32_t process_id_ = detail::ProcessId();
  uint64_t count_ = 0;
  std::map<std::string, Numbers> numbers_;  // by process group
};

}  // namespace libtrace

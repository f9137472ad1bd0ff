// AsyncQueue: records waiting for the thread that writes them. Bounded in bytes.
//
// Made for a cheap Push: a record is copied into a chunk of memory that is reused, under a short
// lock, and the writer is woken only if it sleeps; after a burst it polls every millisecond for a
// while.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/pending_record.h"
#include "core/record_writer.h"

namespace libtrace::detail {

class AsyncQueue {
 public:
  struct Limits {
    uint64_t size_bytes;
    AsyncMode mode;  // kBlock or kDrop
    // Of one Push, once; later ones do not wait until there is progress.
    std::chrono::milliseconds max_block;
  };
  AsyncQueue(Limits limits, RecordWriter& writer, LossLedger& ledger);
  ~AsyncQueue() = delete;  // lives as long as the process: its thread may hang in a write

  enum class PushResult { kQueued, kFull, kClosed };
  // Moves the payload out of the record. Starts the thread at the first call.
  PushResult Push(PendingRecord& record);
  // Waits until all that was pushed before is written.
  bool Flush(std::chrono::milliseconds timeout) noexcept;
  // Writes what is queued, and what waits for room, and ends the thread; what is left when time is
  // up is counted as lost and never written. Later pushes get kClosed.
  void Close(std::chrono::milliseconds timeout) noexcept;

 private:
  struct Chunk {
    std::unique_ptr<char[]> bytes;
    size_t capacity = 0;
    size_t size = 0;
    std::deque<Payload> payloads;
    uint64_t record_count = 0;
    uint64_t cost_bytes = 0;  // counted against the limit
  };
  using Lock = std::unique_lock<std::mutex>;

  bool MakeRoom(Lock& lock, uint64_t cost_bytes);
  bool MayGetWork() const { return !is_closed_ || waiting_count_ > 0; }
  Chunk& ChunkFor(size_t size);
  void StartThread();
  void Run() noexcept;
  bool WaitForWork(Lock& lock);
  void WriteChunk(Chunk& chunk);
  void Recycle(Chunk chunk);

  const Limits limits_;
  RecordWriter& writer_;
  LossLedger& ledger_;

  std::atomic<bool> is_abandoned_{false};  // the thread stops after the record that it is writing

  std::mutex mutex_;  // guards what follows
  std::condition_variable work_;
  std::condition_variable progress_;
  std::deque<Chunk> full_;  // the last one is being filled
  std::vector<Chunk> free_;
  uint64_t queued_bytes_ = 0;  // being written ones included
  uint64_t pushed_count_ = 0;
  uint64_t written_count_ = 0;
  bool is_started_ = false;
  bool is_asleep_ = false;
  bool is_stalled_ = false;  // a Push timed out and nothing has been written since
  int waiting_count_ = 0;    // threads that wait for room
  bool is_closed_ = false;
  bool is_done_ = false;
  std::thread::id thread_id_;
};

}  // namespace libtrace::detail

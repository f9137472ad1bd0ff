#include "core/async_queue.h"

#include <pthread.h>

#include <cstring>
#include <string>

#include "core/busy.h"
#include "core/signal_guard.h"

namespace libtrace::detail {
namespace {

constexpr size_t kChunkSize = size_t{256} << 10;
constexpr size_t kMaxFreeChunks = 16;
constexpr auto kNap = std::chrono::milliseconds(1);
constexpr int kNapsBeforeSleep = 50;

// In front of the bytes of a record in a chunk.
struct Entry {
  uint32_t name_size;
  uint32_t name_count;  // interned names
  uint64_t header_size;
  int64_t time_us;
  bool has_payload;
};

char* Put(char* at, const void* bytes, size_t size) {
  std::memcpy(at, bytes, size);
  return at + size;
}

const char* Take(const char* at, void* bytes, size_t size) {
  std::memcpy(bytes, at, size);
  return at + size;
}

size_t EntrySize(const PendingRecord& record) {
  size_t size = sizeof(Entry) + record.name.size() + record.header.size();
  for (const InternedName& name : record.interned_names)
    size += 2 * sizeof(size_t) + name.name.size();
  return size;
}

void PutEntry(const PendingRecord& record, char* at) {
  const Entry entry{static_cast<uint32_t>(record.name.size()),
                    static_cast<uint32_t>(record.interned_names.size()), record.header.size(),
                    record.time_us, record.payload.is_set()};
  at = Put(at, &entry, sizeof entry);
  at = Put(at, record.name.data(), record.name.size());
  at = Put(at, record.header.data(), record.header.size());
  for (const InternedName& name : record.interned_names) {
    const size_t size = name.name.size();
    at = Put(at, &name.offset, sizeof name.offset);
    at = Put(at, &size, sizeof size);
    at = Put(at, name.name.data(), size);
  }
}

const char* TakeEntry(const char* at, PendingRecord& record, bool& has_payload) {
  Entry entry;
  at = Take(at, &entry, sizeof entry);
  record.name = {at, entry.name_size};
  at += entry.name_size;
  record.header.assign(at, entry.header_size);
  at += entry.header_size;
  record.interned_names.clear();
  for (uint32_t i = 0; i < entry.name_count; ++i) {
    size_t offset = 0, size = 0;
    at = Take(at, &offset, sizeof offset);
    at = Take(at, &size, sizeof size);
    record.interned_names.push_back({offset, std::string(at, size)});
    at += size;
  }
  record.time_us = entry.time_us;
  has_payload = entry.has_payload;
  return at;
}

}  // namespace

AsyncQueue::AsyncQueue(Limits limits, RecordWriter& writer, LossLedger& ledger)
    : limits_(limits), writer_(writer), ledger_(ledger) {}

AsyncQueue::PushResult AsyncQueue::Push(PendingRecord& record) {
  Payload payload;
  if (record.payload.is_set()) payload.text() = record.payload.TakeText();
  const size_t size = EntrySize(record);
  const uint64_t cost_bytes = size + payload.view().size();
  const BusyScope busy;
  Lock lock(mutex_);
  if (is_closed_) {
    if (record.payload.is_set()) record.payload.text() = payload.TakeText();
    return PushResult::kClosed;
  }
  if (!is_started_) StartThread();
  if (queued_bytes_ != 0 && queued_bytes_ + cost_bytes > limits_.size_bytes &&
      !MakeRoom(lock, cost_bytes)) {
    return PushResult::kFull;
  }
  Chunk& chunk = ChunkFor(size);
  if (record.payload.is_set()) chunk.payloads.push_back(std::move(payload));
  PutEntry(record, chunk.bytes.get() + chunk.size);
  chunk.size += size;
  chunk.cost_bytes += cost_bytes;
  ++chunk.record_count;
  queued_bytes_ += cost_bytes;
  ++pushed_count_;
  const bool wake = is_asleep_;
  is_asleep_ = false;
  lock.unlock();
  if (wake) work_.notify_one();
  return PushResult::kQueued;
}

bool AsyncQueue::MakeRoom(Lock& lock, uint64_t cost_bytes) {
  if (limits_.mode == AsyncMode::kDrop || is_stalled_) return false;
  const auto has_room = [&] {
    return is_abandoned_ || queued_bytes_ == 0 || queued_bytes_ + cost_bytes <= limits_.size_bytes;
  };
  if (is_asleep_) {
    is_asleep_ = false;
    work_.notify_one();
  }
  // A queue that is closed meanwhile still takes the record.
  ++waiting_count_;
  const bool is_in_time = progress_.wait_for(lock, limits_.max_block, has_room);
  --waiting_count_;
  if (is_in_time) return !is_abandoned_;
  is_stalled_ = true;
  return false;
}

AsyncQueue::Chunk& AsyncQueue::ChunkFor(size_t size) {
  if (!full_.empty() && full_.back().capacity - full_.back().size >= size) return full_.back();
  if (!free_.empty() && size <= kChunkSize) {
    full_.push_back(std::move(free_.back()));
    free_.pop_back();
    return full_.back();
  }
  Chunk chunk;
  chunk.capacity = std::max(size, kChunkSize);
  chunk.bytes.reset(new char[chunk.capacity]);
  full_.push_back(std::move(chunk));
  return full_.back();
}

void AsyncQueue::StartThread() {
  // A SIGXFSZ of a write must not kill the process, either.
  const AllSignalsBlocked blocked;
  std::thread thread([this] { Run(); });
  thread_id_ = thread.get_id();
  thread.detach();
  is_started_ = true;
}

bool AsyncQueue::WaitForWork(Lock& lock) {
  for (int naps = 0; full_.empty() && MayGetWork(); ++naps) {
    if (naps < kNapsBeforeSleep || is_closed_) {
      work_.wait_for(lock, kNap);
    } else {
      is_asleep_ = true;
      work_.wait(lock, [this] { return !is_asleep_ || is_closed_; });
      is_asleep_ = false;
    }
  }
  return !full_.empty() && !is_abandoned_;
}

void AsyncQueue::Run() noexcept {
  pthread_setname_np(pthread_self(), "libtrace");
  Lock lock(mutex_);
  while (WaitForWork(lock)) {
    Chunk chunk = std::move(full_.front());
    full_.pop_front();
    lock.unlock();
    WriteChunk(chunk);
    lock.lock();
    queued_bytes_ -= chunk.cost_bytes;
    written_count_ += chunk.record_count;
    is_stalled_ = false;
    Recycle(std::move(chunk));
    progress_.notify_all();
  }
  is_done_ = true;
  progress_.notify_all();
}

void AsyncQueue::WriteChunk(Chunk& chunk) {
  // One of each for the life of the thread: their memory is reused.
  thread_local PendingRecord record;
  thread_local FramedRecord framed;
  const char* at = chunk.bytes.get();
  const char* const end = at + chunk.size;
  for (uint64_t left = chunk.record_count;
       at < end && !is_abandoned_.load(std::memory_order_relaxed); --left) {
    try {
      bool has_payload = false;
      at = TakeEntry(at, record, has_payload);
      record.payload = Payload();
      if (has_payload) {
        record.payload = std::move(chunk.payloads.front());
        chunk.payloads.pop_front();
      }
    } catch (...) {  // no memory: what follows in this chunk can no longer be found
      ledger_.Lost(LossKind::kBuilderFailed, "(queued)", "no memory for queued records", left);
      return;
    }
    writer_.Write(record, framed);
  }
}

void AsyncQueue::Recycle(Chunk chunk) {
  if (chunk.capacity != kChunkSize || free_.size() >= kMaxFreeChunks) return;
  chunk.size = 0;
  chunk.record_count = 0;
  chunk.cost_bytes = 0;
  chunk.payloads.clear();
  free_.push_back(std::move(chunk));
}

bool AsyncQueue::Flush(std::chrono::milliseconds timeout) noexcept {
  if (t_is_busy) return false;
  const BusyScope busy;
  Lock lock(mutex_);
  if (!is_started_ || is_done_) return pushed_count_ == written_count_;
  if (std::this_thread::get_id() == thread_id_) return false;  // would wait for itself
  const uint64_t target = pushed_count_;
  if (is_asleep_) {
    is_asleep_ = false;
    work_.notify_one();
  }
  return progress_.wait_for(lock, timeout, [&] { return written_count_ >= target || is_done_; }) &&
         written_count_ >= target;
}

void AsyncQueue::Close(std::chrono::milliseconds timeout) noexcept {
  Lock lock(mutex_);
  is_closed_ = true;
  is_asleep_ = false;
  work_.notify_one();
  progress_.notify_all();
  if (!is_started_ || std::this_thread::get_id() == thread_id_) return;
  if (progress_.wait_for(lock, timeout, [this] { return is_done_; })) return;
  is_abandoned_ = true;
  progress_.notify_all();
  const uint64_t left = pushed_count_ - written_count_;
  lock.unlock();
  ledger_.Lost(LossKind::kNotWrittenAtExit, "(queued)",
               "the queue could not be written in the time given for it", left);
}

}  // namespace libtrace::detail

// RecordWriter: all records reach the sink through it. Assigns ids to interned names and writes
// `str` records before their first use; also writes the identification as second record of a file,
// and losses.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "core/loss_ledger.h"
#include "core/pending_record.h"
#include "libtrace/sink.h"

namespace libtrace::detail {

struct WriteCounters {
  std::atomic<uint64_t> record_count{0};
  std::atomic<uint64_t> size_bytes{0};
  std::atomic<uint64_t> repaired_payload_count{0};
  std::atomic<uint64_t> file_count{0};
};

// Thread-safe, noexcept. Every failure is counted in the ledger.
class RecordWriter {
 public:
  RecordWriter(std::shared_ptr<Sink> sink, std::string pid_text, LossLedger& ledger);

  // `framed` is scratch memory of the calling thread. False after Close(): nothing was done.
  bool Write(const PendingRecord& record, FramedRecord& framed) noexcept;
  void SetRank(std::optional<uint32_t> rank) noexcept;
  // The process ends in the calling thread, and the kernel cuts what others write just then:
  // waits for a write under way (2 s at most), and drops and counts what other threads bring later.
  void LeaveToThisThread() noexcept;
  // Writes what was lost, flushes, and ignores everything that comes later.
  void Close() noexcept;
  std::string path() noexcept;

  const WriteCounters& counters() const { return counters_; }
  // For a forked child, without using the lock. Null for sinks that do not support it.
  TraceSink* trace_sink() const { return trace_sink_; }
  const Sink* sink() const { return sink_.get(); }

 private:
  // Not held if it could not be taken within 2 s.
  std::unique_lock<std::mutex> LockSoon() noexcept;
  void WriteLocked(const PendingRecord& record, FramedRecord& framed);
  void BeginRecord(uint64_t size_bytes);
  std::string WithIds(const PendingRecord& record);
  uint32_t Intern(const std::string& name);
  void WriteFramed(std::string_view start, FramedRecord& framed);
  void WriteBytes(std::string_view bytes);
  void CountWritten(uint64_t size_bytes);
  void WriteOwnArtifact(std::string_view name, std::string_view payload, int line);
  std::string OwnPrefix(int line) const;
  void WriteIdentification();
  void WriteLosses() noexcept;

  const std::shared_ptr<Sink> sink_;
  TraceSink* const trace_sink_;
  const std::string pid_text_;
  LossLedger& ledger_;
  WriteCounters counters_;

  std::mutex mutex_;  // guards what follows, and all calls of the sink
  std::unordered_map<std::string, uint32_t> interned_;
  int64_t record_time_us_ = 0;  // of the record being written: our own ones get it too
  bool is_identified_ = false;
  bool is_begun_ = false;  // of a sink that is not a TraceSink
  bool is_closed_ = false;
  std::thread::id only_thread_{};  // whose records are written; none = everybody's
};

}  // namespace libtrace::detail

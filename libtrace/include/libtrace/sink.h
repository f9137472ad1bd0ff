// Where records go. Files need none of this: give Options::directory. For sinks of spdlog see
// libtrace/spdlog_sink.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

// Takes records. libtrace calls a sink from one thread at a time; a sink must not emit. A failure
// is reported by throwing a std::exception: the record is then counted as lost.
class Sink {
 public:
  virtual ~Sink() = default;
  // One whole record with its payload lines and its last LF, to be written unchanged.
  virtual void Write(std::string_view record) = 0;
  // Called once, after the last record.
  virtual void Flush() {}
};

// Base of the sinks that know about files and forks.
class TraceSink : public Sink {
 public:
  // Called before each record of `size_bytes`. Opens or changes files as needed; true if this
  // record will be the first of a file: interned strings and the identification are then written
  // again. Throws a std::exception if nothing can be written.
  virtual bool BeginRecord(uint64_t size_bytes) = 0;
  // For a forked child, which must not use this object any more: gives back what it got by
  // inheritance (only async-signal-safe calls and fresh memory) and returns a sink of its own; null
  // = no tracing.
  virtual std::shared_ptr<TraceSink> AfterFork() = 0;
  // Whether WritePart may be called. A record with a payload of 8 MiB or more is then never in
  // memory as a whole; otherwise it comes by Write() like any other.
  virtual bool TakesParts() const { return false; }
  // The next bytes of one record, in order, after one BeginRecord. When it throws, nothing more of
  // the record comes, and what was taken of it must be undone.
  virtual void WritePart(std::string_view /*part*/, bool /*is_last*/) {}
  // Called once, after the last record. The object may be kept for long: give files back now.
  virtual void Close() {}
  virtual void SetRank(std::optional<uint32_t>) {}
  // File being written, "" if none.
  virtual std::string path() const { return {}; }
};

struct FileSinkOptions {
  std::string directory{};
  std::optional<uint32_t> rank{};  // part of the names of files opened from now on
  uint64_t rotate_size_bytes = 0;  // 0 = one file
  uint64_t budget_size_bytes = 0;  // of all files of this sink; the oldest go. 0 = unlimited
};

// One write() per record on an O_APPEND descriptor, several for a payload of 8 MiB or more. A record
// that could be written only in part (disk full) is cut off again, so that the file always ends with
// a whole record unless the process is killed in the middle of one.
std::shared_ptr<TraceSink> MakeFileSink(FileSinkOptions options);

// Keeps records in memory, for tests. Thread-safe. Forked children get an empty one of their own.
class MemorySink : public TraceSink {
 public:
  bool BeginRecord(uint64_t size_bytes) override;
  std::shared_ptr<TraceSink> AfterFork() override;
  void Write(std::string_view record) override;

  std::vector<std::string> records() const;  // whole records, with payload lines
  std::string text() const;                  // what a file would contain
  void Clear();  // keeps the interned strings: later records may refer to them

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> records_;
  bool is_begun_ = false;
};

// Gives each record to `callback`, which may throw (the record counts as lost) and must not emit. A
// forked child has a copy of the callback.
class CallbackSink : public TraceSink {
 public:
  using Callback = std::function<void(std::string_view record)>;
  explicit CallbackSink(Callback callback) : callback_(std::move(callback)) {}

  bool BeginRecord(uint64_t size_bytes) override;
  std::shared_ptr<TraceSink> AfterFork() override;
  void Write(std::string_view record) override;

 private:
  Callback callback_;
  bool is_begun_ = false;
};

}  // namespace LIBTRACE_EXPORT

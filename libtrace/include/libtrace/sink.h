// Where records go: spdlog sinks of our own. Files need none of this: give Options::directory.
//
// Any other spdlog sink works too (Options::sink) if its formatter adds nothing, e.g.
// set_pattern("%v") and no end of line: spdlog::pattern_formatter("%v",
// spdlog::pattern_time_type::local, ""). A sink reports a failure by throwing: the record is then
// counted as lost. libtrace calls a sink from one thread at a time, so `_st` sinks do.
#pragma once

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace libtrace {

// Base of the sinks that know about files and forks. libtrace serialises all calls.
class TraceSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  // Called before each record of `size_bytes`. Opens or changes files as needed; true if this
  // record will be the first of a file: interned strings and the identification are then written
  // again. Throws spdlog::spdlog_ex if nothing can be written.
  virtual bool BeginRecord(uint64_t size_bytes) = 0;
  // For a forked child, which must not use this object any more: gives back what it got by
  // inheritance (only async-signal-safe calls and fresh memory) and returns a sink of its own; null
  // = no tracing.
  virtual std::shared_ptr<TraceSink> AfterFork() = 0;
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

// One write() per record on an O_APPEND descriptor. A record that could be written only in part
// (disk full) is cut off again, so that the file always ends with a whole record.
std::shared_ptr<TraceSink> MakeFileSink(FileSinkOptions options);

// Keeps records in memory, for tests. Thread-safe. Forked children get an empty one of their own.
class MemorySink : public TraceSink {
 public:
  bool BeginRecord(uint64_t size_bytes) override;
  std::shared_ptr<TraceSink> AfterFork() override;

  std::vector<std::string> records() const;  // whole records, with payload lines
  std::string text() const;                  // what a file would contain
  void Clear();  // keeps the interned strings: later records may refer to them

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

  mutable std::mutex mutex_;
  std::vector<std::string> records_;
  bool is_begun_ = false;
};

// Gives each record to `callback`, which may throw (the record counts as lost) and must not emit.
class CallbackSink : public TraceSink {
 public:
  using Callback = std::function<void(std::string_view record)>;
  explicit CallbackSink(Callback callback) : callback_(std::move(callback)) {}

  bool BeginRecord(uint64_t size_bytes) override;
  std::shared_ptr<TraceSink> AfterFork() override;

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

  Callback callback_;
  bool is_begun_ = false;
};

}  // namespace libtrace

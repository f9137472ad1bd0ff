// Three stages over a fixed pool of windows: read and verify (own thread) → type (the caller's
// thread) → write (own thread).
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "import/typing_stage.h"
#include "log/record_reader.h"
#include "store/batch_table.h"

namespace tlparse {

// A queue between two threads. Close() ends it: pops give what is left, then nothing; pushes are
// dropped.
template <typename T>
class Channel {
 public:
  void Push(T value) {
    {
      const std::lock_guard lock(mutex_);
      if (is_closed_) return;
      values_.push_back(std::move(value));
    }
    changed_.notify_one();
  }
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_closed_ || !values_.empty(); });
    if (values_.empty()) return std::nullopt;
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  void Close() {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
  bool is_closed_ = false;
};

struct PipelineFile {
  FileInfo info;
  std::unique_ptr<InputStream> input;  // opened by the reading thread from info.path if null
};

class Pipeline {
 public:
  struct Progress {
    std::int64_t bytes_done;  // on disk, of all files so far
    std::int64_t records;
    std::string_view path;
  };
  // All outlive the pipeline. The writer's database must not be touched while Run runs.
  Pipeline(TypingStage& typing, BatchWriter& writer, const TableSet& tables,
           RecordReader::Shared& shared);

  struct Hooks {
    std::function<void(const Progress&)> on_progress;  // on the caller's thread; may be empty
    // On the reading thread when all is read, while the last windows are still typed and written:
    // rows that depend on reading alone. Calls `write` with what fills a batch, as often as it
    // likes; false: stop, writing has failed.
    std::function<Result<void>(
        const std::function<bool(const std::function<void(RowBatch&)>&)>& write)>
        after_reading;
  };
  // Reads `files` in order into rows. Stops at the first error that is not the log's: a file that
  // cannot be opened, a full disk.
  Result<void> Run(std::vector<PipelineFile> files, const Hooks& hooks);

 private:
  // A window with its rows: text of the rows points into the window.
  struct Slot {
    Slot(const TableSet& tables, bool is_of_spare) : is_spare(is_of_spare), rows(tables) {}
    const bool is_spare;  // for rows alone
    Window window;
    RowBatch rows;
    std::size_t file = 0;
    std::int64_t bytes_done = 0;
    std::optional<FileResult> result;  // with the last window of a file
    std::optional<Error> error;        // reading failed; the slot holds nothing else
  };
  using SlotPointer = std::unique_ptr<Slot>;

  void Read(std::vector<PipelineFile>& files);
  void AfterReading(const Hooks& hooks);
  std::optional<Error> ReadFile(PipelineFile& file, std::size_t index, std::int64_t& bytes_before);
  void Write();
  // The rows of the file's end; `slot` is its last window at first, and at last the batch that is
  // not handed over yet.
  Result<void> EndFile(SlotPointer& slot);

  TypingStage& typing_;
  BatchWriter& writer_;
  RecordReader::Shared& shared_;
  std::vector<std::string> paths_;
  Channel<SlotPointer> free_;
  Channel<SlotPointer> spare_;
  Channel<SlotPointer> read_;
  Channel<SlotPointer> typed_;
  std::mutex error_mutex_;
  std::optional<Error> write_error_;
  std::optional<Error> after_reading_error_;
};

}  // namespace tlparse

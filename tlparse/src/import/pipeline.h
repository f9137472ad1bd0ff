// Four steps over a fixed pool of windows: read → verify → type → write. Windows are verified in parallel; each other step
// handles one window at a time, in order. No thread belongs to a step: a free thread takes the work that is nearest to the
// database (with one thread per step a core was idle for an eighth of the time on two cores). The rows do not depend on the
// number of threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/step_times.h"
#include "import/record_preparer.h"
#include "import/typing_step.h"
#include "log/record_reader.h"
#include "log/window_settler.h"
#include "log/window_verifier.h"
#include "store/batch_table.h"

namespace tlparse {

struct PipelineFile {
  FileInfo info;
  std::unique_ptr<InputStream> input;  // opened from info.path if null
};

class Pipeline {
 public:
  struct Progress {
    std::int64_t bytes_done;  // on disk, of all files so far
    std::int64_t records;
    std::string_view path;
  };
  struct Options {
    int threads = 0;             // maximum, including the caller's; 0: one for each core
    StepTimes* times = nullptr;  // CPU time by step is added to it; may be null
  };
  // All outlive the pipeline. The writer's database must not be touched while Run runs.
  Pipeline(TypingStep& typing, BatchWriter& writer, const TableSet& tables, ReadShared& shared,
           const Options& options);

  struct Hooks {
    std::function<void(const Progress&)> on_progress;  // by one thread at a time; may be empty
    // Adds the rows that depend on reading alone, when all is read and every payload has its id,
    // while the last windows are still typed and written. Calls `write` with each full batch, any
    // number of times; false: stop, writing has failed.
    std::function<Result<void>(
        const std::function<bool(const std::function<void(RowBatch&)>&)>& write)>
        after_reading;
  };
  // Reads `files` in order into rows. Stops at the first error that is not the log's: a file that
  // cannot be opened, a full disk. Called once.
  Result<void> Run(std::vector<PipelineFile> files, const Hooks& hooks);

 private:
  // A window with its rows: text of the rows points into the window.
  struct Item {
    Item(const TableSet& tables, bool is_of_spare) : is_spare(is_of_spare), rows(tables) {}
    const bool is_spare;  // holds rows but no window
    Window window;
    std::vector<PreparedRecord> prepared;  // of the window's records
    RowBatch rows;
    std::uint64_t number = 0;  // of the window, over all files
    std::size_t file = 0;
    std::int64_t bytes_done = 0;
    std::optional<FileResult> result;  // with the last window of a file
    std::size_t counted_bytes = 0;     // the part of excess_bytes_ that is of this item
    // Memory of the window and its rows, those to be made included, above that of an ordinary window (2 MiB of log).
    std::size_t ExcessBytes() const;
  };
  using ItemPointer = std::unique_ptr<Item>;
  using Queue = std::deque<ItemPointer>;
  using Lock = std::unique_lock<std::mutex>;

  // What each thread has of its own.
  struct Tools {
    explicit Tools(ReadShared& shared) : verifier(shared) {}
    WindowVerifier verifier;
    RecordPreparer preparer;
  };

  // Until all is done or has failed, runs the step nearest to the database that has work.
  void Work();
  bool RunStep(Lock& lock, Tools& tools);
  // Each does one step with one window; unlocked meanwhile.
  void RunRead(Lock& lock);
  void RunVerify(Lock& lock, Tools& tools);
  void RunType(Lock& lock);
  void RunWrite(Lock& lock);
  void RunAfterReading(Lock& lock);
  // Runs one of the functions below without the lock; an error or a lack of memory ends the load.
  // `file`: the one whose records it is about, or null.
  template <typename Function>
  void Unlocked(Lock& lock, LoadStep step, const PipelineFile* file, Function function);

  Result<void> Read(ItemPointer item);
  Result<void> AfterReading();
  Result<void> Type(ItemPointer item);
  // The rows of the file's end; `item` is its last window at first, and at last the batch that is
  // not handed over yet.
  Result<void> EndFile(ItemPointer& item);

  // Updates the count of what the item holds. With the lock.
  void Count(Item& item);
  // Frees the memory of a item whose rows are written. With the lock.
  void Free(ItemPointer item);
  // Whether another window may be read without exceeding the bound of memory: excess_bytes_ is below most_excess_bytes_, or no
  // window is in use. (So a record larger than the bound is read alone, after the windows before it were written.)
  bool HasRoom() const;
  // Whether the next window in order is verified and may be typed. While excess_bytes_ is at the bound, only after all earlier
  // rows were written: a few bytes of a record may become many rows.
  bool IsReadyToType() const;
  bool IsAllSettled() const { return is_all_read_ && settled_count_ == window_count_; }
  static ItemPointer Pop(Queue& queue);
  void Push(Queue& queue, ItemPointer item);
  // Waits for a item of `queue`, and writes meanwhile if no other thread does. Null: the load has
  // failed.
  ItemPointer Await(Queue& queue);

  TypingStep& typing_;
  BatchWriter& writer_;
  WindowSettler settler_;  // of the typing step
  ReadShared& shared_;
  StepTimes* const times_;
  const int threads_;
  const std::size_t most_excess_bytes_;
  const std::size_t item_count_;  // without spare ones
  const Hooks* hooks_ = nullptr;

  // Of the reading step.
  std::vector<PipelineFile> files_;
  std::size_t next_file_ = 0;
  std::unique_ptr<RecordReader> reader_;  // of files_[next_file_]; null: not begun
  std::int64_t bytes_before_ = 0;         // of files already read
  std::uint64_t window_count_ = 0;
  // Of the typing step.
  std::optional<std::size_t> typed_file_;

  std::mutex mutex_;                 // guards all below
  std::condition_variable changed_;  // a step may have work: wakes one thread in Work
  std::condition_variable freed_;    // for Await
  Queue free_;
  Queue spare_;
  Queue read_;
  std::map<std::uint64_t, ItemPointer> verified_;  // by number
  Queue typed_;
  std::size_t excess_bytes_ = 0;  // of the items in use
  std::uint64_t settled_count_ = 0;
  bool is_reading_ = false;
  bool is_typing_ = false;
  bool is_writing_ = false;
  bool is_all_read_ = false;   // the files
  bool is_all_added_ = false;  // and what depends on reading alone
  std::optional<Error> error_;
};

}  // namespace tlparse

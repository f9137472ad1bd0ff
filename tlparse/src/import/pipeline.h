// Four stages over a fixed pool of windows: read → verify → type → write. Every stage except
// verifying handles its windows in order, one at a time, on any free thread (with one thread per
// stage a core was idle an eighth of the time on two cores, whenever the scheduler put two of them
// on the same core). Windows are verified in parallel by all threads that have nothing else to do.
// The rows do not depend on the number of threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/stage_times.h"
#include "import/record_preparer.h"
#include "import/typing_stage.h"
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
    int threads = 0;              // maximum, including the caller's; 0: one for each core
    StageTimes* times = nullptr;  // CPU time by stage is added to it; may be null
  };
  // All outlive the pipeline. The writer's database must not be touched while Run runs.
  Pipeline(TypingStage& typing, BatchWriter& writer, const TableSet& tables, ReadShared& shared,
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
  struct Slot {
    Slot(const TableSet& tables, bool is_of_spare) : is_spare(is_of_spare), rows(tables) {}
    const bool is_spare;  // for rows alone
    Window window;
    std::vector<PreparedRecord> prepared;  // of the window's records
    RowBatch rows;
    std::uint64_t number = 0;  // of the window, over all files
    std::size_t file = 0;
    std::int64_t bytes_done = 0;
    std::optional<FileResult> result;  // with the last window of a file
    std::size_t counted_bytes = 0;     // in excess_bytes_
    // What window and rows hold, or soon will, beyond the memory of an ordinary window.
    std::size_t ExcessBytes() const;
  };
  using SlotPointer = std::unique_ptr<Slot>;
  using Queue = std::deque<SlotPointer>;
  using Lock = std::unique_lock<std::mutex>;

  // What each thread has of its own.
  struct Tools {
    explicit Tools(ReadShared& shared) : verifier(shared) {}
    WindowVerifier verifier;
    RecordPreparer preparer;
  };

  // Until all is done or has failed, runs the stage nearest to the database that has work.
  void Work();
  bool RunStage(Lock& lock, Tools& tools);
  // One step of a stage; unlocked meanwhile.
  void RunRead(Lock& lock);
  void RunVerify(Lock& lock, Tools& tools);
  void RunType(Lock& lock);
  void RunWrite(Lock& lock);
  void RunAfterReading(Lock& lock);
  // Runs one of the functions below without the lock; an error or a lack of memory ends the load.
  // `file`: the one whose records it is about, or null.
  template <typename Step>
  void Unlocked(Lock& lock, Stage stage, const PipelineFile* file, Step step);

  Result<void> Read(SlotPointer slot);
  Result<void> AfterReading();
  Result<void> Type(SlotPointer slot);
  // The rows of the file's end; `slot` is its last window at first, and at last the batch that is
  // not handed over yet.
  Result<void> EndFile(SlotPointer& slot);

  // Updates the count of what the slot holds. With the lock.
  void Count(Slot& slot);
  // Frees the memory of a slot whose rows are written. With the lock.
  void Free(SlotPointer slot);
  // Whether another window may be read: no window is in use, or those in use take less than
  // most_excess_bytes_ beyond what ordinary ones take. The next large record is read when the one
  // before it has been written.
  bool HasRoom() const;
  // Whether the next window in order is verified and may be typed. With more than most_excess_bytes_
  // in use, all rows before it must have been written: a small record may become many rows.
  bool IsReadyToType() const;
  bool IsAllSettled() const { return is_all_read_ && settled_count_ == window_count_; }
  static SlotPointer Pop(Queue& queue);
  void Push(Queue& queue, SlotPointer slot);
  // Waits for a slot of `queue`, and writes meanwhile if no other thread does. Null: the load has
  // failed.
  SlotPointer Await(Queue& queue);

  TypingStage& typing_;
  BatchWriter& writer_;
  WindowSettler settler_;  // of the typing stage
  ReadShared& shared_;
  StageTimes* const times_;
  const int threads_;
  const std::size_t most_excess_bytes_;
  const std::size_t slot_count_;  // spare ones left out
  const Hooks* hooks_ = nullptr;

  // Of the reading stage.
  std::vector<PipelineFile> files_;
  std::size_t next_file_ = 0;
  std::unique_ptr<RecordReader> reader_;  // of files_[next_file_]; null: not begun
  std::int64_t bytes_before_ = 0;         // of files already read
  std::uint64_t window_count_ = 0;
  // Of the typing stage.
  std::optional<std::size_t> typed_file_;

  std::mutex mutex_;                 // guards all below
  std::condition_variable changed_;  // for Work: one waiting thread is as good as another
  std::condition_variable freed_;    // for Await
  Queue free_;
  Queue spare_;
  Queue read_;
  std::map<std::uint64_t, SlotPointer> verified_;  // by number
  Queue typed_;
  std::size_t excess_bytes_ = 0;  // of the slots in use
  std::uint64_t settled_count_ = 0;
  bool is_reading_ = false;
  bool is_typing_ = false;
  bool is_writing_ = false;
  bool is_all_read_ = false;   // the files
  bool is_all_added_ = false;  // and what depends on reading alone
  std::optional<Error> error_;
};

}  // namespace tlparse

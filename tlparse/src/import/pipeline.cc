#include "import/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>

#include "base/worker_threads.h"

namespace tlparse {

namespace {
// Windows in flight, with one or two threads and for each one more. Enough that a step that falls
// behind for a moment does not stop the others.
constexpr int kItems = 6;
constexpr int kItemsOfThread = 4;
// What each takes, about, with ordinary records.
constexpr std::size_t kOrdinaryBytes = 8 << 20;
// Batches for the rows of a file's end. Not of those items: the reader may hold all of them for the
// next file.
constexpr int kSpareItems = 2;
// Windows with large records wait for those before them once these take so much more than ordinary
// ones: to be read, and to be typed, since a small record may become many rows.
constexpr std::size_t kMostExcessBytes = std::size_t{kItems} * kOrdinaryBytes;
constexpr std::size_t kExcessBytesOfThread = 24 << 20;  // and for each thread beyond two
}  // namespace

Pipeline::Pipeline(TypingStep& typing, BatchWriter& writer, const TableSet& tables,
                   ReadShared& shared, const Options& options)
    : typing_(typing),
      writer_(writer),
      settler_(shared),
      shared_(shared),
      times_(options.times),
      threads_(options.threads > 0 ? options.threads : AvailableCores()),
      most_excess_bytes_(kMostExcessBytes + kExcessBytesOfThread * static_cast<std::size_t>(
                                                                       std::max(0, threads_ - 2))),
      item_count_(static_cast<std::size_t>(kItems + kItemsOfThread * std::max(0, threads_ - 2))) {
  for (std::size_t item = 0; item < item_count_; ++item)
    free_.push_back(std::make_unique<Item>(tables, false));
  for (int item = 0; item < kSpareItems; ++item)
    spare_.push_back(std::make_unique<Item>(tables, true));
}

Result<void> Pipeline::Run(std::vector<PipelineFile> files, const Hooks& hooks) {
  files_ = std::move(files);
  hooks_ = &hooks;
  is_all_read_ = files_.empty();
  RunOnThreads(threads_, [this] { Work(); });
  if (error_) return tl::unexpected<Error>(std::move(*error_));
  return {};
}

void Pipeline::Work() {
  Tools tools(shared_);
  Lock lock(mutex_);
  while (!error_) {
    if (RunStep(lock, tools)) continue;
    const bool is_idle = !is_reading_ && !is_typing_ && !is_writing_;
    if (is_idle && is_all_added_) break;
    changed_.wait(lock);
  }
  changed_.notify_all();
  freed_.notify_all();
}

bool Pipeline::RunStep(Lock& lock, Tools& tools) {
  if (!is_writing_ && !typed_.empty()) {
    RunWrite(lock);
  } else if (IsReadyToType()) {
    RunType(lock);
  } else if (!read_.empty()) {
    RunVerify(lock, tools);
  } else if (!is_reading_ && !is_all_read_ && !free_.empty() && HasRoom()) {
    RunRead(lock);
  } else if (!is_reading_ && !is_all_added_ && IsAllSettled()) {
    RunAfterReading(lock);
  } else {
    return false;
  }
  return true;
}

bool Pipeline::IsReadyToType() const {
  const bool is_all_written = typed_.empty() && !is_writing_;
  return !is_typing_ && !verified_.empty() && verified_.begin()->first == settled_count_ &&
         (is_all_written || excess_bytes_ < most_excess_bytes_);
}

// Before the work one thread is woken for what else can be done by now; after it this thread looks
// for the next work itself, and wakes one thread for a second.
template <typename Function>
void Pipeline::Unlocked(Lock& lock, LoadStep step, const PipelineFile* file, Function function) {
  lock.unlock();
  changed_.notify_one();
  std::optional<Error> error;
  try {
    const StepTimer timer(times_, step);
    if (Result<void> done = function(); !done) error = std::move(done).error();
  } catch (const std::bad_alloc&) {
    error = Error{ErrorCode::kIo,
                  file == nullptr
                      ? std::string("not enough memory for the log's records")
                      : fmt::format("not enough memory for the records of '{}'", file->info.path)};
  } catch (const std::exception& unexpected) {
    error = Error{ErrorCode::kInternal, unexpected.what()};
  }
  lock.lock();
  if (error && !error_) error_ = std::move(error);
}

void Pipeline::RunRead(Lock& lock) {
  is_reading_ = true;
  Unlocked(lock, LoadStep::kReading, &files_[next_file_],
           [this, item = Pop(free_)]() mutable { return Read(std::move(item)); });
  is_all_read_ = next_file_ == files_.size();
  is_reading_ = false;
  changed_.notify_one();
}

void Pipeline::RunVerify(Lock& lock, Tools& tools) {
  ItemPointer item = Pop(read_);
  Unlocked(lock, LoadStep::kVerifying, &files_[item->file], [&]() -> Result<void> {
    tools.verifier.Verify(item->window);
    tools.preparer.Prepare(item->window, item->prepared);
    return {};
  });
  Count(*item);
  const std::uint64_t number = item->number;
  verified_.emplace(number, std::move(item));
  changed_.notify_one();
}

void Pipeline::RunType(Lock& lock) {
  is_typing_ = true;
  ItemPointer item = std::move(verified_.begin()->second);
  verified_.erase(verified_.begin());
  const PipelineFile* const file = &files_[item->file];
  Unlocked(lock, LoadStep::kTyping, file, [&] { return Type(std::move(item)); });
  is_typing_ = false;
  changed_.notify_one();
}

void Pipeline::RunWrite(Lock& lock) {
  is_writing_ = true;
  ItemPointer item = Pop(typed_);
  Unlocked(lock, LoadStep::kWriting, nullptr, [&] {
    const Result<void> inserted = writer_.Insert(item->rows);
    item->rows.Clear();
    item->window.Clear();
    item->prepared.clear();
    if (item->prepared.capacity() > Window::kMostKeptRecords) item->prepared.shrink_to_fit();
    return inserted;
  });
  is_writing_ = false;
  Free(std::move(item));
  changed_.notify_one();
  freed_.notify_all();
}

void Pipeline::RunAfterReading(Lock& lock) {
  is_reading_ = true;
  Unlocked(lock, LoadStep::kReading, nullptr, [this] { return AfterReading(); });
  is_all_added_ = true;
  is_reading_ = false;
  changed_.notify_one();
}

std::size_t Pipeline::Item::ExcessBytes() const {
  // Verifying copies most payloads of a window into its arena.
  const std::size_t held = window.bytes.capacity() +
                           std::max(window.arena.allocated_bytes(), window.bytes.size()) +
                           window.records.capacity() * sizeof(LogRecord) +
                           prepared.capacity() * sizeof(PreparedRecord) + rows.allocated_bytes();
  return held > kOrdinaryBytes ? held - kOrdinaryBytes : 0;
}

void Pipeline::Count(Item& item) {
  excess_bytes_ -= item.counted_bytes;
  item.counted_bytes = item.ExcessBytes();
  excess_bytes_ += item.counted_bytes;
}

void Pipeline::Free(ItemPointer item) {
  excess_bytes_ -= item->counted_bytes;
  item->counted_bytes = 0;
  (item->is_spare ? spare_ : free_).push_back(std::move(item));
}

bool Pipeline::HasRoom() const {
  return free_.size() == item_count_ || excess_bytes_ < most_excess_bytes_;
}

Result<void> Pipeline::Read(ItemPointer item) {
  PipelineFile& file = files_[next_file_];
  if (reader_ == nullptr) {
    if (file.input == nullptr) {
      ASSIGN_OR_RETURN(file.input, OpenInput(file.info.path));
    }
    reader_ = std::make_unique<RecordReader>(std::move(file.input));
  }
  item->result.reset();
  item->file = next_file_;
  item->number = window_count_++;
  const bool has_window = reader_->Fill(item->window);
  item->bytes_done = bytes_before_ + reader_->input().compressed_bytes_read();
  if (!has_window || item->window.ends_file) {
    item->result = FileResult{reader_->bytes_read(), 0, std::string(reader_->input().compression()),
                              reader_->ContentHash()};
    bytes_before_ = item->bytes_done;
    reader_.reset();
    ++next_file_;
  }
  Push(read_, std::move(item));
  return {};
}

Result<void> Pipeline::AfterReading() {
  if (!hooks_->after_reading) return {};
  return hooks_->after_reading([this](const std::function<void(RowBatch&)>& fill) {
    ItemPointer item = Await(free_);
    if (item == nullptr) return false;
    fill(item->rows);
    Push(typed_, std::move(item));
    return true;
  });
}

Result<void> Pipeline::Type(ItemPointer item) {
  RETURN_IF_ERROR(settler_.Settle(item->window));
  if (item->result) item->result->line_count = settler_.line_count();
  {
    const Lock lock(mutex_);
    ++settled_count_;
  }
  changed_.notify_one();
  const FileInfo& file = files_[item->file].info;
  if (typed_file_ != item->file) {
    typing_.BeginFile(file);
    typed_file_ = item->file;
  }
  RETURN_IF_ERROR(typing_.Type(item->window, item->prepared, item->rows));
  const std::int64_t bytes_done = item->bytes_done;
  if (item->result) RETURN_IF_ERROR(EndFile(item));
  if (hooks_->on_progress) hooks_->on_progress({bytes_done, typing_.record_count(), file.path});
  Push(typed_, std::move(item));
  return {};
}

Result<void> Pipeline::EndFile(ItemPointer& item) {
  const FileResult result = *item->result;
  return typing_.EndFile(result, item->rows, [&]() -> RowBatch* {
    Push(typed_, std::move(item));
    item = Await(spare_);
    return item == nullptr ? nullptr : &item->rows;
  });
}

Pipeline::ItemPointer Pipeline::Pop(Queue& queue) {
  ItemPointer item = std::move(queue.front());
  queue.pop_front();
  return item;
}

void Pipeline::Push(Queue& queue, ItemPointer item) {
  {
    const Lock lock(mutex_);
    Count(*item);
    queue.push_back(std::move(item));
  }
  changed_.notify_one();
  freed_.notify_all();
}

Pipeline::ItemPointer Pipeline::Await(Queue& queue) {
  Lock lock(mutex_);
  while (true) {
    if (error_) return nullptr;
    if (!queue.empty()) return Pop(queue);
    if (!is_writing_ && !typed_.empty()) {
      RunWrite(lock);
    } else {
      freed_.wait(lock);
    }
  }
}

}  // namespace tlparse

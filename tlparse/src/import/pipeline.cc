#include "import/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>

#include "base/worker_threads.h"

namespace tlparse {

namespace {
// Windows in flight, with one or two threads and for each one more. Enough that a stage that falls
// behind for a moment does not stop the others.
constexpr int kSlots = 6;
constexpr int kSlotsOfThread = 4;
// What each takes, about, with ordinary records.
constexpr std::size_t kOrdinaryBytes = 8 << 20;
// Batches for the rows of a file's end. Not of those slots: the reader may hold all of them for the
// next file.
constexpr int kSpareSlots = 2;
// Windows with large records wait for those before them once these take so much more than ordinary
// ones: to be read, and to be typed, since a small record may become many rows.
constexpr std::size_t kMostExcessBytes = std::size_t{kSlots} * kOrdinaryBytes;
constexpr std::size_t kExcessBytesOfThread = 24 << 20;  // and for each thread beyond two
}  // namespace

Pipeline::Pipeline(TypingStage& typing, BatchWriter& writer, const TableSet& tables,
                   ReadShared& shared, const Options& options)
    : typing_(typing),
      writer_(writer),
      settler_(shared),
      shared_(shared),
      times_(options.times),
      threads_(options.threads > 0 ? options.threads : AvailableCores()),
      most_excess_bytes_(kMostExcessBytes + kExcessBytesOfThread * static_cast<std::size_t>(
                                                                       std::max(0, threads_ - 2))),
      slot_count_(static_cast<std::size_t>(kSlots + kSlotsOfThread * std::max(0, threads_ - 2))) {
  for (std::size_t slot = 0; slot < slot_count_; ++slot)
    free_.push_back(std::make_unique<Slot>(tables, false));
  for (int slot = 0; slot < kSpareSlots; ++slot)
    spare_.push_back(std::make_unique<Slot>(tables, true));
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
    if (RunStage(lock, tools)) continue;
    const bool is_idle = !is_reading_ && !is_typing_ && !is_writing_;
    if (is_idle && is_all_added_) break;
    changed_.wait(lock);
  }
  changed_.notify_all();
  freed_.notify_all();
}

bool Pipeline::RunStage(Lock& lock, Tools& tools) {
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

// Before a step one thread is woken for what else can be done by now; after it this thread looks
// for the next step itself, and wakes one for a second.
template <typename Step>
void Pipeline::Unlocked(Lock& lock, Stage stage, const PipelineFile* file, Step step) {
  lock.unlock();
  changed_.notify_one();
  std::optional<Error> error;
  try {
    const StageTimer timer(times_, stage);
    if (Result<void> done = step(); !done) error = std::move(done).error();
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
  Unlocked(lock, Stage::kReading, &files_[next_file_],
           [this, slot = Pop(free_)]() mutable { return Read(std::move(slot)); });
  is_all_read_ = next_file_ == files_.size();
  is_reading_ = false;
  changed_.notify_one();
}

void Pipeline::RunVerify(Lock& lock, Tools& tools) {
  SlotPointer slot = Pop(read_);
  Unlocked(lock, Stage::kVerifying, &files_[slot->file], [&]() -> Result<void> {
    tools.verifier.Verify(slot->window);
    tools.preparer.Prepare(slot->window, slot->prepared);
    return {};
  });
  Count(*slot);
  const std::uint64_t number = slot->number;
  verified_.emplace(number, std::move(slot));
  changed_.notify_one();
}

void Pipeline::RunType(Lock& lock) {
  is_typing_ = true;
  SlotPointer slot = std::move(verified_.begin()->second);
  verified_.erase(verified_.begin());
  const PipelineFile* const file = &files_[slot->file];
  Unlocked(lock, Stage::kTyping, file, [&] { return Type(std::move(slot)); });
  is_typing_ = false;
  changed_.notify_one();
}

void Pipeline::RunWrite(Lock& lock) {
  is_writing_ = true;
  SlotPointer slot = Pop(typed_);
  Unlocked(lock, Stage::kWriting, nullptr, [&] {
    const Result<void> inserted = writer_.Insert(slot->rows);
    slot->rows.Clear();
    slot->window.Clear();
    slot->prepared.clear();
    if (slot->prepared.capacity() > Window::kMostKeptRecords) slot->prepared.shrink_to_fit();
    return inserted;
  });
  is_writing_ = false;
  Free(std::move(slot));
  changed_.notify_one();
  freed_.notify_all();
}

void Pipeline::RunAfterReading(Lock& lock) {
  is_reading_ = true;
  Unlocked(lock, Stage::kReading, nullptr, [this] { return AfterReading(); });
  is_all_added_ = true;
  is_reading_ = false;
  changed_.notify_one();
}

std::size_t Pipeline::Slot::ExcessBytes() const {
  // Verifying copies most payloads of a window into its arena.
  const std::size_t held = window.bytes.capacity() +
                           std::max(window.arena.allocated_bytes(), window.bytes.size()) +
                           window.records.capacity() * sizeof(LogRecord) +
                           prepared.capacity() * sizeof(PreparedRecord) + rows.allocated_bytes();
  return held > kOrdinaryBytes ? held - kOrdinaryBytes : 0;
}

void Pipeline::Count(Slot& slot) {
  excess_bytes_ -= slot.counted_bytes;
  slot.counted_bytes = slot.ExcessBytes();
  excess_bytes_ += slot.counted_bytes;
}

void Pipeline::Free(SlotPointer slot) {
  excess_bytes_ -= slot->counted_bytes;
  slot->counted_bytes = 0;
  (slot->is_spare ? spare_ : free_).push_back(std::move(slot));
}

bool Pipeline::HasRoom() const {
  return free_.size() == slot_count_ || excess_bytes_ < most_excess_bytes_;
}

Result<void> Pipeline::Read(SlotPointer slot) {
  PipelineFile& file = files_[next_file_];
  if (reader_ == nullptr) {
    if (file.input == nullptr) {
      ASSIGN_OR_RETURN(file.input, OpenInput(file.info.path));
    }
    reader_ = std::make_unique<RecordReader>(std::move(file.input));
  }
  slot->result.reset();
  slot->file = next_file_;
  slot->number = window_count_++;
  const bool has_window = reader_->Fill(slot->window);
  slot->bytes_done = bytes_before_ + reader_->input().compressed_bytes_read();
  if (!has_window || slot->window.ends_file) {
    slot->result = FileResult{reader_->bytes_read(), 0, std::string(reader_->input().compression()),
                              reader_->ContentHash()};
    bytes_before_ = slot->bytes_done;
    reader_.reset();
    ++next_file_;
  }
  Push(read_, std::move(slot));
  return {};
}

Result<void> Pipeline::AfterReading() {
  if (!hooks_->after_reading) return {};
  return hooks_->after_reading([this](const std::function<void(RowBatch&)>& fill) {
    SlotPointer slot = Await(free_);
    if (slot == nullptr) return false;
    fill(slot->rows);
    Push(typed_, std::move(slot));
    return true;
  });
}

Result<void> Pipeline::Type(SlotPointer slot) {
  RETURN_IF_ERROR(settler_.Settle(slot->window));
  if (slot->result) slot->result->line_count = settler_.line_count();
  {
    const Lock lock(mutex_);
    ++settled_count_;
  }
  changed_.notify_one();
  const FileInfo& file = files_[slot->file].info;
  if (typed_file_ != slot->file) {
    typing_.BeginFile(file);
    typed_file_ = slot->file;
  }
  RETURN_IF_ERROR(typing_.Type(slot->window, slot->prepared, slot->rows));
  const std::int64_t bytes_done = slot->bytes_done;
  if (slot->result) RETURN_IF_ERROR(EndFile(slot));
  if (hooks_->on_progress) hooks_->on_progress({bytes_done, typing_.record_count(), file.path});
  Push(typed_, std::move(slot));
  return {};
}

Result<void> Pipeline::EndFile(SlotPointer& slot) {
  const FileResult result = *slot->result;
  return typing_.EndFile(result, slot->rows, [&]() -> RowBatch* {
    Push(typed_, std::move(slot));
    slot = Await(spare_);
    return slot == nullptr ? nullptr : &slot->rows;
  });
}

Pipeline::SlotPointer Pipeline::Pop(Queue& queue) {
  SlotPointer slot = std::move(queue.front());
  queue.pop_front();
  return slot;
}

void Pipeline::Push(Queue& queue, SlotPointer slot) {
  {
    const Lock lock(mutex_);
    Count(*slot);
    queue.push_back(std::move(slot));
  }
  changed_.notify_one();
  freed_.notify_all();
}

Pipeline::SlotPointer Pipeline::Await(Queue& queue) {
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

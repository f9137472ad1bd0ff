#include "import/pipeline.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <new>
#include <thread>

namespace tlparse {

namespace {
// Windows in flight. Enough that a stage that falls behind for a moment does not stop the others;
// each takes about 8 MB.
constexpr int kSlots = 6;
// Batches for the rows of a file's end. Not of those slots: the reader may hold all of them for the
// next file.
constexpr int kSpareSlots = 2;
// Windows with large records wait for those before them once so much is in flight: about what the
// slots take with ordinary records.
constexpr std::size_t kMostBytesInFlight = std::size_t{kSlots} * (8 << 20);
}  // namespace

Pipeline::Pipeline(TypingStage& typing, BatchWriter& writer, const TableSet& tables,
                   RecordReader::Shared& shared)
    : typing_(typing), writer_(writer), shared_(shared) {
  for (int slot = 0; slot < kSlots; ++slot) free_.push_back(std::make_unique<Slot>(tables, false));
  for (int slot = 0; slot < kSpareSlots; ++slot)
    spare_.push_back(std::make_unique<Slot>(tables, true));
}

Result<void> Pipeline::Run(std::vector<PipelineFile> files, const Hooks& hooks) {
  files_ = std::move(files);
  hooks_ = &hooks;
  // Two at least: a thread that waits for a slot needs another one to empty it.
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 2U, 3U);
  std::vector<std::thread> workers;
  for (unsigned i = 1; i < threads; ++i) {
    workers.emplace_back([this] {
      pthread_setname_np(pthread_self(), "tlparse-ingest");  // for tools that show threads
      Work();
    });
  }
  Work();
  for (std::thread& worker : workers) worker.join();
  if (error_) return tl::unexpected<Error>(std::move(*error_));
  return {};
}

void Pipeline::Work() {
  Lock lock(mutex_);
  while (!error_) {
    if (RunStage(lock)) continue;
    const bool is_idle = !is_reading_ && !is_typing_ && !is_writing_;
    if (is_idle && is_all_read_) break;
    changed_.wait(lock);
  }
  changed_.notify_all();
}

bool Pipeline::RunStage(Lock& lock) {
  if (!is_writing_ && !typed_.empty()) {
    RunWrite(lock);
  } else if (!is_typing_ && !read_.empty()) {
    RunType(lock);
  } else if (!is_reading_ && !is_all_read_ && !free_.empty() && HasRoom()) {
    RunRead(lock);
  } else {
    return false;
  }
  return true;
}

template <typename Step>
void Pipeline::Unlocked(Lock& lock, const PipelineFile* file, Step step) {
  lock.unlock();
  std::optional<Error> error;
  try {
    if (Result<void> done = step(); !done) error = std::move(done).error();
  } catch (const std::bad_alloc&) {
    error = Error{ErrorCode::kIo,
                  file == nullptr
                      ? std::string("not enough memory for the log's records")
                      : fmt::format("not enough memory for the records of '{}'", file->info.path)};
  }
  lock.lock();
  if (error && !error_) error_ = std::move(error);
}

void Pipeline::RunRead(Lock& lock) {
  is_reading_ = true;
  if (next_file_ < files_.size()) {
    Unlocked(lock, &files_[next_file_],
             [this, slot = Pop(free_)]() mutable { return Read(std::move(slot)); });
  } else {
    Unlocked(lock, nullptr, [this] { return AfterReading(); });
    is_all_read_ = true;
  }
  is_reading_ = false;
  changed_.notify_all();
}

void Pipeline::RunType(Lock& lock) {
  is_typing_ = true;
  SlotPointer slot = Pop(read_);
  const PipelineFile* const file = &files_[slot->file];
  Unlocked(lock, file, [&] { return Type(std::move(slot)); });
  is_typing_ = false;
  changed_.notify_all();
}

void Pipeline::RunWrite(Lock& lock) {
  is_writing_ = true;
  SlotPointer slot = Pop(typed_);
  Unlocked(lock, nullptr, [&] {
    const Result<void> inserted = writer_.Insert(slot->rows);
    slot->rows.Clear();
    slot->window.Clear();
    return inserted;
  });
  is_writing_ = false;
  Free(std::move(slot));
  changed_.notify_all();
}

std::size_t Pipeline::Slot::HeldBytes() const {
  return window.bytes.capacity() + window.arena.allocated_bytes() + rows.allocated_bytes();
}

void Pipeline::Count(Slot& slot) {
  in_flight_bytes_ -= slot.counted_bytes;
  slot.counted_bytes = slot.HeldBytes();
  in_flight_bytes_ += slot.counted_bytes;
}

void Pipeline::Free(SlotPointer slot) {
  in_flight_bytes_ -= slot->counted_bytes;
  slot->counted_bytes = 0;
  (slot->is_spare ? spare_ : free_).push_back(std::move(slot));
}

bool Pipeline::HasRoom() const {
  const bool is_empty = read_.empty() && typed_.empty() && !is_typing_ && !is_writing_;
  return is_empty || in_flight_bytes_ < kMostBytesInFlight;
}

Result<void> Pipeline::Read(SlotPointer slot) {
  PipelineFile& file = files_[next_file_];
  if (reader_ == nullptr) {
    if (file.input == nullptr) {
      ASSIGN_OR_RETURN(file.input, OpenInput(file.info.path));
    }
    reader_ = std::make_unique<RecordReader>(std::move(file.input), shared_);
  }
  slot->result.reset();
  slot->file = next_file_;
  ASSIGN_OR_RETURN(const bool has_window, reader_->Next(slot->window));
  slot->bytes_done = bytes_before_ + reader_->input().compressed_bytes_read();
  if (!has_window || slot->window.ends_file) {
    slot->result = FileResult{reader_->bytes_read(), reader_->line_count(),
                              std::string(reader_->input().compression()), reader_->ContentHash()};
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
  const FileInfo& file = files_[slot->file].info;
  if (typed_file_ != slot->file) {
    typing_.BeginFile(file);
    typed_file_ = slot->file;
  }
  RETURN_IF_ERROR(typing_.Type(slot->window, slot->rows));
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
  changed_.notify_all();
}

Pipeline::SlotPointer Pipeline::Await(Queue& queue) {
  Lock lock(mutex_);
  while (true) {
    if (error_) return nullptr;
    if (!queue.empty()) return Pop(queue);
    if (!is_writing_ && !typed_.empty()) {
      RunWrite(lock);
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace tlparse

#include "import/pipeline.h"

#include <fmt/format.h>
#include <pthread.h>

namespace tlparse {

namespace {
// Windows in flight. Enough that a stage that falls behind for a moment does not stop the others;
// each takes about 8 MB.
constexpr int kSlots = 6;
// Batches for the rows of a file's end. Not of those slots: the reader may hold all of them for the
// next file.
constexpr int kSpareSlots = 2;

// For tools that show threads.
void NameThread(const char* name) { pthread_setname_np(pthread_self(), name); }

}  // namespace

Pipeline::Pipeline(TypingStage& typing, BatchWriter& writer, const TableSet& tables,
                   RecordReader::Shared& shared)
    : typing_(typing), writer_(writer), shared_(shared) {
  for (int slot = 0; slot < kSlots; ++slot) free_.Push(std::make_unique<Slot>(tables, false));
  for (int slot = 0; slot < kSpareSlots; ++slot) spare_.Push(std::make_unique<Slot>(tables, true));
}

std::optional<Error> Pipeline::ReadFile(PipelineFile& file, std::size_t index,
                                        std::int64_t& bytes_before) {
  if (file.input == nullptr) {
    Result<std::unique_ptr<InputStream>> input = OpenInput(file.info.path);
    if (!input) return input.error();
    file.input = std::move(*input);
  }
  RecordReader reader(std::move(file.input), shared_);
  while (true) {
    std::optional<SlotPointer> slot = free_.Pop();
    if (!slot) return std::nullopt;  // closed: writing has failed
    Slot& window = **slot;
    window.result.reset();
    window.error.reset();
    window.file = index;
    Result<bool> next = reader.Next(window.window);
    if (!next) return next.error();
    window.bytes_done = bytes_before + reader.input().compressed_bytes_read();
    const bool ends = !*next || window.window.ends_file;
    if (ends) {
      window.result = FileResult{reader.bytes_read(), reader.line_count(),
                                 std::string(reader.input().compression()), reader.ContentHash()};
    }
    const std::int64_t bytes_done = window.bytes_done;
    read_.Push(std::move(*slot));
    if (ends) {
      bytes_before = bytes_done;
      return std::nullopt;
    }
  }
}

void Pipeline::Read(std::vector<PipelineFile>& files) {
  std::int64_t bytes_before = 0;
  for (std::size_t index = 0; index < files.size(); ++index) {
    std::optional<Error> error;
    try {
      error = ReadFile(files[index], index, bytes_before);
    } catch (const std::bad_alloc&) {
      error = Error{ErrorCode::kIo,
                    fmt::format("not enough memory for a record of '{}'", files[index].info.path)};
    }
    if (error) {
      std::optional<SlotPointer> slot = free_.Pop();
      if (slot) {
        (*slot)->error = std::move(error);
        read_.Push(std::move(*slot));
      }
      break;
    }
  }
  read_.Close();
}

void Pipeline::AfterReading(const Hooks& hooks) {
  if (!hooks.after_reading) return;
  const Result<void> done = hooks.after_reading([this](const std::function<void(RowBatch&)>& fill) {
    std::optional<SlotPointer> slot = free_.Pop();
    if (!slot) return false;
    fill((*slot)->rows);
    typed_.Push(std::move(*slot));
    return true;
  });
  if (!done) after_reading_error_ = done.error();
}

void Pipeline::Write() {
  while (std::optional<SlotPointer> slot = typed_.Pop()) {
    if (Result<void> inserted = writer_.Insert((*slot)->rows); !inserted) {
      {
        const std::lock_guard lock(error_mutex_);
        write_error_ = inserted.error();
      }
      free_.Close();  // stops the reader, which ends the typing stage
      read_.Close();
      spare_.Close();
      return;
    }
    (*slot)->rows.Clear();
    ((*slot)->is_spare ? spare_ : free_).Push(std::move(*slot));
  }
}

Result<void> Pipeline::EndFile(SlotPointer& slot) {
  const FileResult result = *slot->result;
  return typing_.EndFile(result, slot->rows, [&]() -> RowBatch* {
    typed_.Push(std::move(slot));
    std::optional<SlotPointer> next = spare_.Pop();
    if (!next) return nullptr;
    slot = std::move(*next);
    return &slot->rows;
  });
}

Result<void> Pipeline::Run(std::vector<PipelineFile> files, const Hooks& hooks) {
  for (const PipelineFile& file : files) paths_.push_back(file.info.path);
  std::thread reader([&] {
    NameThread("tlparse-read");
    Read(files);
    AfterReading(hooks);
  });
  std::thread writer([&] {
    NameThread("tlparse-write");
    Write();
  });
  std::optional<Error> error;
  std::optional<std::size_t> current;
  while (std::optional<SlotPointer> slot = read_.Pop()) {
    Slot& window = **slot;
    if (window.error) {
      error = std::move(window.error);
      break;
    }
    if (current != window.file) {
      typing_.BeginFile(files[window.file].info);
      current = window.file;
    }
    Result<void> typed = typing_.Type(window.window, window.rows);
    const std::int64_t bytes_done = window.bytes_done;
    if (typed && window.result) typed = EndFile(*slot);
    if (!typed) {
      error = typed.error();
      break;
    }
    if (hooks.on_progress)
      hooks.on_progress({bytes_done, typing_.record_count(), paths_[*current]});
    typed_.Push(std::move(*slot));
  }
  if (error) free_.Close();  // nobody takes what is read: the reader must not wait for space
  reader.join();
  typed_.Close();
  writer.join();
  if (write_error_) return tl::unexpected<Error>(*write_error_);
  if (error) return tl::unexpected<Error>(*error);
  if (after_reading_error_) return tl::unexpected<Error>(*after_reading_error_);
  return {};
}

}  // namespace tlparse

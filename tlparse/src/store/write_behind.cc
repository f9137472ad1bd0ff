#include "store/write_behind.h"

#include <sqlite3.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <vector>

namespace tlparse {

namespace {

constexpr std::size_t kMostPendingBytes = 8 << 20;
// At least the largest page; SQLite's file system for Unix writes less than 128 kB at a time.
constexpr std::size_t kMostBlockBytes = 64 << 10;

// The pages on their way to one file. Writing and waiting by one thread at a time, that of SQLite.
class PageQueue {
 public:
  PageQueue(sqlite3_file* file, StepTimes* times) : file_(file), times_(times) {
    thread_ = std::thread([this] { Work(); });
  }
  ~PageQueue() {
    {
      const std::lock_guard lock(mutex_);
      is_closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  PageQueue(const PageQueue&) = delete;
  PageQueue& operator=(const PageQueue&) = delete;

  // The error of an earlier write, or SQLITE_OK.
  int Write(const void* bytes, std::size_t size, std::int64_t offset) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock,
                  [this] { return pending_bytes_ < kMostPendingBytes || error_ != SQLITE_OK; });
    if (error_ != SQLITE_OK) return error_;
    const bool continues = !blocks_.empty() && blocks_.back().End() == offset &&
                           blocks_.back().bytes.size() + size <= kMostBlockBytes;
    if (!continues) blocks_.push_back({offset, TakeSpare()});
    std::vector<char>& to = blocks_.back().bytes;
    const char* const from = static_cast<const char*>(bytes);
    to.insert(to.end(), from, from + size);
    pending_bytes_ += size;
    changed_.notify_all();
    return SQLITE_OK;
  }
  // Returns when what was written to these bytes of the file is there.
  int Await(std::int64_t offset, std::int64_t size) {
    std::unique_lock lock(mutex_);
    const auto touches = [&](const Block& block) {
      return block.offset < offset + size && offset < block.End();
    };
    changed_.wait(lock, [&] {
      return error_ != SQLITE_OK || (std::none_of(blocks_.begin(), blocks_.end(), touches) &&
                                     !(writing_ && touches(*writing_)));
    });
    return error_;
  }
  int AwaitAll() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return (blocks_.empty() && !writing_) || error_ != SQLITE_OK; });
    return error_;
  }

 private:
  struct Block {
    std::int64_t offset;
    std::vector<char> bytes;
    std::int64_t End() const { return offset + static_cast<std::int64_t>(bytes.size()); }
  };

  std::vector<char> TakeSpare() {
    std::vector<char> bytes;
    if (!spare_.empty()) {
      bytes = std::move(spare_.back());
      spare_.pop_back();
    }
    bytes.reserve(kMostBlockBytes);
    return bytes;
  }

  // After an error nothing more is written: the file is not wanted any more.
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !blocks_.empty() || is_closing_; });
      if (blocks_.empty() || error_ != SQLITE_OK) return;
      writing_ = std::move(blocks_.front());
      blocks_.pop_front();
      lock.unlock();
      int code = SQLITE_OK;
      {
        const StepTimer timer(times_, LoadStep::kStoring);
        code = file_->pMethods->xWrite(file_, writing_->bytes.data(),
                                       static_cast<int>(writing_->bytes.size()), writing_->offset);
      }
      lock.lock();
      if (code != SQLITE_OK) error_ = code;
      pending_bytes_ -= writing_->bytes.size();
      writing_->bytes.clear();
      spare_.push_back(std::move(writing_->bytes));
      writing_.reset();
      changed_.notify_all();
    }
  }

  sqlite3_file* const file_;
  StepTimes* const times_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<Block> blocks_;
  std::optional<Block> writing_;          // by the thread, which alone changes it
  std::vector<std::vector<char>> spare_;  // memory of blocks
  std::size_t pending_bytes_ = 0;
  int error_ = SQLITE_OK;
  bool is_closing_ = false;
  std::thread thread_;
};

// SQLite's object of an open file; the system's own object follows it in the same memory.
struct File : sqlite3_file {
  sqlite3_file* real;
  PageQueue* queue;  // null: written at once
};

File& Of(sqlite3_file* file) { return *static_cast<File*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Of(file).real; }
int AwaitAll(sqlite3_file* file) {
  return Of(file).queue == nullptr ? SQLITE_OK : Of(file).queue->AwaitAll();
}

int Close(sqlite3_file* file) {
  delete Of(file).queue;
  Of(file).queue = nullptr;
  return Real(file)->pMethods->xClose(Real(file));
}
int Read(sqlite3_file* file, void* bytes, int size, sqlite3_int64 offset) {
  if (Of(file).queue != nullptr) {
    if (const int code = Of(file).queue->Await(offset, size); code != SQLITE_OK) return code;
  }
  return Real(file)->pMethods->xRead(Real(file), bytes, size, offset);
}
int Write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  if (Of(file).queue == nullptr)
    return Real(file)->pMethods->xWrite(Real(file), bytes, size, offset);
  try {
    return Of(file).queue->Write(bytes, static_cast<std::size_t>(size), offset);
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  const int code = AwaitAll(file);
  return code != SQLITE_OK ? code : Real(file)->pMethods->xTruncate(Real(file), size);
}
int Sync(sqlite3_file* file, int flags) {
  const int code = AwaitAll(file);
  return code != SQLITE_OK ? code : Real(file)->pMethods->xSync(Real(file), flags);
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  const int code = AwaitAll(file);
  return code != SQLITE_OK ? code : Real(file)->pMethods->xFileSize(Real(file), size);
}
int Lock(sqlite3_file* file, int level) { return Real(file)->pMethods->xLock(Real(file), level); }
int Unlock(sqlite3_file* file, int level) {
  return Real(file)->pMethods->xUnlock(Real(file), level);
}
int CheckReservedLock(sqlite3_file* file, int* result) {
  return Real(file)->pMethods->xCheckReservedLock(Real(file), result);
}
int FileControl(sqlite3_file* file, int operation, void* argument) {
  // Of a COMMIT, also where synchronous is OFF.
  if (operation == SQLITE_FCNTL_SYNC) {
    if (const int code = AwaitAll(file); code != SQLITE_OK) return code;
  }
  // The system's own would make the file larger beside the queue.
  if (operation == SQLITE_FCNTL_SIZE_HINT) return SQLITE_OK;
  return Real(file)->pMethods->xFileControl(Real(file), operation, argument);
}
int SectorSize(sqlite3_file* file) { return Real(file)->pMethods->xSectorSize(Real(file)); }
int DeviceCharacteristics(sqlite3_file* file) {
  return Real(file)->pMethods->xDeviceCharacteristics(Real(file));
}

sqlite3_io_methods MakeMethods() {
  sqlite3_io_methods methods{};
  methods.iVersion = 1;
  methods.xClose = Close;
  methods.xRead = Read;
  methods.xWrite = Write;
  methods.xTruncate = Truncate;
  methods.xSync = Sync;
  methods.xFileSize = FileSize;
  methods.xLock = Lock;
  methods.xUnlock = Unlock;
  methods.xCheckReservedLock = CheckReservedLock;
  methods.xFileControl = FileControl;
  methods.xSectorSize = SectorSize;
  methods.xDeviceCharacteristics = DeviceCharacteristics;
  return methods;
}
const sqlite3_io_methods kMethods = MakeMethods();

sqlite3_vfs* SystemVfs() {
  static sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
  return system;
}

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  sqlite3_vfs* const system = SystemVfs();
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0)
    return system->xOpen(system, name, file, flags, out_flags);
  File& made = *new (static_cast<void*>(file)) File{};
  made.real = reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + sizeof(File));
  const int code = system->xOpen(system, name, made.real, flags, out_flags);
  // Without methods it is not closed; a system's file that could not be opened has none.
  if (made.real->pMethods != nullptr) made.pMethods = &kMethods;
  return code;
}

}  // namespace

const char* WriteBehindVfs() {
  static sqlite3_vfs vfs = [] {
    sqlite3_vfs copy = *SystemVfs();
    copy.pNext = nullptr;
    copy.szOsFile += static_cast<int>(sizeof(File));
    copy.zName = "tlparse_write_behind";
    copy.xOpen = Open;
    return copy;
  }();
  [[maybe_unused]] static const int registered = sqlite3_vfs_register(&vfs, 0);
  return vfs.zName;
}

Result<void> WriteBehind(Database& database, StepTimes* times) {
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file) !=
          SQLITE_OK ||
      file == nullptr || file->pMethods != &kMethods)
    return Fail(ErrorCode::kInternal, "the database was not opened to be written behind");
  try {
    Of(file).queue = new PageQueue(Real(file), times);
  } catch (const std::exception&) {
    // Nothing is lost but time.
  }
  return {};
}

}  // namespace tlparse

#include "base/input.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"

namespace tlparse {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;
constexpr std::size_t kFirstBufferBytes = 4 << 10;  // of bytes that may be copied once more

std::string SystemMessage(int error) { return std::generic_category().message(error); }

// A file descriptor with a buffer, of which the first bytes can be read without consuming them.
class RawFile {
 public:
  RawFile(std::string name, FileDescriptor descriptor, bool is_owned, std::int64_t total_bytes)
      : name_(std::move(name)),
        descriptor_(std::move(descriptor)),
        is_owned_(is_owned),
        total_bytes_(total_bytes) {}
  ~RawFile() {
    if (!is_owned_) descriptor_.Release();
  }
  // A file that may grow: opened for each read.
  explicit RawFile(std::string path)
      : name_(std::move(path)), is_owned_(true), total_bytes_(-1), grows_(true) {}
  RawFile(const RawFile&) = delete;  // owns a descriptor
  RawFile& operator=(const RawFile&) = delete;

  const std::string& name() const { return name_; }
  std::int64_t total_bytes() const { return total_bytes_; }
  std::int64_t bytes_read() const { return bytes_read_.load(std::memory_order_relaxed); }

  // Whether the file may still grow.
  bool grows() const { return grows_; }
  void EndGrowth() { grows_ = false; }
  void SetPath(const std::string& path) { name_ = path; }
  // Whether zero bytes at the present end are kept back while the file grows.
  void HoldZeros(bool holds) { holds_zeros_ = holds; }
  // An empty buffer gives its memory back.
  void ReleaseBuffer() {
    if (is_reopened_ && begin_ == end_) {
      std::vector<char>().swap(buffer_);
      begin_ = end_ = 0;
    }
  }

  // Reads past the buffer, which must be empty.
  Result<std::size_t> Read(char* buffer, std::size_t capacity) {
    if (is_reopened_) return ReadAgain(buffer, capacity);
    for (;;) {
      // Linux moves at most 2 GB at once and refuses more than the address space.
      const ssize_t count =
          ::read(descriptor_.get(), buffer, std::min<std::size_t>(capacity, 1 << 30));
      if (count >= 0) {
        bytes_read_.fetch_add(count, std::memory_order_relaxed);
        return static_cast<std::size_t>(count);
      }
      if (errno != EINTR) {
        return Fail(ErrorCode::kIo,
                    fmt::format("{}: cannot be read: {}", name_, SystemMessage(errno)));
      }
    }
  }

  std::string_view buffered() const { return {buffer_.data() + begin_, end_ - begin_}; }
  void Take(std::size_t count) { begin_ += count; }

  // At least `count` bytes in the buffer, fewer at the end of the file.
  Result<void> Fill(std::size_t count) {
    if (buffer_.size() < kBufferBytes)
      buffer_.resize(buffer_.empty() ? kFirstBufferBytes : kBufferBytes);
    if (end_ - begin_ >= count) return {};
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    while (end_ < count) {
      ASSIGN_OR_RETURN(const std::size_t more, Read(buffer_.data() + end_, buffer_.size() - end_));
      if (more == 0) break;
      end_ += more;
    }
    return {};
  }

 private:
  // The next bytes of a file that may grow; 0: none yet.
  Result<std::size_t> ReadAgain(char* buffer, std::size_t capacity) {
    if (!descriptor_.is_open() && !Reopen()) return 0;
    ssize_t count = -1;
    do {
      count = ::pread(descriptor_.get(), buffer, std::min<std::size_t>(capacity, 1 << 30),
                      bytes_read());
    } while (count < 0 && errno == EINTR);
    const int error = errno;
    while (grows_ && holds_zeros_ && count > 0 && buffer[count - 1] == '\0') --count;
    if (count <= 0) descriptor_.Close();
    if (count < 0 && error != ESTALE) {
      return Fail(ErrorCode::kIo,
                  fmt::format("{}: cannot be read: {}", name_, SystemMessage(error)));
    }
    const std::size_t taken = count < 0 ? 0 : static_cast<std::size_t>(count);
    bytes_read_.fetch_add(static_cast<std::int64_t>(taken), std::memory_order_relaxed);
    return taken;
  }
  // False: the file was removed, or another one has its name.
  bool Reopen() {
    descriptor_ = FileDescriptor(::open(name_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    struct stat status {};
    if (!descriptor_.is_open() || ::fstat(descriptor_.get(), &status) != 0) return false;
    const std::pair identity(status.st_dev, status.st_ino);
    if (!identity_) identity_ = identity;
    if (*identity_ == identity) return true;
    descriptor_.Close();
    return false;
  }

  std::string name_;
  FileDescriptor descriptor_;
  bool is_owned_;  // not standard input
  std::int64_t total_bytes_;
  bool grows_ = false;
  bool is_reopened_ = grows_;
  bool holds_zeros_ = false;
  std::optional<std::pair<dev_t, ino_t>> identity_;
  std::atomic<std::int64_t> bytes_read_ = 0;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

// What all streams have in common: the file, and that an error stays.
class FileStream : public InputStream {
 public:
  explicit FileStream(std::unique_ptr<RawFile> file) : file_(std::move(file)) {}

  Result<std::size_t> Read(char* buffer, std::size_t capacity) final {
    if (error_) return tl::unexpected<Error>(*error_);
    if (capacity == 0) return 0;
    Result<std::size_t> count = ReadSome(buffer, capacity);
    if (!count) error_ = count.error();
    return count;
  }
  std::int64_t compressed_bytes_read() const final { return file_->bytes_read(); }
  std::int64_t total_bytes() const final { return file_->total_bytes(); }
  void EndGrowth() final { file_->EndGrowth(); }
  void SetPath(const std::string& path) final { file_->SetPath(path); }

 protected:
  // As Read. An error must come alone: data decoded before it is returned first.
  virtual Result<std::size_t> ReadSome(char* buffer, std::size_t capacity) = 0;

  RawFile& file() { return *file_; }
  tl::unexpected<Error> Damaged(std::string_view what) const {
    return Fail(ErrorCode::kDamagedInput, fmt::format("{}: {} data {}; what came before is kept",
                                                      file_->name(), compression(), what));
  }
  // `trailer`: the most bytes that the end of the data takes, whose checksum does not fit.
  tl::unexpected<Error> WrongChecksum(std::size_t trailer) {
    if (Result<void> filled = file_->Fill(trailer + 1); !filled)
      return tl::unexpected<Error>(filled.error());
    if (file_->buffered().size() > trailer) return Damaged("has a wrong checksum");
    return Fail(ErrorCode::kDamagedInput,
                fmt::format("{}: the checksum of its {} data does not fit; all of it was decoded "
                            "and is kept, and some of it may be wrong",
                            file_->name(), compression()));
  }

 private:
  std::unique_ptr<RawFile> file_;
  std::optional<Error> error_;
};

class PlainStream final : public FileStream {
 public:
  using FileStream::FileStream;
  std::string_view compression() const override { return "none"; }

 private:
  Result<std::size_t> ReadSome(char* buffer, std::size_t capacity) override {
    const std::string_view first = file().buffered();
    if (first.empty()) return file().Read(buffer, capacity);
    const std::size_t count = std::min(capacity, first.size());
    std::memcpy(buffer, first.data(), count);
    file().Take(count);
    file().ReleaseBuffer();
    return count;
  }
};

// RFC 1952: members one after another; zeros behind the last one are padding of tapes.
class GzipStream final : public FileStream {
 public:
  explicit GzipStream(std::unique_ptr<RawFile> input) : FileStream(std::move(input)) {
    constexpr int kGzipWithLargestWindow = 16 + MAX_WBITS;
    is_ready_ = inflateInit2(&inflater_, kGzipWithLargestWindow) == Z_OK;
  }
  ~GzipStream() override { inflateEnd(&inflater_); }
  std::string_view compression() const override { return "gzip"; }

 private:
  Result<std::size_t> ReadSome(char* buffer, std::size_t capacity) override {
    if (!is_ready_) return Fail(ErrorCode::kInternal, file().name() + ": zlib cannot start");
    if (is_damaged_) return WhatIsDamaged();
    for (;;) {
      RETURN_IF_ERROR(file().Fill(1));
      const std::string_view input = file().buffered();
      if (is_between_members_) {
        ASSIGN_OR_RETURN(const bool has_next, StartNextMember());
        if (!has_next) return 0;
        continue;
      }
      inflater_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
      inflater_.avail_in = static_cast<uInt>(input.size());
      const uInt room = static_cast<uInt>(std::min<std::size_t>(capacity, 1 << 30));
      inflater_.next_out = reinterpret_cast<Bytef*>(buffer);
      inflater_.avail_out = room;
      const int status = inflate(&inflater_, Z_NO_FLUSH);
      file().Take(input.size() - inflater_.avail_in);
      const std::size_t count = room - inflater_.avail_out;
      if (status == Z_STREAM_END) {
        is_between_members_ = true;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        is_damaged_ = true;
        return count > 0 ? Result<std::size_t>(count) : WhatIsDamaged();
      }
      if (count > 0) return count;
      if (input.empty() && status != Z_STREAM_END && file().grows()) return 0;
      if (input.empty() && status != Z_STREAM_END) return Damaged("is cut");
    }
  }

  tl::unexpected<Error> WhatIsDamaged() {
    constexpr std::size_t kTrailerBytes = 8;
    const std::string_view problem = inflater_.msg == nullptr ? "" : inflater_.msg;
    const bool is_check = problem == "incorrect data check" || problem == "incorrect length check";
    return is_check ? WrongChecksum(kTrailerBytes) : Damaged("is damaged");
  }

  // Whether there is another member; the buffer holds at least a byte unless the file ends.
  Result<bool> StartNextMember() {
    RETURN_IF_ERROR(file().Fill(2));
    const std::string_view input = file().buffered();
    if (input.empty() || (input.size() < 2 && file().grows())) return false;
    if (input.substr(0, 2) == "\x1f\x8b") {
      inflateReset(&inflater_);
      is_between_members_ = false;
      return true;
    }
    const std::size_t padding = std::min(input.find_first_not_of('\0'), input.size());
    if (padding == 0) return Damaged("is followed by something else");
    file().Take(padding);
    return true;
  }

  z_stream inflater_{};
  bool is_ready_ = false;
  bool is_damaged_ = false;
  bool is_between_members_ = false;
};

// RFC 8878. The decoder forgets what it wrote in a call that ends in an error. So every call gets
// either no input, to empty the decoder, or at most the rest of one block (or of a header): then
// only the damaged block itself is lost.
class ZstdStream final : public FileStream {
 public:
  explicit ZstdStream(std::unique_ptr<RawFile> input)
      : FileStream(std::move(input)), decoder_(ZSTD_createDStream()) {
    if (decoder_ != nullptr) {
      ZSTD_DCtx_setParameter(decoder_, ZSTD_d_windowLogMax, kMaxWindowLog);
    }
  }
  ~ZstdStream() override { ZSTD_freeDStream(decoder_); }
  std::string_view compression() const override { return "zstd"; }

 private:
  // The decoder keeps a window of 2^27 bytes at most: what `zstd --long` uses and `zstd -d` takes.
  static constexpr int kMaxWindowLog = 27;
  static constexpr std::size_t kBlockHeaderBytes = 3;
  static constexpr std::size_t kFirstBytes = 5;  // of a frame: enough to know the header's length

  Result<std::size_t> ReadSome(char* buffer, std::size_t capacity) override {
    if (decoder_ == nullptr)
      return Fail(ErrorCode::kInternal, file().name() + ": zstd cannot start");
    ZSTD_outBuffer output{buffer, capacity, 0};
    while (output.pos == 0) {
      ZSTD_inBuffer input{nullptr, 0, 0};
      if (!may_hold_output_) {
        // The decoder requests a block and the header after it; it gets the block alone.
        const std::size_t wanted =
            wanted_ > kBlockHeaderBytes ? wanted_ - kBlockHeaderBytes : wanted_;
        RETURN_IF_ERROR(file().Fill(1));
        const std::string_view available = file().buffered();
        if (available.empty()) {
          if (is_frame_complete_ || file().grows()) return 0;
          return Damaged("is cut");
        }
        input = {available.data(), std::min(wanted, available.size()), 0};
      }
      const std::size_t status = ZSTD_decompressStream(decoder_, &output, &input);
      if (ZSTD_getErrorCode(status) == ZSTD_error_frameParameter_windowTooLarge) {
        return Damaged(fmt::format(
            "needs a window of more than {} MiB; decompress it first (zstd -d --long=31)",
            (1 << kMaxWindowLog) >> 20));
      }
      constexpr std::size_t kChecksumBytes = 4;
      if (ZSTD_getErrorCode(status) == ZSTD_error_checksum_wrong)
        return WrongChecksum(kChecksumBytes);
      if (ZSTD_isError(status)) {
        return Damaged(fmt::format("is damaged ({})", ZSTD_getErrorName(status)));
      }
      file().Take(input.pos);
      may_hold_output_ = output.pos == output.size;
      if (status == 0) {
        is_frame_complete_ = true;
        wanted_ = kFirstBytes;
      } else {
        if (input.pos > 0) is_frame_complete_ = false;
        wanted_ = status;
      }
    }
    return output.pos;
  }

  ZSTD_DStream* decoder_;
  std::size_t wanted_ = kFirstBytes;
  bool may_hold_output_ = false;
  bool is_frame_complete_ = true;
};

bool IsZstdMagic(std::string_view bytes) {
  if (bytes.size() < 4) return false;
  // A frame, or one of the 16 magics of frames to be skipped, which some compressors put first.
  return bytes.substr(0, 4) == "\x28\xb5\x2f\xfd" ||
         ((static_cast<unsigned char>(bytes[0]) & 0xf0) == 0x50 &&
          bytes.substr(1, 3) == "\x2a\x4d\x18");
}

constexpr std::size_t kMagicBytes = 4;

// By the first bytes.
Result<std::unique_ptr<InputStream>> MakeStream(std::unique_ptr<RawFile> file) {
  file->HoldZeros(true);
  RETURN_IF_ERROR(file->Fill(kMagicBytes));
  const std::string_view first = file->buffered();
  const bool is_plain = first.substr(0, 2) != "\x1f\x8b" && !IsZstdMagic(first);
  file->HoldZeros(is_plain);
  if (first.substr(0, 2) == "\x1f\x8b") return std::make_unique<GzipStream>(std::move(file));
  if (IsZstdMagic(first)) return std::make_unique<ZstdStream>(std::move(file));
  return std::make_unique<PlainStream>(std::move(file));
}

}  // namespace

Result<std::unique_ptr<InputStream>> OpenGrowingInput(const std::string& path) {
  auto file = std::make_unique<RawFile>(path);
  file->HoldZeros(true);
  RETURN_IF_ERROR(file->Fill(kMagicBytes));
  if (file->buffered().size() < kMagicBytes) return nullptr;
  return MakeStream(std::move(file));
}

Result<std::unique_ptr<InputStream>> OpenInput(const std::string& path) {
  const bool is_standard_input = path == "-";
  const std::string name = is_standard_input ? "standard input" : path;
  FileDescriptor descriptor(
      is_standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!descriptor.is_open()) {
    const ErrorCode code =
        errno == ENOENT || errno == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Fail(code, fmt::format("{}: cannot be opened: {}", name, SystemMessage(errno)));
  }
  struct stat status {};
  const bool is_regular = ::fstat(descriptor.get(), &status) == 0 && S_ISREG(status.st_mode);
  auto file = std::make_unique<RawFile>(name, std::move(descriptor), !is_standard_input,
                                        is_regular ? std::int64_t{status.st_size} : -1);
  if (S_ISDIR(status.st_mode)) {
    return Fail(ErrorCode::kIo, fmt::format("{}: is a directory, not a file", name));
  }
  return MakeStream(std::move(file));
}

}  // namespace tlparse

#include "log/payload_run.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/nameless_file.h"

namespace tlparse::payload_run {
namespace {

constexpr std::size_t kBlockEntries = 128;  // one page

tl::unexpected<Error> FileError(const std::string& directory, int error) {
  return Fail(ErrorCode::kIo,
              fmt::format("{}: cannot hold a temporary file of the payload table: {}", directory,
                          std::generic_category().message(error)));
}

}  // namespace

Result<void> TemporaryFile::Open(const std::string& directory) {
  directory_ = directory;
  Result<FileDescriptor> descriptor = OpenNamelessFile(directory);
  if (!descriptor) return FileError(directory_, errno);
  descriptor_ = std::move(*descriptor);
  return {};
}

Result<void> TemporaryFile::Flush() {
  const char* data = reinterpret_cast<const char*>(buffer_.data());
  std::size_t rest = buffer_.size() * sizeof(PackedEntry);
  while (rest > 0) {
    const ssize_t written = ::write(descriptor_.get(), data, rest);
    if (written < 0 && errno != EINTR) return FileError(directory_, errno);
    if (written > 0) {
      data += written;
      rest -= static_cast<std::size_t>(written);
    }
  }
  buffer_.clear();
  return {};
}

bool TemporaryFile::Read(std::size_t first, std::span<PackedEntry> entries) const {
  char* to = reinterpret_cast<char*>(entries.data());
  std::size_t rest = entries.size_bytes();
  auto offset = static_cast<off_t>(first * sizeof(PackedEntry));
  while (rest > 0) {
    const ssize_t count = ::pread(descriptor_.get(), to, rest, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    offset += count;
    rest -= static_cast<std::size_t>(count);
  }
  return true;
}

Error TemporaryFile::LastError() const { return FileError(directory_, errno).value(); }

Result<SortedRun> SortedRun::Make(TemporaryFile file, const Hasher& hash, bool is_existing) {
  SortedRun run(std::move(file), is_existing);
  run.block_starts_.reserve(run.size() / kBlockEntries + 1);
  Reader reader(run);
  for (std::size_t i = 0; i < run.size(); ++i) {
    const PackedEntry* const packed = reader.Next();
    if (packed == nullptr) return tl::unexpected<Error>(run.ReadError());
    run.filter_.Add(hash(packed->key));
    if (i % kBlockEntries == 0) run.block_starts_.push_back(packed->key.high);
  }
  return run;
}

bool SortedRun::Find(const Key& key, std::uint64_t hash, PackedEntry* found) const {
  if (!filter_.MayContain(hash)) return false;
  // From the last block that starts below the key's first half: with equal halves (digests may be
  // chosen) the key can be in any of several blocks, up to the last that does not start above.
  const auto first = std::lower_bound(block_starts_.begin(), block_starts_.end(), key.high);
  const auto last = std::upper_bound(first, block_starts_.end(), key.high);
  const auto end_block = static_cast<std::size_t>(last - block_starts_.begin());
  auto block = static_cast<std::size_t>(first - block_starts_.begin());
  if (block > 0) --block;
  std::array<PackedEntry, kBlockEntries> entries;
  for (; block < end_block; ++block) {
    const std::size_t count = std::min(kBlockEntries, size() - block * kBlockEntries);
    if (!file_.Read(block * kBlockEntries, std::span(entries).first(count))) return false;
    if (entries[count - 1].key < key) continue;
    const PackedEntry* const at = std::lower_bound(
        entries.data(), entries.data() + count, key,
        [](const PackedEntry& packed, const Key& wanted) { return packed.key < wanted; });
    if (at->key != key) return false;
    *found = *at;
    return true;
  }
  return false;
}

bool SortedRun::Reader::Fill() {
  constexpr std::size_t kBufferedEntries = 1024;
  buffer_.resize(std::min(kBufferedEntries, run_->size() - position_));
  at_ = 0;
  if (buffer_.empty() || run_->file_.Read(position_, buffer_)) return !buffer_.empty();
  buffer_.clear();
  return false;
}

}  // namespace tlparse::payload_run

#include "import/growing_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/file_descriptor.h"
#include "base/file_hash.h"

namespace tlparse {

namespace {

constexpr std::size_t kEndBytes = 64;
// This many bytes of a file show whether it is compressed.
constexpr std::int64_t kLeastBytes = 4;
// A large record that is written piece by piece is read again when it has grown by a part of itself,
// so that the bytes that are read stay in proportion to those that are written; or when the
// file has not grown for so long.
constexpr std::int64_t kQuietUs = 200'000;
constexpr std::int64_t kLargeRecordBytes = 1 << 20;

std::int64_t MtimeNs(const struct ::stat& status) {
  return status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

// The first and the last of the first `end` bytes of the file; empty: it cannot be read.
std::string EndsOf(const std::string& path, std::int64_t end) {
  const auto size = static_cast<std::size_t>(std::min<std::int64_t>(end, kEndBytes));
  std::string bytes(2 * size, '\0');
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.is_open() || ::pread(file.get(), bytes.data(), size, 0) < 0 ||
      ::pread(file.get(), bytes.data() + size, size, end - static_cast<off_t>(size)) < 0)
    return {};
  return bytes;
}

}  // namespace

FileInfo GrowingLog::Info() const {
  FileInfo info;
  info.path = found_.path;
  if (found_.rank) info.name_rank = *found_.rank;
  info.has_mtime = found_.file.empty();
  info.mtime_us = mtime_us_;
  return info;
}

LogChange GrowingLog::Look(std::int64_t now_us) {
  struct ::stat status {};
  if (::stat(found_.bytes_path().c_str(), &status) != 0) {
    if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE) return LogChange::kNone;
    return AfterDelay(LogChange::kGone, now_us);
  }
  if (!S_ISREG(status.st_mode)) return AfterDelay(LogChange::kGone, now_us);
  const bool has_other_size = status.st_size != seen_size_;
  const bool is_changed = has_other_size || MtimeNs(status) != seen_mtime_ns_;
  if (is_changed) {
    changed_at_us_ = now_us;
    if (is_seen_ && status.st_size > seen_size_) {
      grown_at_us_ = std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
    }
  }
  is_seen_ = true;
  seen_size_ = status.st_size;
  seen_mtime_ns_ = MtimeNs(status);
  mtime_us_ = seen_mtime_ns_ / 1000;
  if (!is_begun()) {
    suspected_.reset();
    if (is_ingested_ && !is_changed) return LogChange::kNone;
    is_ingested_ = false;
    return status.st_size >= kLeastBytes ? LogChange::kGrown : LogChange::kNone;
  }
  if (IsOtherFile(status)) return LogChange::kRewritten;
  const std::int64_t read = reader_->input().compressed_bytes_read();
  if (status.st_size < read) return AfterDelay(LogChange::kRewritten, now_us);
  suspected_.reset();
  if (is_changed && HasOtherBytes()) return LogChange::kRewritten;
  if (is_changed && !has_other_size && status.st_size == read && HasOtherContent())
    return LogChange::kRewritten;
  const bool is_quiet = now_us - changed_at_us_ >= kQuietUs;
  const std::int64_t added = status.st_size - read;
  const auto held = static_cast<std::int64_t>(reader_->held_bytes());
  const bool is_due = is_quiet || held < kLargeRecordBytes || added >= held / 2;
  return added > 0 && is_due ? LogChange::kGrown : LogChange::kNone;
}

// What may be an old view of a network file system counts when it lasts.
LogChange GrowingLog::AfterDelay(LogChange change, std::int64_t now_us) {
  if (suspected_ != change) {
    suspected_ = change;
    suspected_at_us_ = now_us;
  }
  return now_us - suspected_at_us_ >= kSettleUs ? change : LogChange::kNone;
}

bool GrowingLog::IsOtherFile(const struct ::stat& status) const {
  return static_cast<std::uint64_t>(status.st_dev) != device_ ||
         static_cast<std::uint64_t>(status.st_ino) != inode_;
}

bool GrowingLog::IsNow(const FoundLog& other) const {
  struct ::stat status {};
  return is_begun() && found_.file.empty() && other.file.empty() &&
         ::stat(other.path.c_str(), &status) == 0 && !IsOtherFile(status) &&
         (::stat(found_.path.c_str(), &status) != 0 || IsOtherFile(status));
}

void GrowingLog::Rename(const FoundLog& to) {
  found_ = to;
  suspected_.reset();
  reader_->SetPath(to.path);
}

// Rewritten with at least as many bytes, in the same file.
bool GrowingLog::HasOtherBytes() const {
  const std::string ends = EndsOf(found_.bytes_path(), reader_->input().compressed_bytes_read());
  return !ends_.empty() && !ends.empty() && ends != ends_;
}

// Of a file that was written to and has the same size, all of which was read.
bool GrowingLog::HasOtherContent() const {
  const Result<std::string> hash = HashFile(found_.bytes_path());
  return hash && *hash != reader_->ContentHash();
}

void GrowingLog::NoteEnds() {
  ends_ = EndsOf(found_.bytes_path(), reader_->input().compressed_bytes_read());
}

void GrowingLog::SetIngested() {
  (void)Look(0);
  is_ingested_ = has_rows = true;
}

bool GrowingLog::IsUnchanged() const {
  struct ::stat status {};
  if (::stat(found_.bytes_path().c_str(), &status) != 0 || status.st_size != seen_size_ ||
      MtimeNs(status) != seen_mtime_ns_)
    return false;
  return is_ingested_ || (is_begun() && !IsOtherFile(status) && !reader_->is_odd() &&
                          status.st_size == reader_->input().compressed_bytes_read());
}

Result<bool> GrowingLog::Begin(ReadShared& shared, bool may_grow) {
  struct ::stat status {};
  if (::stat(found_.bytes_path().c_str(), &status) == 0) {
    device_ = static_cast<std::uint64_t>(status.st_dev);
    inode_ = static_cast<std::uint64_t>(status.st_ino);
  }
  const std::string& path = found_.bytes_path();
  ASSIGN_OR_RETURN(std::unique_ptr<InputStream> input,
                   may_grow ? OpenGrowingInput(path) : OpenInput(path));
  if (input == nullptr) return false;
  reader_ = std::make_unique<RecordReader>(std::move(input));
  settler_.emplace(shared);
  is_growing_ = may_grow;
  return true;
}

Result<bool> GrowingLog::Next(Window& window, Tools& tools) {
  const bool has_records =
      is_growing_ ? reader_->FillWhole(window, &tools.whole) : reader_->Fill(window);
  if (!has_records) {
    if (is_growing_) NoteEnds();
    return false;
  }
  tools.verifier.Verify(window);
  RETURN_IF_ERROR(settler_->Settle(window));
  return true;
}

void GrowingLog::EndGrowth() {
  is_growing_ = false;
  reader_->EndGrowth();
}

void GrowingLog::Restart() {
  reader_.reset();
  state.reset();
  ends_.clear();
  is_ended_ = false;
  seen_size_ = 0;
  suspected_.reset();
}

}  // namespace tlparse

#include "log/record_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "log/window_cut.h"

namespace tlparse {

namespace {
constexpr std::size_t kWindowBytes = RecordReader::kWindowBytes;
}  // namespace

void Window::Clear() {
  bytes.set_size(0);
  if (bytes.capacity() > 4 * kWindowBytes) bytes.Release();
  arena.Clear();
  records.clear();
  if (records.capacity() > kMostKeptRecords) records.shrink_to_fit();
  problems.clear();
  ends_file = false;
  line_feeds = 0;
  input_error.reset();
  timeless_count = 0;
  last_time_us.reset();
  candidates.clear();
  repeats.clear();
}

RecordReader::RecordReader(std::unique_ptr<InputStream> input, std::size_t window_bytes,
                           std::size_t max_record_bytes)
    : input_(std::move(input)),
      window_bytes_(window_bytes),
      max_record_bytes_(max_record_bytes),
      hash_(XXH3_createState()) {
  XXH3_128bits_reset(hash_.get());
}

std::string RecordReader::ContentHash() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(hash_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

bool RecordReader::Fill(Window& window) {
  window.Clear();
  if (is_done_) return false;
  window.file_offset = window_offset_;
  window.end = ReadRecords(window, {});
  NoteOdd(window);
  Take(window);
  return true;
}

void RecordReader::Take(Window& window) {
  const std::string_view rest = window.bytes.view().substr(window.end);
  carry_.set_size(0);
  carry_.Append(rest);
  if (carry_.capacity() > 4 * kWindowBytes && carry_.size() < kWindowBytes) {
    ByteBuffer small;
    small.Append(carry_.view());
    carry_ = std::move(small);
  }
  window_offset_ += static_cast<std::int64_t>(window.end);
  is_done_ = window.ends_file = is_at_end_ && rest.empty();
  if (is_done_ && !input_error_.empty()) {
    window.input_error = {
        .code = ImportCode::kDamagedInput, .byte_offset = window_offset_, .message = input_error_};
  }
}

std::size_t RecordReader::ReadRecords(Window& window, const Growth& growth) {
  ByteBuffer& bytes = window.bytes;
  bytes.Append(carry_.view());
  std::size_t target = std::max(window_bytes_, bytes.size() + window_bytes_ / 2);
  bool is_dry = false;
  while (true) {
    bytes.Reserve(target);
    while (!is_at_end_ && bytes.size() < target) {
      Result<std::size_t> read = input_->Read(bytes.data() + bytes.size(), target - bytes.size());
      if (read && *read == 0 && growth.may_grow) {
        is_dry = true;
        break;
      }
      if (!read || *read == 0) {
        is_at_end_ = true;
        if (!read) input_error_ = read.error().message;
        break;
      }
      XXH3_128bits_update(hash_.get(), bytes.data() + bytes.size(), *read);
      bytes.set_size(bytes.size() + *read);
      bytes_read_ += static_cast<std::int64_t>(*read);
    }
    bytes.ZeroSlack();
    if (is_at_end_) return bytes.size();
    if (is_dry) return CutOfGrowing(window, growth.whole);
    if (const std::size_t cut = FindCut(bytes.view()).offset; cut != 0) return cut;
    if (bytes.size() >= max_record_bytes_) {
      window.problems.push_back(
          {.code = ImportCode::kLineTooLong,
           .line = 1,
           .byte_offset = window_offset_,
           .message =
               fmt::format("a record of more than {} bytes was cut here", max_record_bytes_)});
      return bytes.size();
    }
    target = std::min(max_record_bytes_, bytes.size() + bytes.size() / 2 + 1);
  }
}

}  // namespace tlparse

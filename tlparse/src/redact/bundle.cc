#include "redact/bundle.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zip.h>
#include <zlib.h>

#include <deque>
#include <memory>

#include "base/input.h"

namespace tlparse {
namespace {

constexpr std::int64_t kHeaderBytes = 300;  // of an entry, at most, and of its line in the manifest

struct ZipDiscard {
  void operator()(zip_t* zip) const { zip_discard(zip); }
};

// What an entry holds, from its beginning.
class EntryStream {
 public:
  explicit EntryStream(const BundleEntry& entry) : entry_(&entry) {}
  Result<void> Begin() {
    at_ = 0;
    if (entry_->path.empty()) return {};
    ASSIGN_OR_RETURN(input_, OpenInput(entry_->path));
    return {};
  }
  Result<std::size_t> Read(char* buffer, std::size_t capacity) {
    if (input_) return input_->Read(buffer, capacity);
    const std::size_t size = entry_->text.copy(buffer, capacity, at_);
    at_ += size;
    return size;
  }
  void End() { input_.reset(); }

 private:
  const BundleEntry* entry_;
  std::size_t at_ = 0;
  std::unique_ptr<InputStream> input_;
};

struct Sizes {
  std::int64_t bytes = 0, packed_bytes = 0;
};

Result<Sizes> SizesOf(const BundleEntry& entry) {
  constexpr std::size_t kPiece = 1 << 18;
  std::string in(kPiece, '\0'), out(kPiece, '\0');
  EntryStream stream(entry);
  RETURN_IF_ERROR(stream.Begin());
  z_stream deflater{};
  if (deflateInit(&deflater, Z_DEFAULT_COMPRESSION) != Z_OK)
    return Fail(ErrorCode::kIo, "no memory to compress with");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&deflater, &deflateEnd);
  Sizes sizes;
  for (bool is_at_end = false; !is_at_end;) {
    ASSIGN_OR_RETURN(const std::size_t size, stream.Read(in.data(), in.size()));
    is_at_end = size == 0;
    sizes.bytes += static_cast<std::int64_t>(size);
    deflater.next_in = reinterpret_cast<Bytef*>(in.data());
    deflater.avail_in = static_cast<uInt>(size);
    do {
      deflater.next_out = reinterpret_cast<Bytef*>(out.data());
      deflater.avail_out = static_cast<uInt>(out.size());
      deflate(&deflater, is_at_end ? Z_FINISH : Z_NO_FLUSH);
      sizes.packed_bytes += static_cast<std::int64_t>(out.size() - deflater.avail_out);
    } while (deflater.avail_out == 0);
  }
  return sizes;
}

// An entry as libzip reads it, when the zip file is closed.
zip_int64_t ReadEntry(void* stream, void* data, zip_uint64_t size, zip_source_cmd_t command) {
  auto& entry = *static_cast<EntryStream*>(stream);
  switch (command) {
    case ZIP_SOURCE_OPEN:
      return entry.Begin() ? 0 : -1;
    case ZIP_SOURCE_READ: {
      const Result<std::size_t> read =
          entry.Read(static_cast<char*>(data), static_cast<std::size_t>(size));
      return read ? static_cast<zip_int64_t>(*read) : -1;
    }
    case ZIP_SOURCE_CLOSE:
      entry.End();
      return 0;
    case ZIP_SOURCE_STAT:
      zip_stat_init(static_cast<zip_stat_t*>(data));
      return sizeof(zip_stat_t);
    case ZIP_SOURCE_ERROR: {
      zip_error_t error;
      zip_error_init(&error);
      zip_error_set(&error, ZIP_ER_READ, 0);
      return zip_error_to_data(&error, data, size);
    }
    case ZIP_SOURCE_FREE:
      return 0;
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                            ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, -1);
    default:
      return -1;
  }
}

bool AddEntry(zip_t* zip, const std::string& name, EntryStream& stream) {
  zip_source_t* const source = zip_source_function(zip, &ReadEntry, &stream);
  const zip_int64_t index =
      source == nullptr ? -1 : zip_file_add(zip, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0 && source != nullptr) zip_source_free(source);
  return index >= 0 &&
         zip_set_file_compression(zip, static_cast<zip_uint64_t>(index), ZIP_CM_DEFLATE, 0) == 0;
}

}  // namespace

Result<std::vector<BundledEntry>> WriteBundle(
    const std::vector<BundleEntry>& entries, const std::string& path, std::int64_t most_bytes,
    std::string (*manifest)(const std::vector<BundledEntry>&)) {
  if (access(path.c_str(), F_OK) == 0)
    return Fail(ErrorCode::kRefused, fmt::format("'{}' exists; give another name", path));
  std::deque<EntryStream> streams;  // read when the zip file is closed
  int code = 0;
  std::unique_ptr<zip_t, ZipDiscard> zip(zip_open(path.c_str(), ZIP_CREATE | ZIP_EXCL, &code));
  if (!zip) return Fail(ErrorCode::kIo, fmt::format("'{}' cannot be made", path));
  std::vector<BundledEntry> bundled;
  std::int64_t left = most_bytes - kHeaderBytes;
  bool is_added = true;
  for (const BundleEntry& entry : entries) {
    ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(entry));
    BundledEntry& one = bundled.emplace_back();
    one.name = entry.name;
    one.size_bytes = sizes.bytes;
    one.packed_bytes = sizes.packed_bytes;
    one.is_left_out = one.packed_bytes + kHeaderBytes > left;
    if (one.is_left_out) continue;
    left -= one.packed_bytes + kHeaderBytes;
    is_added = is_added && AddEntry(zip.get(), one.name, streams.emplace_back(entry));
  }
  const BundleEntry last{"MANIFEST.md", {}, manifest(bundled)};
  is_added = is_added && AddEntry(zip.get(), last.name, streams.emplace_back(last));
  if (!is_added || zip_close(zip.get()) != 0)
    return Fail(ErrorCode::kIo,
                fmt::format("'{}' cannot be written: {}", path, zip_strerror(zip.get())));
  (void)zip.release();
  return bundled;
}

}  // namespace tlparse

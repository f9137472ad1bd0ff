#include "redact/bundle.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zip.h>
#include <zlib.h>

#include <deque>
#include <memory>

#include "redact/log_file.h"

namespace tlparse {
namespace {

constexpr std::int64_t kHeaderBytes = 300;  // of an entry, at most, and of its line in the manifest

struct ZipDiscard {
  void operator()(zip_t* zip) const { zip_discard(zip); }
};

std::int64_t PackedBytes(const std::string& text) {
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::string packed(size, '\0');
  compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
            reinterpret_cast<const Bytef*>(text.data()), static_cast<uLong>(text.size()),
            Z_DEFAULT_COMPRESSION);
  return static_cast<std::int64_t>(size);
}

bool AddEntry(zip_t* zip, const std::string& name, const std::string& text) {
  zip_source_t* const source = zip_source_buffer(zip, text.data(), text.size(), 0);
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
  int code = 0;
  std::unique_ptr<zip_t, ZipDiscard> zip(zip_open(path.c_str(), ZIP_CREATE | ZIP_EXCL, &code));
  if (!zip) return Fail(ErrorCode::kIo, fmt::format("'{}' cannot be made", path));
  std::deque<std::string> texts;  // the zip file is written when it is closed
  std::vector<BundledEntry> bundled;
  std::int64_t left = most_bytes - kHeaderBytes;
  bool is_added = true;
  for (const BundleEntry& entry : entries) {
    std::string text = entry.text;
    if (!entry.path.empty()) {
      ASSIGN_OR_RETURN(text, redact::WholeFile(entry.path));
    }
    BundledEntry& one = bundled.emplace_back();
    one.name = entry.name;
    one.size_bytes = static_cast<std::int64_t>(text.size());
    one.packed_bytes = PackedBytes(text);
    one.is_left_out = one.packed_bytes + kHeaderBytes > left;
    if (one.is_left_out) continue;
    left -= one.packed_bytes + kHeaderBytes;
    is_added = is_added && AddEntry(zip.get(), one.name, texts.emplace_back(std::move(text)));
  }
  is_added = is_added && AddEntry(zip.get(), "MANIFEST.md", texts.emplace_back(manifest(bundled)));
  if (!is_added || zip_close(zip.get()) != 0)
    return Fail(ErrorCode::kIo,
                fmt::format("'{}' cannot be written: {}", path, zip_strerror(zip.get())));
  (void)zip.release();
  return bundled;
}

}  // namespace tlparse

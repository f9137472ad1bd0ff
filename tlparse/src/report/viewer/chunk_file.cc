#include "report/viewer/chunk_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/base64.h"

namespace tlparse {
namespace {

// Smaller ones are read sooner than they are unpacked, and are most of a small report.
constexpr std::size_t kPackedBytes = 32 << 10;
// Of the stream: three bytes make four letters, and only the last letters may be padding.
constexpr std::size_t kEncodedBytes = 48 << 10;

}  // namespace

Result<void> ChunkFile::Begin(std::string_view name) {
  std::string file_name(name);
  std::replace(file_name.begin(), file_name.end(), '/', '-');
  RETURN_IF_ERROR(file_.Open(data_, file_name + ".js"));
  file_.Append(fmt::format("tlparse_chunk(\"{}\",", name));
  return {};
}

Result<void> ChunkFile::Write(std::string_view name, std::string_view json) {
  if (json.size() < kPackedBytes) {
    RETURN_IF_ERROR(Begin(name));
    file_.Append(json);
    file_.Append(");\n");
    return file_.Close();
  }
  RETURN_IF_ERROR(Open(name));
  Append(json);
  return Close();
}

Result<void> ChunkFile::Open(std::string_view name) {
  RETURN_IF_ERROR(Begin(name));
  file_.Append('"');
  if (!body_) body_.emplace();
  return {};
}

void ChunkFile::Append(std::string_view json) {
  body_->Append(json);
  if (body_->size() >= kEncodedBytes) AppendPacked(body_->TakePart(), false);
}

void ChunkFile::AppendPacked(std::string_view bytes, bool is_last) {
  rest_ += bytes;
  const std::size_t size = is_last ? rest_.size() : rest_.size() / 3 * 3;
  for (std::size_t at = 0; at < size; at += kEncodedBytes)
    file_.Append(Base64(std::string_view(rest_).substr(at, std::min(kEncodedBytes, size - at))));
  rest_.erase(0, size);
}

Result<void> ChunkFile::Close() {
  AppendPacked(body_->Take(), true);
  file_.Append("\");\n");
  return file_.Close();
}

}  // namespace tlparse

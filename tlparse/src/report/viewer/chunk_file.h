// One chunk as a file of a page: data/<name>.js, a script that hands its document to the page,
// because fetch() is refused on file:// and <script src> is not. A small document stands there as
// it is, a larger one as base64 of what gzip made of it, a quarter of its size.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/gzip_body.h"
#include "base/result.h"
#include "report/output_directory.h"

namespace tlparse {

class ChunkFile {
 public:
  explicit ChunkFile(const Directory& data) : data_(data) {}

  Result<void> Write(std::string_view name, std::string_view json);

  // The same for a document that is never in memory as a whole: always packed.
  Result<void> Open(std::string_view name);
  void Append(std::string_view json);
  Result<void> Close();

 private:
  Result<void> Begin(std::string_view name);
  void AppendPacked(std::string_view bytes, bool is_last);

  const Directory& data_;
  FileWriter file_;
  std::optional<GzipBody> body_;  // once something is packed
  std::string rest_;              // of the stream: less than base64 writes at once
};

}  // namespace tlparse

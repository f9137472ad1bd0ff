// A JSON array with one entry a line, in the root of the output directory.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "report/output_directory.h"

namespace tlparse {

// The file is created with its first entry: without entries there is no file. `root` must outlive
// it.
class EntryFile {
 public:
  EntryFile(const Directory& root, std::string name) : root_(root), name_(std::move(name)) {}

  Result<void> Add(std::string_view entry) { return AddPieces({entry}); }
  Result<void> AddPieces(std::initializer_list<std::string_view> pieces) {
    if (!is_open_) RETURN_IF_ERROR(out_.Open(root_, name_));
    out_.Append(is_open_ ? ",\n" : "[\n");
    is_open_ = true;
    for (const std::string_view piece : pieces) out_.Append(piece);
    return {};
  }

  Result<void> Close() {
    if (!is_open_) return {};
    out_.Append("\n]");
    return out_.Close();
  }

 private:
  const Directory& root_;
  std::string name_;
  FileWriter out_;
  bool is_open_ = false;
};

}  // namespace tlparse

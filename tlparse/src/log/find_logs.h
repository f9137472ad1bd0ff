// Which files of a directory are structured traces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "log/import_code.h"

namespace tlparse {

struct FoundLog {
  std::string path;              // the argument, or the argument + "/" + path inside the directory
  std::optional<int> rank;       // RankFromFileName
  std::int64_t size_bytes = -1;  // on disk; -1 if unknown (pipes)
  std::string file = {};         // where its bytes are, if not at `path`

  const std::string& bytes_path() const { return file.empty() ? path : file; }
};

struct SkippedFile {
  std::string path;
  std::string reason;  // a short sentence without the path, for people
  // A regular file that was read and is no structured trace; it may be something else.
  bool is_other_file = false;
  // kDamagedInput (compressed data of which nothing could be read), kUnreadInput (it could not be
  // opened): what it holds is unknown.
  ImportCode code = ImportCode::kSkippedFile;
  static SkippedFile Unread(std::string path, const std::string& why) {
    return {std::move(path), "it cannot be read: " + why, false, ImportCode::kUnreadInput};
  }
  bool IsUnknown() const { return code != ImportCode::kSkippedFile; }
};

struct FoundLogs {
  std::vector<FoundLog> logs;
  std::vector<SkippedFile> skipped;
};

// Traces at `path`. A file (or "-", standard input) is returned without being read. A directory is
// searched with its subdirectories: a file counts if its name is one that PyTorch gives
// (torch/_logging/_internal.py) or, whatever its name, if the first 64 kB (after gzip or zstd) hold
// the header line of a record. Symbolic links are followed; a directory or file that was already
// reached by another path is not entered twice, and below `path` no output directory of tlparse is
// entered. Order: rank (unranked last), then path. kNotFound or kIo if `path` itself cannot be read;
// files and directories below it that cannot be read are `skipped`.
Result<FoundLogs> FindLogs(const std::string& path);

// The N of `dedicated_log_torch_trace_rank_<N>_<anything>.log` (PyTorch: 8 characters) or
// `dedicated_log_torch_trace_rank_<N>.log`, also with .gz or .zst; directories are ignored.
std::optional<int> RankFromFileName(std::string_view path);

// Whether the name is one of those above, or the same without a rank.
bool IsTraceFileName(std::string_view path);

// Whether `line` (without its line feed) is the header line of a record:
// ^(?:\[rank\d+\]:)?([VIWEC])(\d{4}) (\d\d:\d\d:\d\d)\.(\d{6}) +(\d+) (.+?):(\d+)\] (\{.*)$
bool IsTraceHeaderLine(std::string_view line);

// The trace in `directory` (searched as above) that was modified last; of equal ones the first.
// kNotFound if there is none.
Result<std::string> LatestLog(const std::string& directory);

}  // namespace tlparse

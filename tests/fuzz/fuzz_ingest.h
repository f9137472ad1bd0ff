// What the fuzz targets share that ingest what they are given.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "store/database.h"

namespace tlparse::fuzz {

inline void Require(bool is_true, std::string_view what) {
  if (is_true) return;
  std::fprintf(stderr, "broken: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

template <typename T>
T Value(Result<T> result) {
  if (!result) Require(false, result.error().message);
  return std::move(*result);
}

// A directory in memory where there is one, for the life of the process.
inline const std::string& Folder() {
  static const struct Directory {
    Directory() {
      const bool has_memory = ::access("/dev/shm", W_OK) == 0;
      path = has_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string();
      path += "/tlparse-fuzz-XXXXXX";
      Require(::mkdtemp(path.data()) != nullptr, "no temporary directory");
    }
    ~Directory() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  } directory;
  return directory.path;
}

inline std::string DatabasePath() { return Folder() + "/trace.db"; }

// SQLite finds nothing wrong, and no foreign key points nowhere.
inline void CheckIntegrity(Database& database) {
  Require(Value(database.QueryText("PRAGMA integrity_check")) == "ok", "integrity_check");
  const std::string orphan = Value(
      database.QueryText("SELECT \"table\" || ' row ' || coalesce(rowid, '?') || ' → ' || parent "
                         "FROM pragma_foreign_key_check"));
  Require(orphan.empty(), "foreign key: " + orphan);
}

}  // namespace tlparse::fuzz

// The reader of snapshots of the allocator, pickles and JSON, on any bytes: the ingest succeeds, SQLite
// finds nothing wrong with the database, and the allocations sum to the bytes that the snapshot says
// are alive at the peak and at the end.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "import/importer.h"
#include "inputs/find_inputs.h"
#include "tests/fuzz/fuzz_ingest.h"

namespace {

using tlparse::Database;
using tlparse::fuzz::CheckIntegrity;
using tlparse::fuzz::DatabasePath;
using tlparse::fuzz::Folder;
using tlparse::fuzz::Require;
using tlparse::fuzz::Value;

void CheckSums(Database& database) {
  constexpr std::string_view kUnequal =
      "SELECT count(*) FROM (SELECT s.peak_bytes, s.end_bytes, coalesce(sum(a.size_bytes) FILTER "
      "(WHERE coalesce(a.alloc_ordinal, -1) <= s.peak_ordinal AND (a.free_ordinal IS NULL OR "
      "a.free_ordinal > s.peak_ordinal)), 0) AS at_peak, coalesce(sum(a.size_bytes) FILTER (WHERE "
      "a.free_ordinal IS NULL), 0) AS at_end FROM memory_snapshot_row s LEFT JOIN "
      "memory_allocation_row a ON a.snapshot_id = s.id GROUP BY s.id) "
      "WHERE peak_bytes <> at_peak OR end_bytes <> at_end";
  Require(Value(database.QueryInt(std::string(kUnequal))) == 0, "the allocations sum to the peak");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string path = Folder() + "/snapshot.pickle";
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  tlparse::ImportOptions options;
  options.database_path = DatabasePath();
  options.run_name = "fuzz";
  options.runtime_inputs = {
      {path, tlparse::InputKind::kMemorySnapshot, static_cast<std::int64_t>(size)}};
  const auto summary = tlparse::ImportLogs({}, {}, options);
  Require(summary.has_value(), summary ? std::string_view() : summary.error().message);
  Database database = Value(Database::Open(DatabasePath(), Database::Mode::kReadOnly));
  CheckIntegrity(database);
  CheckSums(database);
  return 0;
}

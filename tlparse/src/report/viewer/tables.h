// The SQL behind each chunk of the viewer: schemas/sql/viewer/<chunk>.sql, embedded at build time.
//
// A file holds one query per table, each below a line "-- table: <name>". Columns before the one
// named | are numbers, those after it texts. Before each query stand the parts of common.sql that it
// names. A table without a query holds the frames of the stacks that the tables above it name.
// Queries may use
//   :run            the run that is shown        run_process   its processes (a column of ids)
//   :origin         its earliest time, µs        run_compile   their compiles
//                                                shown_record  records
//   :first, :last   ids that the chunk's name gives
//   :first_record, :last_record   range of the records of the compiles or process :first … :last
//   :is_mixed       0: the range has records of process :first only; 1: maybe of others too
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tlparse {

// How the part of a chunk's name after the slash becomes :first and :last.
enum class ChunkRange {
  kNone,      // no such part
  kItem,      // an id; :first = :last = id, or the block of the layout that begins there
  kCompiles,  // the same, and the records of these compiles
  kProcess,   // an id, and the records of this process
  kPer1024,   // n: ids n·1024 … n·1024+1023
  kPer4096,
};

struct ViewerTable {
  std::string name;
  std::string sql;  // empty: the frames
};

struct ViewerChunkSpec {
  std::string_view name;
  ChunkRange range;
  std::vector<ViewerTable> tables;
};

// All chunks but texts and findings.
std::span<const ViewerChunkSpec> ViewerChunkSpecs();

// As embedded: the chunk's name and the whole file.
struct ViewerScript {
  std::string_view name;
  std::string_view text;
};
std::span<const ViewerScript> ViewerScripts();

}  // namespace tlparse

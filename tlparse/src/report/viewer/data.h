// The viewer's data, read from the SQL views. A chunk is one document that the page loads when it
// needs it; its name identifies it, and the document is the same in tl_out/data/ and from
// `tlparse serve`:
//
//   index              the run, its files and processes, counts, where the other chunks begin
//   compiles           one row per compile, and the stacks they were called from
//   problems           failures, graph breaks, recompiles
//   findings           what is wrong with the latest launch and why; how its ranks compare; which of
//                      their compiles are the same
//   graphs, kernels    one row per graph; names of kernels, for the search
//   compile/<id>       records, graphs' texts, metrics, … of compiles <id> and following (see `block`)
//   process/<id>       records of one process that belong to no compile; none if <id> is 0
//   guards/<id>        guard trees, by content
//   provenance/<id>    kernels, nodes and source lines, by content
//   cache, sets        cache lookups; which components make up a key
//   components/<n>     components n·4096 … n·4096+4095: name, hash, value
//   schedules          collective schedules and execution orders of all ranks
//   events/<id>        Chromium events of one process; none if <id> is 0
//   args/<n>           arguments of the events whose record is n·1024 … n·1024+1023
//   import_log/<n>     rows n·4096 … n·4096+4095 of the import log
//   torch_log/<n>      lines n·4096 … n·4096+4095 of texts of TORCH_LOGS
//   collectives        what ranks issued, rank by sequence number
//   cost/<id>          where the time that one profile measured went
//   slices/<id>        what one profile saw in time
//   memory/<id>        what was alive over the time of one recording of an allocator
//   diff/<pair>        what differs between two ranks, launches or runs; of a served page, between runs
//                      of two databases
//   time, time/<id>    where the time of compiles went: of all processes, by function; of one process,
//                      by compile. Of a process with events
//   trend, trend/<n>   compile time of functions over the runs of the database, of the n-th one served
//   export             what export and draft export recorded
//   text/<prefix>      payloads whose hash has this prefix
//   search/<n>         of files: what a search has to know of texts before it reads them
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "report/live_state.h"
#include "report/viewer/chunk.h"
#include "report/viewer/comparison_sides.h"
#include "report/viewer/tables.h"
#include "store/database.h"

namespace tlparse {

// How chunks of variable size are divided. A served page loads single compiles and texts; a file on
// disk has a group of them.
struct ViewerLayout {
  struct Block {
    std::string kind;  // compile, guards, provenance; process, events: one process each
    std::int64_t first_id = 0;
    std::int64_t last_id = 0;
  };
  std::vector<Block> blocks;          // empty: every item is its own chunk
  int text_prefix_digits = 32;        // texts whose hashes have the same prefix share a chunk
  std::int64_t text_alone_bytes = 0;  // from this size on a text is its own chunk
};

class ViewerData {
 public:
  // `database` must outlive the object and may not be used by another thread meanwhile. Without
  // `run_id` the latest run. kNotFound if there is no such run, or none at all.
  static Result<ViewerData> Open(Database& database, std::optional<std::int64_t> run_id,
                                 ViewerLayout layout = {});

  // The same run and layout through another connection to the same database, for another thread.
  ViewerData On(Database& database) const {
    ViewerData other = *this;
    other.database_ = &database;
    return other;
  }

  // JSON of the chunk; kNotFound if there is none of that name. `name` may be hostile.
  Result<std::string> Chunk(std::string_view name);

  // What a static page has: every chunk name but those of texts.
  Result<std::vector<std::string>> ChunkNames();

  // The databases that are served, its own among them, if they are several.
  void set_served(std::vector<NamedDatabase> served) { served_ = std::move(served); }

  // Findings are those of a job that is watched.
  void set_watched(WatchedJob job) { watched_ = std::move(job); }

  std::int64_t run_id() const { return run_id_; }
  const ViewerLayout& layout() const { return *layout_; }
  void set_layout(ViewerLayout layout) {
    layout_ = std::make_shared<const ViewerLayout>(std::move(layout));
  }

 private:
  ViewerData(Database& database, std::int64_t run_id, ViewerLayout layout)
      : database_(&database), run_id_(run_id) {
    set_layout(std::move(layout));
  }
  Result<void> FindLoneProcesses();
  Result<ViewerParameters> ParametersFor(const ViewerChunkSpec& spec, std::int64_t id) const;
  Result<void> AddLayout(ChunkWriter& writer);
  Result<void> AddServedRuns(ChunkWriter& writer);
  Result<void> AddArgumentNames(std::vector<std::string>& names);
  Result<std::string> TrendOf(std::string_view name, std::string_view part);
  Result<std::string> ProfileChunk(std::string_view name, std::string_view part);
  Result<std::string> FindingsOfLaunch(std::string_view name, std::string_view part);
  Result<std::string> TextChunk(std::string_view prefix);

  Database* database_;
  std::int64_t run_id_;
  std::optional<WatchedJob> watched_;
  std::vector<NamedDatabase> served_;
  std::int64_t origin_us_ = 0;  // times in chunks count from here
  std::shared_ptr<const ViewerLayout> layout_;
  // Processes whose records are contiguous, by id. Those that were added later are not included.
  std::shared_ptr<const std::unordered_set<std::int64_t>> lone_processes_;
};

}  // namespace tlparse

// The output directory: the files that existing tools read, written from SQL alone.
//
// For one log the tree is in the directory itself; for several, each log (each rank, if one file
// has several) has its own directory, and the aggregates are in the root:
//   compile_directory.json  raw.jsonl  chromium_events.json  failures_and_restarts.html  index.html
//   <compile directory>/<artifact>_<n>.<ext>  dump_file/…  payloads/<md5>.txt
// Names and shapes are those of the Rust program tlparse; docs/output.md lists the differences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/step_times.h"
#include "report/output_directory.h"

namespace tlparse {

class Database;

struct ReportOptions {
  // Generated code as .txt instead of a page.
  bool plain_text = false;
  // Export report: files only for exported programs and for problems of the export.
  bool export_report = false;
  // A page per compile directory: kernel → post-grad node → pre-grad node → source line.
  bool inductor_provenance = false;
  // chromium_events.json has the measurements of profiles as well as the compiler's events.
  bool with_profile = false;
  // rank_<N>/ even if there is only one log.
  bool rank_directories = false;
  // index.html is the viewer's page, with its data in data/.
  bool viewer = false;
  // Name of the plain index page in the root: another one where the viewer's page is index.html.
  std::string root_index_name = "index.html";
  // HTML that is put unescaped at the top of the index pages: never from a log.
  std::string custom_header_html;
  // The run to report; nothing: the latest of the database.
  std::optional<std::int64_t> run_id;
  // How many ranks there should be; nothing: as many as the inputs show.
  std::optional<std::int64_t> world_size;
  // Worker threads, each with a connection of its own; 0: one for each core.
  int threads = 0;
  // CPU time by step is added to it; may be null.
  StepTimes* times = nullptr;
};

struct ReportSummary {
  std::int64_t logs = 0;   // directories of logs or ranks
  std::int64_t files = 0;  // listed in the compile directories
  // Ranks for which no files are written, since one log holds too many. The page shows them.
  std::int64_t left_out = 0;
};

// Writes everything into `directory`, which is empty but for trace.db and the marker.
// `database` must be opened from a file (its path is opened again by the workers), be in no
// transaction and not be written meanwhile. kNotFound if it has no such run; kIo if a file cannot
// be written: files written before stay.
Result<ReportSummary> WriteReport(Database& database, const Directory& directory,
                                  const ReportOptions& options);

}  // namespace tlparse

// Shared by the reports of one participant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "report/memory_budget.h"
#include "report/output_directory.h"
#include "report/participant.h"
#include "report/report.h"
#include "report/tree/failures.h"
#include "report/tree/tree_plan.h"

namespace tlparse {

class Database;

// Files of the output directory by content, so that equal ones become links.
// Thread-safe.
class SharedContent {
 public:
  // Where a payload has been written in this form: a path relative to the output directory.
  std::optional<std::string> Find(std::int64_t payload_id, FileForm form) const;
  // Call when the file is complete. Only a limited number of files is kept, to bound the memory.
  void Add(std::int64_t payload_id, FileForm form, std::string path);

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::int64_t, FileForm>, std::string> paths_;
};

// Used by one thread.
struct ReportContext {
  Database& database;
  const Directory& root;       // the output directory
  const Directory& directory;  // the participant's, which may be the root
  const Participant& participant;
  const ReportOptions& options;
  SharedContent& shared;
  MemoryBudget& budget;
  const std::vector<FailureRow>& failures;  // of the run
};

// Each writes one file (or set of files) into context.directory. They may run at once.

// The files plan.files[first] … plan.files[end - 1] (`end` may be beyond the last).
Result<void> WriteArtifactFiles(const ReportContext& context, const TreePlan& plan,
                                std::size_t first, std::size_t end);
Result<void> WriteCompileDirectory(const ReportContext& context, const TreePlan& plan);
Result<void> WriteRawJsonl(const ReportContext& context, const TreePlan& plan);
Result<void> WriteFailures(const ReportContext& context, const TreePlan& plan);
Result<void> WriteProvenancePages(const ReportContext& context, const TreePlan& plan);
Result<void> WriteIndexPage(const ReportContext& context, const TreePlan& plan);

// <participant>/chromium_events.json: array of the events, one a line, in log order. Events that
// are not JSON are left out (import_log has them). With `all` also in one file in the root, with
// the rank as `pid`. With `with_profile` the measurements of its processes' profiles follow, and in
// the file in the root those of profiles of which no log's process is known.
Result<void> WriteChromiumEvents(Database& database, const Directory& root, std::int64_t run_id,
                                 const std::vector<Participant>& participants, bool all,
                                 bool with_profile);

}  // namespace tlparse

// The files that the records of one participant become, with their names and numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/memory_budget.h"
#include "report/participant.h"
#include "report/report.h"

namespace tlparse {

class Database;

// The content of a file.
enum class FileForm : std::uint8_t {
  kText,          // the payload, unchanged
  kJson,          // the payload, formatted; unchanged if it is not JSON
  kStackTraces,   // kJson, and a page <stem>_readable.html
  kCodePage,      // page: generated code
  kDumpPage,      // page: a dumped source file
  kGuardsPage,    // page: dynamo_guards
  kMetricsPage,   // page: compilation_metrics and its relatives
  kSymbolPage,    // page: what was assumed about a symbol (export)
  kPassDiffPage,  // page: what a pass of vLLM changed in the graph
  kPayload,       // payloads/<md5>.txt, not listed
  kLink,          // no file: a link that the log gave
};

struct PlannedFile {
  std::int64_t record_id = 0;
  std::int64_t payload_id = 0;  // 0: none
  std::int64_t before_id = 0;   // kPassDiffPage: the payload with the graph before the pass
  std::int32_t number = -1;     // as listed; -1: not listed
  std::uint32_t directory = 0;  // index in TreePlan::directories
  std::uint32_t key = 0;        // index in TreePlan::keys; only if listed
  FileForm form = FileForm::kText;
  bool is_artifact_of_record = false;  // its path is the record's payload_filename in raw.jsonl
  std::string name;                    // of the file; of the link
  std::string readable_name;           // kStackTraces: the page, "" if not JSON
};

// A compile id with its attempt as PyTorch prints it: "[0/0]", "[!1/2/0_1]", "[-/-]" (no ids).
struct PlannedKey {
  std::string key;
  std::vector<std::uint32_t> files;  // indices in TreePlan::files, in order of their numbers
};

struct TreePlan {
  // Below the participant's: "-_0_0_0", "dump_file", "payloads".
  std::vector<std::string> directories;
  std::vector<PlannedFile> files;  // by record, but what the peer drops comes last
  std::vector<PlannedKey> keys;    // in order of first appearance
  // Rows of `compile` of each directory, if provenance pages are written.
  std::vector<std::vector<std::int64_t>> compiles;
  std::vector<std::string> link_urls;  // of kLink files: PlannedFile::payload_id is the index

  // Relative to the participant's directory.
  std::string Path(const PlannedFile& file) const {
    return directories[file.directory] + "/" + file.name;
  }
  std::string ReadablePath(const PlannedFile& file) const {
    return directories[file.directory] + "/" + file.readable_name;
  }
};

// Numbers count the listed files from 0 in log order. Records that the peer drops (without a rank
// in a log with ranks, artifacts without a name or encoding) are kept here; they come after all
// others, so that the files that both write have the same names.
Result<TreePlan> PlanTree(Database& database, const Participant& participant,
                          const ReportOptions& options, MemoryBudget& budget);

// ❌, ✅, ❓ or nothing, by the name of a cache artifact.
std::string_view CacheSuffix(std::string_view path);

}  // namespace tlparse

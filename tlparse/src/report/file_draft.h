// The files that one record becomes in the tree: their form and the stem of their names.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"
#include "report/tree/lenient_json.h"
#include "report/tree/tree_plan.h"

namespace tlparse {

// Kinds of record keys by their files; kOther: only a file in payloads/, if it has a payload.
enum class FileRule : std::uint8_t {
  kOther,
  kText,
  kGraphDump,  // named by metadata.name
  kSplitChild,
  kGuards,
  kCode,
  kMetrics,
  kArtifact,
  kDump,
  kLink,
  kChromium,
  kSymbol,
};

FileRule RuleOfKind(std::string_view kind, const ReportOptions& options);

// The directory of a file.
enum class FilePlace : std::uint8_t { kCompile, kDumps, kPayloads };

// A file whose number is not known yet.
struct FileDraft {
  std::string stem;            // of kPayload files: the caller gives it (the payload's hash)
  std::string_view extension;  // with its dot; a literal
  std::string url;             // of kLink
  std::int64_t before_id = 0;  // as PlannedFile
  FileForm form = FileForm::kText;
  FilePlace place = FilePlace::kCompile;
  bool is_artifact_of_record = false;  // as PlannedFile
};

struct RecordDrafts {
  std::vector<FileDraft> files;  // in the order of their numbers
  bool is_lost = false;          // the peer drops such a record
};

// Called for all records of a participant in log order. Not thread-safe.
class FileDrafter {
 public:
  explicit FileDrafter(const ReportOptions& options) : plain_text_(options.plain_text) {}

  // Valid until the next call. A kPayload file is included even if the payload is empty.
  RecordDrafts& Draft(FileRule rule, std::string_view kind, std::string_view envelope,
                      std::int64_t payload_id);

 private:
  // Sets metadata_ to the value of the record key.
  void ParseMetadata(std::string_view kind, std::string_view envelope);
  std::string Member(std::string_view name) const;
  FileDraft& Add(FileForm form, std::string stem, std::string_view extension);
  void AddText(std::string stem);
  void AddPage(FileForm form, std::string stem);
  void AddPayload();
  void DraftArtifact(std::int64_t payload_id);
  void DraftGraphDump(std::int64_t payload_id);
  void DraftCode();
  void DraftDump();

  bool plain_text_;
  RecordDrafts drafts_;
  std::int64_t graph_before_id_ = 0;  // what the next pass of vLLM changes: a payload; 0: not known
  LenientParser parser_;
  simdjson::dom::element metadata_;
  bool has_metadata_ = false;
};

}  // namespace tlparse

// What is wrong with a run and why: one list, most urgent first. The answer of `tlparse findings`,
// which other answers and the page also use.
//
// A finding is one cause, reported once; symptoms of a cause are its evidence. Findings are made
// from rows of the database alone, for one launch; each earlier launch has one line on how it
// ended. Only what a log shows is claimed: a log that ends inside a compile, without a record or
// dump that names the end of the process, does not show whether the process died there or hung.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "enums/experiment.h"
#include "facts/compiles/change.h"
#include "facts/finding_kind.h"
#include "findings/looked_for.h"
#include "store/database.h"

namespace tlparse {

struct FindingPlace {
  std::string file;
  std::int64_t line = 0;
  std::string code;  // text of the line; empty: not in the log
};

// A row of the database: SELECT * FROM <table> WHERE id = <id>.
struct FindingRow {
  std::string table;
  std::int64_t id = 0;
};

// A line of a log, or an item of another input. `text` is quoted from the input: it is data, cut,
// without control characters.
struct EvidenceLine {
  FindingRow row;                           // of the finding, to which it belongs
  std::string file;                         // as `log_file.path` or `profile.path`
  std::optional<std::int64_t> line;         // nothing: of a file without lines
  std::optional<std::int64_t> byte_offset;  // of the record's header line, decompressed
  std::string record;  // kind of the record, or name of the artifact; empty: no record of a log
  std::string text;
};

// The last experiment that `tlparse try` made for a finding: a row of `experiment`.
struct FindingExperiment {
  std::int64_t id = 0;
  ExperimentVerdict verdict = ExperimentVerdict::kInconclusive;
  std::string reason;  // a sentence
  // It asked whether the finding names the right place or part, not whether a change cures it.
  bool is_check = false;
};

// Strings may be empty.
struct Finding {
  // Made from kind, function, file, line and the cause without numbers; the same cause in another
  // run has the same id.
  std::string id;
  FindingKind kind = FindingKind::kCompileFailed;
  FindingSeverity severity = FindingSeverity::kNote;
  std::string title;   // one sentence: who, what, where
  std::string detail;  // one or two more
  std::optional<std::int64_t> launch;
  // The ranks in which the cause lies, ascending; empty: all of them, or logs without rank.
  std::vector<std::int64_t> ranks;
  std::size_t rank_count = 0;  // participants concerned
  std::vector<std::string>
      roles;                      // of these ranks; empty: the job has one role, or it is not known
  std::vector<std::string> logs;  // names of participants without rank
  std::vector<std::string> compiles;  // labels
  std::optional<std::int64_t> since_us;
  std::optional<FindingPlace> place;
  std::string cause;
  std::string suggestion;  // what to try; "try" in JSON
  // What of it can be done from outside of the program, all of it together; empty: nothing.
  std::vector<Change> changes;
  std::optional<FindingExperiment> experiment;
  std::vector<Finding> evidence;
  std::string query;  // SQL that gives the rows behind title and detail
  // The first of those rows, those of `ranks` before others, and how many there are.
  std::vector<FindingRow> rows;
  std::size_t row_count = 0;
  bool has_more_rows = false;  // than row_count: they were not counted
  // It stands whether these ranks are meant to do equal work or not.
  bool needs_no_role = false;
  bool is_of_mismatch = false;  // kCrashed: collectives of several ranks did not match
  std::string ends_before;      // kStoppedFirst: what the others compiled then; empty: not known
  bool is_of_numbers = false;   // kGraphDivergence: the graphs differ in numbers alone
  bool is_of_caller =
      false;  // the function is of a library, `place` is where the user's code ran it
  // Recompiles: the program evaluates, or has several modules. Caught failures of compiles: a test called it.
  bool is_asked_for = true;
  // For the id, in addition to kind, place and cause.
  std::string function;
  // If asked for: AddLines.
  std::optional<std::vector<EvidenceLine>> lines;  // behind `rows`
  std::optional<std::vector<LookedFor>> looked_for;
};

struct FindingsOptions {
  std::string run;                     // empty: the latest
  std::optional<std::int64_t> launch;  // ordinal; nothing: the latest, and notes on earlier ones
  std::optional<std::int64_t> world_size;  // how many ranks there should be
};

// Memory is that of the answers about ranks. kNotFound: no such run or launch.
Result<std::vector<Finding>> FindFindings(Database& database, const FindingsOptions& options);

}  // namespace tlparse

// The lines of the inputs behind a finding: what its sentences stand on, for people who do not take
// a sentence for granted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "findings/findings.h"
#include "store/database.h"

namespace tlparse {

// A line of a log, or an item of another input. `text` is quoted from the input: it is data, cut to
// kMostEvidenceText bytes, without control characters.
struct EvidenceLine {
  FindingRow row;                           // of the finding, to which it belongs
  std::string file;                         // as `log_file.path` or `profile.path`
  std::optional<std::int64_t> line;         // nothing: of a file without lines
  std::optional<std::int64_t> byte_offset;  // of the record's header line, decompressed
  std::string record;  // kind of the record, or name of the artifact; empty: no record of a log
  std::string text;
};
inline constexpr std::size_t kMostEvidenceText = 200;

// At most two lines for each of `finding.rows`. Of a record with a payload the line that has most
// words of the finding.
Result<std::vector<EvidenceLine>> EvidenceOf(Database& database, const Finding& finding);

}  // namespace tlparse

// The JSON object of a header line: the kind of record, its rank and compile, and
// the MD5 of its payload.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/md5.h"

namespace tlparse {

// Members that are absent, null or of a wrong type are empty.
struct Envelope {
  std::string_view kind;  // the record key; empty: none or several candidates
  // metadata.name of an artifact; data() is null if absent (a name may be empty).
  std::string_view name;
  std::optional<std::int64_t> rank;      // in range (log/rank.h)
  std::optional<std::int64_t> bad_rank;  // out of range
  std::optional<std::int64_t> compiled_autograd_id;
  std::optional<std::int64_t> frame_id;
  std::optional<std::int64_t> frame_compile_id;
  std::optional<std::int64_t> attempt;
  std::string_view subgraph_name;
  std::optional<Md5Digest> payload_hash;
  bool names_payload = false;       // has_payload is present (payload_hash empty: not an MD5)
  bool has_stack = false;           // envelope member `stack`, a list
  bool has_metadata_stack = false;  // metadata.stack or metadata.user_stack
  bool has_several_keys = false;    // several candidates, and not exactly one of them is known
  // The candidates other than the known one, separated by ", ", at most a few. The only member that
  // owns its text.
  std::string unknown_members;
  bool is_trivial = false;  // the metadata is {}
  // The header is not strict JSON (NaN, lone surrogate, duplicate member, …): `metadata` is the
  // strict form of the record key's value.
  bool was_repaired = false;
  // Set also if no JSON path of SQLite can name the record key, and if the header has more than
  // kMostJsonValues values; otherwise empty.
  std::string_view metadata;
  std::string_view bad_member;  // name of the first member of a wrong type
};

// Parses header JSON. Single-threaded; one instance per thread.
class EnvelopeParser {
 public:
  // Whether this is a record key; called only for an envelope with several candidates.
  using IsRecordKey = bool (*)(std::string_view);
  explicit EnvelopeParser(IsRecordKey is_record_key = nullptr) : is_record_key_(is_record_key) {}

  // `json` must be readable for SIMDJSON_PADDING bytes after its end. The views of the result live
  // until the next call. Nothing if the text is not a JSON object even after repair, or has more
  // than kMostJsonValues values even without its large lists and objects.
  const Envelope* Parse(std::string_view json);

 private:
  bool Read(const simdjson::dom::element& root);
  bool ParseRepaired(std::string_view json);
  bool ParseLarge(std::string_view json);
  simdjson::dom::element ChooseKey();

  struct Candidate {
    std::string_view key;
    simdjson::dom::element value;
  };
  IsRecordKey is_record_key_;
  std::vector<Candidate> candidates_;  // for the record key
  simdjson::dom::parser parser_;
  Envelope envelope_;
  std::string repaired_;
  std::string large_metadata_;
};

}  // namespace tlparse

// What can be found out about a record without the records before it. The threads that verify a
// window do it, so that typing, which takes one window at a time, finds it done.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "artifacts/common/event_scan.h"
#include "store/hash128.h"

namespace tlparse {

struct CodeSummary;

// All of it may be missing, whatever the record: typing then does the same itself.
struct PreparedRecord {
  std::optional<ScannedEvent> event;    // its views live as long as the window
  std::optional<Hash128> content_hash;  // of the payload's normal form, of the family's kind
  std::shared_ptr<const CodeSummary> code;
};

// A verified record with a payload.
struct RecordToPrepare {
  std::string_view kind;
  std::string_view name;     // of an artifact
  std::string_view payload;  // without its tabs; empty: the payload is known already
  // The payload to be parsed as JSON: its lines may begin with the log's TABs.
  std::string_view payload_to_parse;
};

// Called by several threads at once; `buffer` is scratch.
using PrepareFunction = void (*)(const RecordToPrepare& record, std::string& buffer,
                                 PreparedRecord& prepared);

}  // namespace tlparse

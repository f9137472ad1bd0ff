// Makes strict JSON of what Python's json.dumps writes and of what damaged logs contain.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

// Valid JSON, accepted by SQLite and, unless it holds numbers beyond the range of 64-bit integers
// or doubles, by simdjson's DOM. The flags say what was changed.
struct RepairedJson {
  std::string text;
  bool had_nan = false;             // NaN, Infinity or -Infinity became null
  bool had_lone_surrogate = false;  // an escaped surrogate without partner became \ufffd
  bool had_duplicate = false;     // only the last of several members of one name was kept, in place
  bool had_invalid_utf8 = false;  // each invalid sequence became U+FFFD
  bool had_control = false;       // raw control characters (NUL too) in strings were escaped
};

// Numbers keep their text (any size, any precision). White space between tokens is dropped.
// Names are compared after decoding their escapes, so "a" and "\\u0061" are duplicates.
// Works in linear time (n log n in the number of an object's members) and without recursion;
// nesting deeper than 1,023, simdjson's limit, is an error. kBadJson with the byte position if the
// text is still not JSON (anything after the value, or an empty text, is such an error).
Result<RepairedJson> RepairJson(std::string_view text);

// Whether an object anywhere inside `element` (itself included) has two members of one name.
// Fast for the usual objects of up to 8 members. Recursion is bounded by the parser's depth limit.
bool HasDuplicateMembers(const simdjson::dom::element& element);

}  // namespace tlparse

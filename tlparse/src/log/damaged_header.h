// Damage in the text between records: header lines of which a byte was changed, so that
// ParseGlogPrefix finds no prefix in them, and noise.
#pragma once

#include <string_view>

#include "log/envelope.h"

namespace tlparse {

// Whether `line` (without its line end), which is no header line, was one: it has a member that
// only an envelope has, and beside it the date and time of a prefix or the end of one. A line of
// TORCH_LOGS is none: it has the same prefix, but a compile id or an artifact in brackets after it,
// or text.
bool IsDamagedHeader(std::string_view line, EnvelopeParser::IsRecordKey is_record_key);

// Whether `line`, at which a file ends without a line end, is the start of a header, cut off in its
// prefix.
bool IsStartOfHeader(std::string_view line);

// Whether `text` of a header holds bytes that no writer of the format puts there: control
// characters, or bytes that are not UTF-8.
bool HasForeignBytes(std::string_view text);

// Whether the text between records holds so many control characters that it is no output of a
// program: noise, or the zeros of a file that was not written to its end. Letters of another
// encoding, tabs, colours and progress bars are none.
bool IsNoise(std::string_view text);

// Whether the names differ in one character and nothing else. A digit does not count: names may be
// numbered.
bool DiffersInOneCharacter(std::string_view a, std::string_view b);

}  // namespace tlparse

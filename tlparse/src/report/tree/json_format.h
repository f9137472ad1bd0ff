// Changes the layout of JSON text.
#pragma once

#include <string>
#include <string_view>

namespace tlparse {

class FileWriter;

enum class JsonLayout {
  kPretty,  // two spaces per level, one value or member a line, "name": value; empty ones as {} and
            // []
  kCompact,  // no white space
};

// Appends `json` in `layout` and returns true; values, escapes, order and repetition of members
// are not changed. Returns false if `json` is not valid JSON or nested deeper than 128 (a part may
// have been appended). Linear time, no recursion. Below level 32 the pretty layout is
// compact, so that the text grows by a bounded factor.
// Bytes above 0x7f in strings are copied: `json` must be valid UTF-8.
bool AppendJson(std::string_view json, JsonLayout layout, FileWriter& out);
bool AppendJson(std::string_view json, JsonLayout layout, std::string& out);

// Whether AppendJson would return true.
bool IsJson(std::string_view json);

// Any text as a JSON string with its quotes; what is not UTF-8 becomes U+FFFD.
std::string JsonString(std::string_view text);

}  // namespace tlparse

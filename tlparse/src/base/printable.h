// Makes text of a log safe to print: no terminal control, no reversed reading direction.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tlparse {

// Control characters (escape sequences, bidirectional overrides) become visible escapes, so that a
// log cannot control the terminal. Newlines become ⏎ unless
// `keep_newlines`.
std::string Printable(std::string_view text, bool keep_newlines = false);

// JSON for a terminal: what Printable would escape is escaped as JSON does, so the value stays the
// same.
std::string PrintableJson(std::string_view json);

// One code point of valid UTF-8 at `at`, which is advanced behind it.
char32_t NextCodePoint(std::string_view text, std::size_t& at);

}  // namespace tlparse

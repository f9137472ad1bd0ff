// HTML of the plain pages. Everything that comes from a log goes through AppendHtmlText or Html.
#pragma once

#include <string>
#include <string_view>

namespace tlparse {

class FileWriter;

// Bytes that are not UTF-8 are kept by both (browsers show U+FFFD); NUL becomes U+FFFD.
// `text` with & < > escaped: for text between tags, not for attributes.
void AppendHtmlText(std::string_view text, FileWriter& out);
// With & < > " ' escaped: for quoted attribute values too.
std::string Html(std::string_view text);

// <!DOCTYPE html> … <body>, with our style and the title as heading. `title` is plain text.
void AppendPageStart(std::string_view title, FileWriter& out);
// The same with `header_html`, which the user supplied and must trust, above the heading.
void AppendPageStart(std::string_view title, std::string_view header_html, FileWriter& out);
void AppendPageEnd(FileWriter& out);

// A link to a file of the report; `path` is a relative path, not a URL.
std::string Link(std::string_view path, std::string_view text, std::string_view fragment = {});

// `text` in a <pre>, every line with its number as id ("L12") for links.
void AppendNumberedLines(std::string_view text, FileWriter& out);

}  // namespace tlparse

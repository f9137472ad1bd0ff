#include "report/tree/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/plain_bytes.h"
#include "report/output_directory.h"
#include "report/tree/file_name.h"

namespace tlparse {
namespace {

// Our pages need no script at all, so none is allowed: a mistake in escaping stays harmless.
constexpr std::string_view kHead =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";

constexpr std::string_view kStyle =
    "<style>\n"
    ":root{color-scheme:light dark}\n"
    "body{font:15px/1.45 system-ui,sans-serif;margin:1.5rem;max-width:75rem}\n"
    "h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}\n"
    "pre,code,.stack{font:13px/1.45 ui-monospace,monospace}\n"
    "table{border-collapse:collapse}th,td{border:1px solid #8886;padding:.25rem .6rem;"
    "text-align:left;vertical-align:top}th{background:#8882}\n"
    "td pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}\n"
    ".code{counter-reset:line}.code span{display:block;counter-increment:line}"
    ".code span:target{background:#fd06}\n"
    ".code span::before{content:counter(line);display:inline-block;"
    "width:4ch;text-align:right;margin-right:1.5ch;color:#888}\n"
    ".stack ul{list-style:none;padding-left:2ch;margin:0;border-left:1px solid #8884}\n"
    ".stack li{white-space:pre}.stack li ul{white-space:normal}.quiet{color:#888}\n"
    ".ok{color:#1a7f37}.restarted{color:#9a6700}.empty,.skipped,.unfinished{color:#888}"
    ".failed{color:#cf222e;font-weight:bold}\n"
    "</style>\n";

unsigned SpecialInText(const char* bytes) { return SpecialBytes<1, '&', '<', '>'>(bytes); }
unsigned SpecialInAttribute(const char* bytes) {
  return SpecialBytes<1, '&', '<', '>', '"', '\''>(bytes);
}

constexpr std::size_t kMaxEntityBytes = 6;

char* WriteEntity(char c, char* to) {
  const auto write = [to]<std::size_t kSize>(const char(&entity)[kSize]) {
    static_assert(kSize - 1 <= kMaxEntityBytes);
    std::memcpy(to, entity, kSize - 1);
    return to + kSize - 1;
  };
  switch (c) {
    case '&':
      return write("&amp;");
    case '<':
      return write("&lt;");
    case '>':
      return write("&gt;");
    case '"':
      return write("&quot;");
    case '\'':
      return write("&#39;");
    default:
      return write("\xEF\xBF\xBD");
  }
}

template <unsigned (*kSpecialBytes)(const char*), typename Append>
void EscapeInto(std::string_view text, Append append) {
  constexpr std::size_t kBuffer = 4096;
  std::array<char, kBuffer + kBlockBytes + kMaxEntityBytes> buffer;
  char* to = buffer.data();
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (CopyPlain<kSpecialBytes>(at, end, to)) to = WriteEntity(*at++, to);
    if (to < buffer.data() + kBuffer) continue;
    append({buffer.data(), to});
    to = buffer.data();
  }
  append({buffer.data(), to});
}

}  // namespace

void AppendHtmlText(std::string_view text, FileWriter& out) {
  EscapeInto<SpecialInText>(text, [&](std::string_view piece) { out.Append(piece); });
}

std::string Html(std::string_view text) {
  std::string result;
  EscapeInto<SpecialInAttribute>(text, [&](std::string_view piece) { result += piece; });
  return result;
}

void AppendPageStart(std::string_view title, FileWriter& out) { AppendPageStart(title, {}, out); }

void AppendPageStart(std::string_view title, std::string_view header_html, FileWriter& out) {
  // The user's own header may hold what it likes, scripts included.
  if (header_html.empty()) {
    out.Append(kHead);
  } else {
    out.Append("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
  }
  out.Append("<title>");
  AppendHtmlText(title, out);
  out.Append("</title>\n");
  out.Append(kStyle);
  out.Append("</head>\n<body>\n");
  out.Append(header_html);
  out.Append("<h1>");
  AppendHtmlText(title, out);
  out.Append("</h1>\n");
}

void AppendPageEnd(FileWriter& out) { out.Append("</body>\n</html>\n"); }

std::string Link(std::string_view path, std::string_view text, std::string_view fragment) {
  return fmt::format("<a href=\"{}{}{}\">{}</a>", UrlFromPath(path), fragment.empty() ? "" : "#",
                     UrlFromPath(fragment), Html(text));
}

void AppendNumberedLines(std::string_view text, FileWriter& out) {
  out.Append("<pre class=\"code\">");
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const fmt::format_int digits(number);
    out.Append("<span id=L");
    out.Append({digits.data(), digits.size()});
    out.Append('>');
    AppendHtmlText(text.substr(0, end), out);
    out.Append("</span>");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out.Append("</pre>\n");
}

}  // namespace tlparse

#include "answers/search/text_search.h"

#include <string.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/line_pattern.h"
#include "base/printable.h"
#include "queries/answers/search/text_search.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostLines = 5;    // of one text
constexpr std::size_t kMostBytes = 240;  // of one line

constexpr std::size_t kMostMarks = 20;  // of one line

bool HasUpper(std::string_view text) { return std::any_of(text.begin(), text.end(), IsUpperCase); }

// The regular expression in "re:…" or "/…/"; nothing: the text is meant as it is, as a path may be.
std::optional<std::string_view> ExpressionOf(std::string_view text) {
  if (text.starts_with("re:")) return text.substr(3);
  if (text.size() < 3 || text.front() != '/' || text.back() != '/') return std::nullopt;
  const std::string_view inner = text.substr(1, text.size() - 2);
  for (std::size_t at = inner.find('/'); at != inner.npos; at = inner.find('/', at + 1))
    if (at == 0 || inner[at - 1] != '\\') return std::nullopt;
  return inner;
}

// Letters of classes like \W do not count.
bool HasUpperLiteral(std::string_view expression) {
  for (std::size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] == '\\') {
      ++i;
    } else if (IsUpperCase(expression[i])) {
      return true;
    }
  }
  return false;
}

// In a loop that compilers vectorise: a log has hundreds of megabytes.
void LowerInto(std::string_view text, std::string& lower) {
  lower.resize(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    lower[i] = static_cast<char>(c + ((c >= 'A' && c <= 'Z') ? 32 : 0));
  }
}

// A piece of UTF-8 without a torn character at its ends.
std::string_view WholeCharacters(std::string_view piece) {
  const auto is_inside = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  while (!piece.empty() && is_inside(piece.front())) piece.remove_prefix(1);
  std::size_t start = piece.size();
  while (start > 0 && piece.size() - start < 4 && is_inside(piece[start - 1])) --start;
  if (start == 0) return piece;
  const auto lead = static_cast<unsigned char>(piece[start - 1]);
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  return piece.size() - start + 1 < length ? piece.substr(0, start - 1) : piece;
}

// What of a line is near `at`.
std::string_view PieceAt(std::string_view line, std::size_t at) {
  if (line.size() <= kMostBytes) return line;
  const std::size_t from = at - std::min(at, kMostBytes / 3);
  return WholeCharacters(line.substr(from, kMostBytes));
}

// As JavaScript counts.
std::int64_t Utf16Length(std::string_view text) {
  std::int64_t length = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    length += (byte & 0xC0) == 0x80 ? 0 : byte >= 0xF0 ? 2 : 1;
  }
  return length;
}

// The piece of a line around its first match, and where it matches.
TextLine MarkedLine(std::string_view line, LinePattern::Match match, const LinePattern& pattern) {
  const std::string_view piece = PieceAt(line, match.begin);
  const auto first = static_cast<std::size_t>(piece.data() - line.data());
  TextLine marked;
  std::size_t done = first;  // up to here it is in the text
  const auto add = [&](std::size_t end) {
    marked.text += Printable(line.substr(done, end - done));
    done = end;
    return Utf16Length(marked.text);
  };
  const std::size_t last = first + piece.size();
  for (std::optional<LinePattern::Match> next = match; next && next->begin < last;) {
    const std::int64_t begin = add(next->begin);
    marked.marks.emplace_back(begin, add(std::min(next->end, last)));
    if (next->end >= last || marked.marks.size() == kMostMarks) break;
    next = pattern.Find(line, std::max(next->end, next->begin + 1));
  }
  add(last);
  return marked;
}

// False: not all of it was looked at.
bool FindMatches(std::string_view content, const LinePattern& pattern,
                 std::chrono::steady_clock::time_point deadline, FoundText& found) {
  std::int64_t number = 0;
  bool is_whole = true;
  for (std::size_t begin = 0; begin <= content.size();) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    const std::string_view line = content.substr(begin, end - begin);
    ++number;
    begin = end + 1;
    is_whole = is_whole && line.size() <= LinePattern::kMostBytes;
    const std::optional<LinePattern::Match> match = pattern.Find(line, 0);
    if (!match) continue;
    ++found.line_count;
    if (found.lines.size() == kMostLines) continue;
    found.lines.push_back(MarkedLine(line, *match, pattern));
    found.lines.back().line = number;
  }
  return is_whole;
}

// `searched` is the content, in lower case if cases do not differ.
void FindLines(std::string_view content, std::string_view searched, std::string_view needle,
               FoundText& found) {
  std::size_t counted = 0;  // newlines before here are in `line`
  std::int64_t line = 1;
  for (std::size_t at = 0; at < searched.size();) {
    const void* hit =
        memmem(searched.data() + at, searched.size() - at, needle.data(), needle.size());
    if (hit == nullptr) return;
    at = static_cast<std::size_t>(static_cast<const char*>(hit) - searched.data());
    const std::size_t next = std::min(content.find('\n', at), content.size());
    ++found.line_count;
    if (found.lines.size() < kMostLines) {
      line += std::count(content.begin() + static_cast<std::ptrdiff_t>(counted),
                         content.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      counted = at;
      const std::size_t before = at == 0 ? std::string_view::npos : content.rfind('\n', at - 1);
      const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
      found.lines.push_back(
          {line, Printable(PieceAt(content.substr(begin, next - begin), at - begin))});
    }
    at = next + 1;
  }
}

// Lines of TORCH_LOGS are of no payload.
Result<void> FindPrinted(Database& database, std::int64_t run_id, const TextSearchOptions& options,
                         const LinePattern* pattern, std::chrono::steady_clock::time_point deadline,
                         TextSearch& search) {
  std::string lower;
  FOR_EACH_ROW(
      const LineOfTorchLogs& line,
      Query<LineOfTorchLogs>(
          database, {.run_id = run_id, .rank = options.asked.rank, .pid = options.asked.pid})) {
    if (search.printed.size() >= options.most_texts ||
        std::chrono::steady_clock::now() > deadline) {
      search.is_complete = false;
      break;
    }
    search.read_bytes += static_cast<std::int64_t>(line.text.size());
    FoundText found;
    if (pattern != nullptr) {
      FindMatches(line.text, *pattern, deadline, found);
    } else {
      if (!search.is_case_sensitive) LowerInto(line.text, lower);
      FindLines(line.text, search.is_case_sensitive ? line.text : std::string_view(lower),
                options.text, found);
    }
    if (found.lines.empty()) continue;
    found.lines.front().line = line.line;
    search.printed.push_back({.path = std::string(line.path),
                              .artifact = std::string(line.artifact),
                              .label = std::string(line.label),
                              .found = std::move(found.lines.front())});
  }
  return {};
}

TextKind KindOf(const RecordWithPayload& row) {
  if (row.is_graph) return TextKind::kGraph;
  if (row.is_code) return TextKind::kCode;
  return row.is_guards ? TextKind::kGuard : TextKind::kLog;
}

// False: no record of the run has it, or it is of another kind.
Result<bool> AddRecords(Database& database, std::int64_t run_id, std::int64_t payload_id,
                        const TextSearchOptions& options, FoundText& found) {
  std::set<std::int64_t> ranks;
  FOR_EACH_ROW(const RecordWithPayload& row,
               Query<RecordWithPayload>(database, {.payload_id = payload_id,
                                                   .run_id = run_id,
                                                   .rank = options.asked.rank,
                                                   .pid = options.asked.pid})) {
    if (found.record_count++ == 0) {
      found.kind = KindOf(row);
      if (options.only && *options.only != found.kind) return false;
      found.record_id = row.id;
      found.compile_id = row.compile_id;
      found.label = row.label;
      found.title = row.name.empty() ? row.kind : row.name;
      found.direction = row.direction;
    }
    if (row.rank) ranks.insert(*row.rank);
  }
  found.ranks.assign(ranks.begin(), ranks.end());
  return found.record_count > 0;
}

}  // namespace

Result<TextSearch> SearchTexts(Database& database, std::int64_t run_id,
                               const TextSearchOptions& options) {
  if (options.text.size() < 2) return Fail(ErrorCode::kUsage, "search for at least 2 characters");
  TextSearch search;
  const std::optional<std::string_view> expression = ExpressionOf(options.text);
  search.is_case_sensitive = expression ? HasUpperLiteral(*expression) : HasUpper(options.text);
  const auto deadline = std::chrono::steady_clock::now() + options.time;
  std::optional<LinePattern> pattern;
  if (expression) {
    ASSIGN_OR_RETURN(LinePattern made, LinePattern::Make(*expression, search.is_case_sensitive));
    pattern.emplace(std::move(made));
  }
  std::string lower;
  FOR_EACH_ROW(const SearchedPayload& payload, Query<SearchedPayload>(database, {})) {
    if (search.texts.size() >= options.most_texts || std::chrono::steady_clock::now() > deadline) {
      search.is_complete = false;
      break;
    }
    search.read_bytes += static_cast<std::int64_t>(payload.content.size());
    FoundText found;
    if (pattern) {
      const bool is_whole = FindMatches(payload.content, *pattern, deadline, found);
      search.is_complete = search.is_complete && is_whole;
    } else {
      if (!search.is_case_sensitive) LowerInto(payload.content, lower);
      FindLines(payload.content,
                search.is_case_sensitive ? payload.content : std::string_view(lower), options.text,
                found);
    }
    if (found.line_count == 0) continue;
    ASSIGN_OR_RETURN(const bool is_shown, AddRecords(database, run_id, payload.id, options, found));
    if (is_shown) search.texts.push_back(std::move(found));
  }
  if (!options.only || *options.only == TextKind::kLog)
    RETURN_IF_ERROR(
        FindPrinted(database, run_id, options, pattern ? &*pattern : nullptr, deadline, search));
  return search;
}

}  // namespace tlparse

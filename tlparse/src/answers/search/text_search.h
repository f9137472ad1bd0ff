// Where a text occurs in what a run logged: graphs, generated code, guards, other payloads, and in what
// it printed by TORCH_LOGS. Each distinct payload is read once, however many ranks have it, until there are enough hits or time is
// up.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "facts/job/asked_participant.h"
#include "store/database.h"

namespace tlparse {

enum class TextKind { kGraph, kCode, kGuard, kLog };
inline constexpr std::string_view kTextKindNames[] = {"graph", "code", "guard", "log"};

struct TextSearchOptions {
  // At least 2 bytes; without an upper-case letter both cases match. "re:…" and "/…/" without a
  // further / are regular expressions, looked for in each line.
  std::string text;
  std::optional<TextKind> only;
  AskedParticipant asked;
  std::size_t most_texts = 200;  // distinct payloads, and as many lines of TORCH_LOGS
  std::chrono::milliseconds time{2000};
};

struct TextLine {
  std::int64_t line = 0;  // 1-based, of the payload
  std::string text;       // around the match, UTF-8
  // Of a regular expression: where its matches begin and end in `text`, in units of UTF-16.
  std::vector<std::pair<std::int64_t, std::int64_t>> marks = {};
};

// A distinct payload with the text.
struct FoundText {
  TextKind kind = TextKind::kLog;
  std::int64_t record_id = 0;  // the first that has it
  std::optional<std::int64_t> compile_id;
  std::string label;                // of that compile
  std::string title;                // kind of the record, or name of the artifact
  std::string direction;            // of its graph; empty: none, or unknown
  std::int64_t record_count = 0;    // with this payload
  std::vector<std::int64_t> ranks;  // of these, ascending
  std::int64_t line_count = 0;      // that match
  std::vector<TextLine> lines;      // the first of them
};

// A line of a text that TORCH_LOGS made, with the text.
struct PrintedLine {
  std::string path;
  std::string artifact, label;  // label: of its compile; empty: it names none
  TextLine found;               // its number is that of the file
};

struct TextSearch {
  std::vector<FoundText> texts;  // in the order of the log
  std::vector<PrintedLine> printed = {};
  bool is_complete = true;  // false: stopped by a limit of the options
  bool is_case_sensitive = false;
  std::int64_t read_bytes = 0;
};

// kUsage: the text is too short, or its regular expression is wrong.
Result<TextSearch> SearchTexts(Database& database, std::int64_t run_id,
                               const TextSearchOptions& options);

}  // namespace tlparse

// Text that processes print. TORCH_LOGS: "V1122 19:30:29.099000 26478 torch/_inductor/scheduler.py:2132] [0/0]
// [__fusion] cannot fuse …". Lines that name an artifact become rows, and those of the warning at the
// recompile limit, which PyTorch prints without TORCH_LOGS too; so do lines of NCCL's watchdog (watchdog.h), what ranks and torchrun
// print of failures (tracebacks.h), C++ before it aborts one (abort_text.h), and what vLLM says of its start (vllm.h). The rest is reported once.
#include "inputs/reader.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "inputs/common/exception_row.h"
#include "inputs/common/line_stream.h"
#include "inputs/torch_logs/collected_line.h"
#include "inputs/torch_logs/failure_rows.h"
#include "inputs/torch_logs/vllm.h"
#include "inputs/torch_logs/watchdog.h"
#include "log/glog_prefix.h"
#include "rows/torch_logs.h"
#include "rows/uncaught_exception.h"
#include "rows/vllm.h"
#include "rows/watchdog.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostLineBytes = std::size_t{16} << 20;

struct LogLine {
  std::optional<std::int64_t> rank;
  char level = 'I';
  std::string_view local_time;
  std::int64_t pid = 0;
  std::string_view source_file;
  std::int64_t source_line = 0;
  std::string_view label;
  std::int64_t attempt = 0;
  std::string_view artifact;
  std::string_view text;
};

bool TakeNumber(std::string_view& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// "[0/0_1] " or "[!1/0/0] ": a compile.
bool TakeCompile(std::string_view& text, LogLine& line) {
  if (text.size() < 3 || text[0] != '[' || (!IsDigit(text[1]) && text[1] != '!')) return false;
  const std::size_t end = text.find(']');
  if (end == text.npos) return false;
  std::string_view id = text.substr(1, end - 1);
  if (id.find_first_not_of("0123456789/_!-") != id.npos) return false;
  if (const std::size_t attempt = id.find('_'); attempt != id.npos) {
    std::string_view digits = id.substr(attempt + 1);
    if (!TakeNumber(digits, line.attempt) || !digits.empty()) return false;
    id = id.substr(0, attempt);
  }
  line.label = id;
  text.remove_prefix(end + 1);
  return true;
}

// The artifact of the warning at the recompile limit, which names none.
constexpr std::string_view kLimit = "recompile_limit";

// Lines of that warning; `follows`: the line before was one.
bool IsOfLimit(std::string_view text, bool follows) {
  if (text.starts_with("torch._dynamo hit config.")) return true;
  while (text.starts_with(' ')) text.remove_prefix(1);
  return follows && (text.starts_with("function: '") || text.starts_with("last reason: ") ||
                     text.starts_with("To log all recompilation reasons") ||
                     text.starts_with("To diagnose recompilation"));
}

// `is_in_limit`: the line before was one of the warning at the recompile limit.
std::optional<LogLine> Parse(std::string_view text, bool is_in_limit) {
  LogLine line;
  if (const std::optional<RankPrefix> rank = ParseRankPrefix(text)) {
    line.rank = rank->rank;
    text.remove_prefix(rank->length);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  constexpr std::size_t kTimeLength = 20;  // 1122 19:30:29.099000
  if (text.size() < kTimeLength + 4 ||
      std::string_view("VIWECD").find(text[0]) == std::string_view::npos)
    return std::nullopt;
  line.level = text[0];
  line.local_time = text.substr(1, kTimeLength);
  for (std::size_t i = 0; i < kTimeLength; ++i) {
    constexpr std::string_view kShape = "0000 00:00:00.000000";
    if (kShape[i] == '0' ? !IsDigit(line.local_time[i]) : kShape[i] != line.local_time[i])
      return std::nullopt;
  }
  text.remove_prefix(1 + kTimeLength);
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (!TakeNumber(text, line.pid) || !text.starts_with(' ')) return std::nullopt;
  text.remove_prefix(1);
  const std::size_t end = text.find("] ");
  if (end == text.npos) return std::nullopt;
  const std::string_view place = text.substr(0, end);
  const std::size_t colon = place.rfind(':');
  if (colon == place.npos) return std::nullopt;
  line.source_file = place.substr(0, colon);
  std::string_view digits = place.substr(colon + 1);
  if (!TakeNumber(digits, line.source_line) || !digits.empty()) return std::nullopt;
  text.remove_prefix(end + 2);
  if (TakeCompile(text, line) && text.starts_with(' ')) text.remove_prefix(1);
  if (IsOfLimit(text, is_in_limit)) {
    line.artifact = kLimit;
    line.text = text;
    return line;
  }
  if (!text.starts_with("[__")) return std::nullopt;
  const std::size_t close = text.find(']');
  if (close == text.npos) return std::nullopt;
  line.artifact = text.substr(3, close - 3);
  text.remove_prefix(close + 1);
  if (text.starts_with(' ')) text.remove_prefix(1);
  line.text = text;
  return line;
}

// As PyTorch 2.0 to 2.2 prints it: "[2024-02-06 10:32:24,334] [0/0] torch._dynamo.symbolic_convert.__graph_breaks: [DEBUG] …".
std::optional<LogLine> ParseOld(std::string_view text, bool is_in_limit) {
  constexpr std::size_t kTimeLength = 23;
  if (text.size() < kTimeLength + 4 || text[0] != '[' || text[kTimeLength + 1] != ']' ||
      text[5] != '-' || text[11] != ' ' || text[20] != ',')
    return std::nullopt;
  LogLine line;
  line.local_time = text.substr(1, kTimeLength);
  text.remove_prefix(kTimeLength + 3);
  if (TakeCompile(text, line) && text.starts_with(' ')) text.remove_prefix(1);
  constexpr std::string_view kLevel = ": [";
  const std::size_t name_end = text.find(kLevel), level_end = text.find("] ", name_end);
  if (!text.starts_with("torch.") || name_end == text.npos || level_end == text.npos)
    return std::nullopt;
  const std::string_view logger = text.substr(0, name_end);
  line.level = text[name_end + kLevel.size()];  // "DEBUG", "WARNING"
  line.source_file = logger;
  line.text = text.substr(level_end + 2);
  const std::size_t artifact = logger.rfind(".__");
  if (artifact != logger.npos) {
    line.artifact = logger.substr(artifact + 3);
    return line;
  }
  line.artifact = kLimit;
  return IsOfLimit(line.text, is_in_limit) ? std::optional(line) : std::nullopt;
}

// The warning as programs print it that replace PyTorch's log format: it has no prefix.
std::optional<LogLine> ParseBare(std::string_view text, bool is_in_limit) {
  if (!IsOfLimit(text, is_in_limit)) return std::nullopt;
  LogLine line;
  line.level = 'W';
  line.artifact = kLimit;
  line.text = text;
  return line;
}

class TorchLogsReader final : public RuntimeReader {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<TorchLogLineRow>();
    tables.Use<NcclWatchdogRow>();
    tables.Use<NcclWarningRow>();
    tables.Use<VllmLineRow>();
    tables.Use<UncaughtExceptionRow>();
    tables.Use<LauncherFailureRow>();
    tables.Use<PrintedAbortRow>();
  }
  Result<bool> Read(RuntimeContext& context) override;
};

// Lines that are no lines of an artifact, as one row of import_log for each stretch.
class Others {
 public:
  void Add(const LineStream::Line& line) {
    if (count_++ == 0) first_ = line.number;
    if (text_.size() < kMostText) text_.append(line.text.substr(0, kMostText)).push_back('\n');
  }
  void Flush(RuntimeContext& context) {
    if (count_ == 0) return;
    ImportPlace place;
    place.line = first_;
    context.Log(ImportCode::kForeignLine,
                fmt::format("{} that name{} no artifact", Count(count_, "line"), VerbS(count_)),
                place, text_, count_);
    count_ = 0;
    text_.clear();
  }

 private:
  static constexpr std::size_t kMostText = 4096;
  std::int64_t count_ = 0;
  std::int64_t first_ = 0;
  std::string text_;
};

void AddWatchdogRow(RuntimeContext& context, std::int64_t number, const WatchdogLine& line) {
  RowBatch& rows = context.rows();
  const std::string text = SanitizeUtf8(line.text), op = SanitizeUtf8(line.op),
                    group = SanitizeUtf8(line.group_name),
                    description = SanitizeUtf8(line.group_description);
  NcclWatchdogRow row{.id = context.NextId(rows.TableOf<NcclWatchdogRow>()),
                      .profile_id = context.profile_id(),
                      .line = number,
                      .event = RowText(Name(line.event)),
                      .text = RowText(text)};
  row.rank = line.rank;
  if (!group.empty()) row.group_name = RowText(group);
  if (!description.empty()) row.group_description = RowText(description);
  row.sequence_number = line.sequence_number;
  if (!op.empty()) row.op = RowText(op);
  row.numel_in = line.numel_in;
  row.numel_out = line.numel_out;
  row.timeout_ms = line.timeout_ms;
  row.ran_ms = line.ran_ms;
  row.last_enqueued = line.last_enqueued;
  row.last_completed = line.last_completed;
  row.signal_rank = line.signal_rank;
  rows.Add(row);
  ++context.facts().kept_count;
}

// Lines of vLLM: those of its start, and the first one of each process.
class VllmLines {
 public:
  // False: it is of none of these, or says nothing of the start.
  bool Add(RuntimeContext& context, std::string_view text, std::int64_t number) {
    const std::optional<VllmLine> line = ParseVllmLine(text);
    if (!line) return false;
    const bool is_of_traceback = tracebacks_.Add(*line, number);
    const bool is_first = known_.insert(line->pid.value_or(-1)).second;
    if (!line->stage && !is_first) return is_of_traceback;
    const std::string process = SanitizeUtf8(line->process_name), said = SanitizeUtf8(line->text);
    VllmLineRow row{.id = context.NextId<VllmLineRow>(),
                    .profile_id = context.profile_id(),
                    .line = number,
                    .local_time = RowText(line->local_time),
                    .stage = line->stage.value_or(VllmStage::kFirstLine),
                    .text = RowText(said)};
    if (!process.empty()) row.process_name = RowText(process);
    row.pid = line->pid;
    row.seconds = line->seconds;
    context.rows().Add(row);
    ++context.facts().kept_count;
    return true;
  }

  void AddTracebacks(RuntimeContext& context) const {
    for (const VllmTraceback& one : tracebacks_.tracebacks)
      AddException(context, {.line = one.line}, one.text);
  }

 private:
  std::set<std::int64_t> known_;
  VllmTracebacks tracebacks_;
};

void AddLogLine(RuntimeContext& context, std::int64_t number, const LogLine& line) {
  const std::string text = SanitizeUtf8(line.text);
  const std::string level(1, line.level);
  TorchLogLineRow row{.id = context.NextId<TorchLogLineRow>(),
                      .profile_id = context.profile_id(),
                      .line = number,
                      .level = RowText(level),
                      .local_time = RowText(line.local_time),
                      .pid = line.pid,
                      .source_file_id = context.Text(line.source_file),
                      .source_line = line.source_line,
                      .artifact_id = context.Text(line.artifact),
                      .text = RowText(text)};
  row.rank = line.rank;
  row.label_id = context.OptionalText(line.label);
  if (row.label_id) row.attempt = line.attempt;
  context.rows().Add(row);
  ++context.facts().kept_count;
}

Result<bool> TorchLogsReader::Read(RuntimeContext& context) {
  ProfileFacts& facts = context.facts();
  facts.kind = "torch_logs";
  LineStream lines(context, kMostLineBytes);
  Others others;
  FailureTexts failures;
  LineUnwrapper unwrapper;
  VllmLines vllm;
  WatchdogText watchdog;
  const auto add_watchdog = [&](std::int64_t number, const WatchdogLine& line) {
    AddWatchdogRow(context, number, line);
  };
  bool is_in_limit = false;
  std::map<std::int64_t, std::int64_t> lines_of_pid;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<LineStream::Line> next, lines.Next());
    if (!next) break;
    ++facts.event_count;
    if (next->is_too_long) {
      is_in_limit = false;
      others.Add(*next);
      continue;
    }
    const CollectedLine collected = unwrapper.Unwrap(next->text);
    const std::string_view text = collected.text;
    std::optional<LogLine> line = Parse(text, is_in_limit);
    if (!line) line = ParseOld(text, is_in_limit);
    if (!line) line = ParseBare(text, is_in_limit);
    is_in_limit = line && line->artifact == kLimit;
    failures.tracebacks.Add(collected, next->number, line.has_value());
    if (!line) {
      if (watchdog.Add(text, next->number, add_watchdog) || vllm.Add(context, text, next->number)) {
        others.Flush(context);
        RETURN_IF_ERROR(context.Flush());
      } else if (!failures.Add(text, next->number)) {
        others.Add(*next);
      }
      continue;
    }
    others.Flush(context);
    AddLogLine(context, next->number, *line);
    if (line->pid != 0) ++lines_of_pid[line->pid];
    if (line->rank)
      facts.rank = facts.kept_count == 1 || facts.rank == line->rank ? line->rank : std::nullopt;
    RETURN_IF_ERROR(context.Flush());
  }
  others.Flush(context);
  watchdog.End(add_watchdog);
  failures.aborts.End();
  AddFailureRows(context, failures);
  vllm.AddTracebacks(context);
  // Text of several processes in one file belongs to none of them.
  if (lines_of_pid.size() == 1) facts.pid = lines_of_pid.begin()->first;
  return true;
}

}  // namespace

std::unique_ptr<RuntimeReader> MakeTorchLogsReader() { return std::make_unique<TorchLogsReader>(); }

}  // namespace tlparse

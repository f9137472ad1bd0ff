#include "answers/evidence/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/ascii.h"
#include "base/plural.h"
#include "base/printable.h"
#include "queries/answers/evidence/evidence.h"

namespace tlparse {
namespace {

// Names of the records that show what a finding of this kind is about, as patterns.
std::vector<std::string> RecordsOf(FindingKind kind) {
  switch (kind) {
    case FindingKind::kCompileFailed:
      return {"dynamo_error", "*compilation_metrics*", "*_fail*"};
    case FindingKind::kConfigDivergence:
    case FindingKind::kLaunchDiffers:
      return {"*_cache_*", "compilation_metrics"};
    case FindingKind::kInputDivergence:
      return {"dynamo_output_graph", "dynamo_cpp_guards_str"};
    case FindingKind::kGraphDivergence:
      return {"dynamo_output_graph", "aot_*graph*", "*_graph"};
    case FindingKind::kGraphBreakDivergence:
    case FindingKind::kGraphBreak:
      return {"dynamo_graph_break_reason", "compilation_metrics"};
    case FindingKind::kCodeDivergence:
    case FindingKind::kOneKeyTwoCodes:
      return {"inductor_output_code"};
    case FindingKind::kCollectiveDivergence:
      return {"inductor_collective_schedule", "inductor_output_code"};
    case FindingKind::kExtraCompile:
    case FindingKind::kMissingCompile:
    case FindingKind::kRecompiles:
    case FindingKind::kRecompileLimit:
      return {"recompile_reasons", "dynamo_start", "compilation_metrics"};
    case FindingKind::kPrecompiledAgain:
      return {"dynamo_cpp_guards_str", "compilation_metrics"};
    case FindingKind::kPrecompiledDiffers:
      return {"dynamo_cache_entries", "dynamo_cpp_guards_str"};
    case FindingKind::kColdCache:
    case FindingKind::kCacheBypassed:
      return {"*_cache_*"};
    default:
      return {"*compilation_metrics*", "dynamo_start", "*"};
  }
}

// The begin of the character of UTF-8 that `at` is in.
std::size_t CharacterAt(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80) --at;
  return at;
}

// Of "2.13.0" the points belong to it.
bool IsOfWord(std::string_view text, std::size_t at) {
  return IsNameCharacter(text[at]) || (text[at] == '.' && at > 0 && at + 1 < text.size() &&
                                       IsDigit(text[at - 1]) && IsDigit(text[at + 1]));
}

void AddWords(std::string_view text, std::set<std::string, std::less<>>& words) {
  for (std::size_t at = 0; at < text.size();) {
    if (!IsNameCharacter(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && IsOfWord(text, end)) ++end;
    if (end - at >= 3) words.emplace(text.substr(at, end - at));
    at = end;
  }
}

class Evidence {
 public:
  Evidence(Database& database, const Finding& finding) : database_(database), finding_(finding) {
    AddWords(finding.cause.empty() ? finding.title : finding.cause, words_);
    if (finding.place) AddWords(finding.place->code, words_);
  }

  Result<std::vector<EvidenceLine>> Find() {
    for (const FindingRow& row : finding_.rows) RETURN_IF_ERROR(AddRow(row));
    return std::move(lines_);
  }

 private:
  Result<void> AddRow(const FindingRow& row) {
    if (row.table == "record") return AddRecord(row, row.id);
    if (row.table == "compile") return AddCompile(row, row.id);
    if (row.table == "process") return AddProcess(row);
    if (row.table == "import_log") return AddProblem(row);
    if (row.table == "collective_run") return AddCollective(row);
    if (row.table == "cache_event") return AddRecordOf<RecordOfCacheEvent>(row);
    if (row.table == "failure") return AddRecordOf<RecordOfFailure>(row);
    if (row.table == "uncaught_exception" || row.table == "launcher_failure")
      return AddPrinted(row);
    if (row.table == "annotation") return AddLine<EvidenceAnnotation>(row);
    if (row.table == "nccl_ras_state") return AddLine<EvidenceOfRasState>(row);
    if (row.table == "debug_server_rank") return AddLine<EvidenceOfServerRank>(row);
    if (row.table == "nccl_ras_process") return AddLine<EvidenceOfRasProcess>(row);
    return AddFile(row);
  }

  template <typename Row>
  Result<void> AddRecordOf(const FindingRow& row) {
    ASSIGN_OR_RETURN(const FirstRow<Row> first, First(Query<Row>(database_, {.id = row.id})));
    return first ? AddRecord(row, first->record_id) : Result<void>();
  }

  Result<void> AddRecord(const FindingRow& row, std::int64_t record_id) {
    ASSIGN_OR_RETURN(const std::optional<Candidate> one, Read(record_id));
    if (one) Add(row, *one);
    return {};
  }

  // The record of a compile that has most words of the finding, the first of several.
  Result<void> AddCompile(const FindingRow& row, std::int64_t compile_id) {
    std::optional<Candidate> best;
    for (const std::int64_t record_id : CandidatesOf(compile_id)) {
      ASSIGN_OR_RETURN(std::optional<Candidate> one, Read(record_id));
      if (one && (!best || one->score > best->score)) best = std::move(one);
    }
    if (best) Add(row, *best);
    return {};
  }

  std::vector<std::int64_t> CandidatesOf(std::int64_t compile_id) {
    std::vector<std::int64_t> ids;
    const std::vector<std::string> names = RecordsOf(finding_.kind);
    auto rows = Query<EvidenceOfCompile>(database_, {.compile_id = compile_id, .names = names});
    while (rows.Next()) ids.push_back(rows.row().record_id);
    return ids;
  }

  // Its end, and what was open there; of a finding about its begin that; of one about what it
  // compiled the record that has most words.
  Result<void> AddProcess(const FindingRow& row) {
    ASSIGN_OR_RETURN(const FirstRow<EvidenceOfProcess> first,
                     First(Query<EvidenceOfProcess>(database_, {.process_id = row.id})));
    if (!first) return {};
    switch (finding_.kind) {
      case FindingKind::kLateRank:
      case FindingKind::kMissingRank:
      case FindingKind::kSeveralJobs:
        return AddRecord(row, first->first_record_id);
      case FindingKind::kStoppedFirst:
      case FindingKind::kStuck:
      case FindingKind::kRestarted:
        if (first->open_record_id && *first->open_record_id != first->last_record_id)
          RETURN_IF_ERROR(AddRecord(row, *first->open_record_id));
        return AddRecord(row, first->last_record_id);
      default:
        return AddBestOf(row, first->first_record_id);
    }
  }

  // That of a compile, unless the first of all, which names the build, has more words.
  Result<void> AddBestOf(const FindingRow& row, std::int64_t first_record_id) {
    std::optional<Candidate> best;
    FOR_EACH_ROW(const EvidenceCompiles& compile,
                 Query<EvidenceCompiles>(database_, {.process_id = row.id})) {
      for (const std::int64_t record_id : CandidatesOf(compile.id)) {
        ASSIGN_OR_RETURN(std::optional<Candidate> one, Read(record_id));
        if (one && (!best || one->score > best->score)) best = std::move(one);
      }
    }
    ASSIGN_OR_RETURN(std::optional<Candidate> first, Read(first_record_id));
    if (first && (!best || first->score > best->score)) best = std::move(first);
    if (best) Add(row, *best);
    return {};
  }

  Result<void> AddProblem(const FindingRow& row) {
    ASSIGN_OR_RETURN(const FirstRow<EvidenceProblem> first,
                     First(Query<EvidenceProblem>(database_, {.id = row.id})));
    if (!first) return {};
    const std::string_view text = first->text.value_or(first->message);
    lines_.push_back(
        {row, std::string(first->path), first->line, first->byte_offset, {}, Cut(text)});
    return {};
  }

  Result<void> AddCollective(const FindingRow& row) {
    ASSIGN_OR_RETURN(const FirstRow<EvidenceCollective> first,
                     First(Query<EvidenceCollective>(database_, {.id = row.id})));
    if (!first) return {};
    if (first->record_id) return AddRecord(row, *first->record_id);
    std::string text = first->ordinal ? fmt::format("entry {}: ", *first->ordinal) : std::string();
    text += fmt::format("{} {} {}", first->op, first->input_shapes, first->state);
    if (first->sequence_number)
      text += fmt::format(" (number {} of group {})", *first->sequence_number, first->group_name);
    if (!first->issued.empty()) text += fmt::format(", issued at {} UTC", first->issued);
    lines_.push_back({row, std::string(first->path), {}, {}, {}, Cut(text)});
    return {};
  }

  // A row that has a line of a file, and a text.
  template <typename Row>
  Result<void> AddLine(const FindingRow& row) {
    ASSIGN_OR_RETURN(const FirstRow<Row> first, First(Query<Row>(database_, {.id = row.id})));
    if (first)
      lines_.push_back({row, std::string(first->path), first->line, {}, {}, Cut(first->text)});
    return {};
  }

  // With the line of its traceback that is the user's innermost. Other processes may have printed between the
  // lines of a traceback: of the text the line is that where it begins.
  Result<void> AddException(const FindingRow& row) {
    ASSIGN_OR_RETURN(const FirstRow<EvidenceException> first,
                     First(Query<EvidenceException>(database_, {.id = row.id})));
    if (!first) return {};
    const std::string_view traceback = first->traceback;
    const std::size_t at =
        first->place.empty() ? traceback.npos : traceback.rfind(std::string_view(first->place));
    if (at != traceback.npos) {
      const std::size_t begin = traceback.rfind('\n', at) + 1;
      const std::size_t end = std::min(traceback.find('\n', at), traceback.size());
      lines_.push_back({row,
                        std::string(first->path),
                        first->line,
                        {},
                        {},
                        Cut(traceback.substr(begin, end - begin))});
    }
    lines_.push_back({row, std::string(first->path), first->line, {}, {}, Cut(first->text)});
    return {};
  }

  Result<void> AddPrinted(const FindingRow& row) {
    if (row.table == "uncaught_exception") return AddException(row);
    ASSIGN_OR_RETURN(const FirstRow<EvidenceOfLauncher> first,
                     First(Query<EvidenceOfLauncher>(database_, {.id = row.id})));
    if (first)
      lines_.push_back({row,
                        std::string(first->path),
                        first->line,
                        {},
                        {},
                        fmt::format("{}, exit code {}", first->who, first->exit_code)});
    return {};
  }

  Result<void> AddFile(const FindingRow& row) {
    if (row.table == "log_file") {
      ASSIGN_OR_RETURN(const FirstRow<EvidenceLogFile> first,
                       First(Query<EvidenceLogFile>(database_, {.id = row.id})));
      if (first)
        lines_.push_back({row,
                          std::string(first->path),
                          {},
                          {},
                          {},
                          fmt::format("{}, {}", tlparse::Count(first->size_bytes, "byte"),
                                      tlparse::Count(first->record_count, "record"))});
    } else if (row.table == "profile") {
      const std::size_t before = lines_.size();
      if (finding_.kind == FindingKind::kStuck) {
        FOR_EACH_ROW(const EvidenceOfHang& one, Query<EvidenceOfHang>(database_, {.id = row.id})) {
          lines_.push_back({row, std::string(one.path), {}, {}, {}, Cut(one.text)});
        }
      }
      if (lines_.size() > before) return {};
      ASSIGN_OR_RETURN(const FirstRow<EvidenceProfile> first,
                       First(Query<EvidenceProfile>(database_, {.id = row.id})));
      if (first)
        lines_.push_back(
            {row,
             std::string(first->path),
             {},
             {},
             {},
             fmt::format("{}, {}", first->kind, tlparse::Count(first->event_count, "event"))});
    }
    return {};
  }

  struct Candidate {
    std::string file, record, text;
    std::int64_t line = 0, byte_offset = 0;
    std::size_t score = 0;
  };

  // The line of the record that has most words of the finding; its header if none has any.
  Result<std::optional<Candidate>> Read(std::int64_t record_id) {
    ASSIGN_OR_RETURN(const FirstRow<EvidenceRecord> first,
                     First(Query<EvidenceRecord>(database_, {.record_id = record_id})));
    if (!first) return std::nullopt;
    Candidate best{std::string(first->path), std::string(first->record), {}, first->line,
                   first->byte_offset,       Score(first->envelope)};
    std::string_view text = first->envelope;
    std::string_view rest = first->payload;
    // A payload is written as lines that begin with a TAB.
    for (std::int64_t line = first->line + 1; !rest.empty(); ++line) {
      const std::string_view one = rest.substr(0, rest.find('\n'));
      if (const std::size_t score = Score(one); score > best.score) {
        best.score = score;
        best.line = line;
        text = one;
      }
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    }
    best.text = Cut(text);
    return best;
  }

  std::size_t Score(std::string_view line) const {
    std::size_t score = 0;
    for (const std::string& word : words_)
      if (line.find(word) != std::string_view::npos) score += word.size();
    return score;
  }

  // The part of a line around the first of the words.
  std::string Cut(std::string_view line) const {
    constexpr std::size_t kBefore = 60;
    std::size_t begin = line.size();
    for (const std::string& word : words_) begin = std::min(begin, line.find(word));
    begin = line.size() <= kMostEvidenceText || begin >= line.size() || begin < kBefore
                ? 0
                : CharacterAt(line, begin - kBefore);
    const std::size_t end = CharacterAt(line, std::min(line.size(), begin + kMostEvidenceText));
    return (begin > 0 ? "…" : "") + Printable(line.substr(begin, end - begin)) +
           (end < line.size() ? "…" : "");
  }

  void Add(const FindingRow& row, const Candidate& one) {
    lines_.push_back({row, one.file, one.line, one.byte_offset, one.record, one.text});
  }

  Database& database_;
  const Finding& finding_;
  std::set<std::string, std::less<>> words_;
  std::vector<EvidenceLine> lines_;
};

}  // namespace

Result<std::vector<EvidenceLine>> EvidenceOf(Database& database, const Finding& finding) {
  return Evidence(database, finding).Find();
}

}  // namespace tlparse

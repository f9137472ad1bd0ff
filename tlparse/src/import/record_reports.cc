// What is odd in a record, as rows of import_log.
#include <fmt/format.h>

#include <array>

#include "import/typing_step.h"
#include "log/damaged_header.h"
#include "log/rank.h"

namespace tlparse {

namespace {

constexpr int kMostRowsOfRecord = 100;  // in import_log
// From the first to the last record: a compile or process that writes less may be one of a log that
// was filtered, in which others have one record.
constexpr std::int64_t kLeastRecords = 20;

bool HasManyRecords(std::int64_t first_record_id, std::int64_t last_record_id) {
  return last_record_id - first_record_id >= kLeastRecords;
}

// The member of an envelope that `name` may have been before a character was changed.
std::string_view SimilarMember(std::string_view name) {
  constexpr std::array<std::string_view, 8> kMembers = {
      "rank",    "compiled_autograd_id", "frame_id", "frame_compile_id",
      "attempt", "subgraph_name",        "stack",    "has_payload"};
  for (const std::string_view member : kMembers)
    if (DiffersInOneCharacter(member, name)) return member;
  return {};
}

// Whether the numbers differ in one decimal digit.
bool DifferInOneDigit(std::int64_t a, std::int64_t b) {
  int count = 0;
  for (; a != 0 || b != 0; a /= 10, b /= 10) count += a % 10 != b % 10 ? 1 : 0;
  return count == 1;
}

// The compile that may own the only record of `compile`, which no record begins: one of its ids
// differs in one digit, the others are the same. nullptr: none.
const CompileState* LikelyCompileOf(const Process& process, const CompileState& compile) {
  constexpr std::size_t kMostCompiles = 10'000;
  if (compile.has_start || compile.first_record_id != compile.last_record_id ||
      &compile == process.latest || process.state.compiles.size() > kMostCompiles)
    return nullptr;
  const CompileIds& own = compile.ids;
  for (const std::unique_ptr<CompileState>& other : process.state.compiles) {
    const CompileIds& ids = other->ids;
    if (!ids.frame_id || !HasManyRecords(other->first_record_id, other->last_record_id) ||
        own.compiled_autograd_id != ids.compiled_autograd_id)
      continue;
    const bool is_same_frame = own.frame_id == ids.frame_id;
    const bool is_same_compile = own.frame_compile_id == ids.frame_compile_id;
    if ((is_same_frame && DifferInOneDigit(*own.frame_compile_id, *ids.frame_compile_id)) ||
        (is_same_compile && DifferInOneDigit(*own.frame_id, *ids.frame_id)))
      return other.get();
  }
  return nullptr;
}

}  // namespace

void TypingStep::ReportEnvelope(const LogRecord& record, bool rank_conflict) {
  const Envelope& envelope = record.envelope;
  if (record_.kind.empty()) {
    Log(envelope.has_several_keys ? ImportCode::kSeveralRecordKeys : ImportCode::kNoRecordKey,
        "the record has no kind");
  }
  if (!envelope.unknown_members.empty()) {
    const std::string& names = envelope.unknown_members;
    const bool is_new = log_->reported_once.insert("member " + names).second;
    if (is_new)
      Log(ImportCode::kUnknownEnvelopeMember,
          fmt::format("'{}' beside '{}' (first of this file)", names, record_.kind));
    NoteUnknownName(names, is_new ? SimilarMember(names) : std::string_view());
  }
  if (!envelope.bad_member.empty()) {
    Log(ImportCode::kBadEnvelopeMember, fmt::format("'{}' has a wrong type", envelope.bad_member));
  }
  if (rank_conflict)
    Log(ImportCode::kRankConflict,
        fmt::format("pid {} now writes as rank {}", record.prefix.pid, *envelope.rank));
  const bool has_bad_prefix = record.prefix.rank && !IsRank(*record.prefix.rank);
  if ((envelope.bad_rank || has_bad_prefix) && log_->reported_once.insert("rank").second) {
    Log(ImportCode::kBadRank,
        fmt::format("{} is no rank (first of this file)",
                    envelope.bad_rank ? *envelope.bad_rank : *record.prefix.rank));
  }
  if ((envelope.was_repaired && HasForeignBytes(record_.envelope)) ||
      HasForeignBytes(record.prefix.path)) {
    Log(ImportCode::kDamagedHeader,
        "the header holds control characters, or bytes that are not UTF-8");
  }
  if (envelope.frame_id.has_value() != envelope.frame_compile_id.has_value() &&
      envelope.bad_member.empty()) {
    Log(ImportCode::kDamagedHeader,
        fmt::format("'{}' without '{}': the record is assigned to no compile",
                    envelope.frame_id ? "frame_id" : "frame_compile_id",
                    envelope.frame_id ? "frame_compile_id" : "frame_id"));
  }
  if (envelope.was_repaired) Log(ImportCode::kRepairedJson, "the envelope is not strict JSON");
  if (record_.kind == "artifact" && record_.name.data() == nullptr)
    Log(ImportCode::kUnnamedArtifact, "an artifact without a name");
  if (record.payload_state == PayloadState::kCrRemoved && log_->reported_once.insert("cr").second) {
    Log(ImportCode::kCrRemoved, "payload lines end in CR LF (first of this file)");
  }
}

void TypingStep::ReportUnknown() {
  if (record_.kind.empty() || (record_.kind == "artifact" && record_.name.data() == nullptr))
    return;
  const bool is_artifact = record_.kind == "artifact";
  const std::string_view name = is_artifact ? record_.name : record_.kind;
  const bool is_new = log_->reported_unknown.insert(is_artifact ? name_id_ : kind_id_).second;
  if (is_new)
    Log(is_artifact ? ImportCode::kUnknownArtifact : ImportCode::kUnknownRecordKind,
        fmt::format("'{}' (first of this file)", name));
  NoteUnknownName(name, is_new ? SimilarKey(record_.kind, name) : std::string());
}

// A new name of a newer PyTorch is written in every log and most often repeatedly; a name that was
// changed by damage is there once.
// `similar`: the known name that the first use resembles.
void TypingStep::NoteUnknownName(std::string_view name, std::string_view similar) {
  constexpr std::size_t kMostNames = 1000;
  auto& uses = log_->similar_names;
  if (const auto known = uses.find(name); known != uses.end()) {
    ++known->second.count;
  } else if (!similar.empty() && uses.size() < kMostNames) {
    uses.emplace(name, SimilarUse{std::string(similar), PlaceOfRecord(), 1});
  }
}

void TypingStep::ReportSimilarNames() {
  for (const auto& [name, use] : log_->similar_names) {
    if (use.count > 1) continue;
    import_log_.Add(
        *rows_, log_->id, use.place, ImportCode::kDamagedHeader,
        fmt::format("'{}' occurs once and differs in one character from '{}'", name, use.known));
  }
}

// A changed digit makes a process or a compile that has one record.
void TypingStep::ReportStrayRecords(const Process& process) {
  const auto add = [&](const ImportPlace& place, ImportCode code, std::string message) {
    import_log_.Add(*rows_, log_->id, place, code, message);
  };
  if (const Process* const other = LikelyWriterOf(process); other != nullptr) {
    add(process.latest_place, ImportCode::kStrayRecord,
        process.state.pid != other->state.pid
            ? fmt::format("the only record of pid {}; pid {} wrote others", process.state.pid,
                          other->state.pid)
            : fmt::format("the only record of pid {} with rank {}; its others have rank {}",
                          process.state.pid, *process.state.rank, *other->state.rank));
    return;
  }
  for (const std::unique_ptr<CompileState>& compile : process.state.compiles) {
    const bool is_frame = compile->ids.frame_id && !compile->is_synthetic;
    if (!is_frame || compile->has_metrics) continue;
    if (compile->end_place) {
      add(*compile->end_place, ImportCode::kMissingMetrics,
          fmt::format("compile {} ended here, and its compilation_metrics are not in the log",
                      compile->label));
    } else if (const CompileState* const other = LikelyCompileOf(process, *compile);
               other != nullptr) {
      add(compile->first_place, ImportCode::kStrayRecord,
          fmt::format("the only record of compile {}; {} has others", compile->label,
                      other->label));
    }
  }
}

// The process of the file that may have written the only record of `process`: its pid differs in
// one digit, or its rank alone. nullptr: none.
const Process* TypingStep::LikelyWriterOf(const Process& process) const {
  constexpr std::size_t kMostProcesses = 1000;
  const auto& processes = log_->processes.processes();
  if (process.first_record_id != process.last_record_id || processes.size() > kMostProcesses)
    return nullptr;
  const ProcessState& own = process.state;
  for (const std::unique_ptr<Process>& other : processes) {
    if (!HasManyRecords(other->first_record_id, other->last_record_id)) continue;
    const ProcessState& state = other->state;
    const bool is_other_rank = own.rank && state.rank && *own.rank != *state.rank;
    if (own.pid == state.pid ? is_other_rank
                             : !is_other_rank && DifferInOneDigit(own.pid, state.pid))
      return other.get();
  }
  return nullptr;
}

ImportPlace TypingStep::PlaceOfRecord() const {
  return {record_.id, record_.line, record_.byte_offset, {}};
}

void TypingStep::Log(ImportCode code, std::string message) {
  ImportPlace place;
  if (log_record_ != nullptr) {
    // One payload may hold millions of odd members.
    if (++logged_count_ > kMostRowsOfRecord) return;
    if (logged_count_ == kMostRowsOfRecord) message += "; what else is odd here is left out";
    place = PlaceOfRecord();
  }
  import_log_.Add(*rows_, log_->id, place, code, message);
}

}  // namespace tlparse

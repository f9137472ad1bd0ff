// Damage of logs and other inputs: what can be read of them, and how much is lost or changed.
#include "findings/damage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/plural.h"
#include "facts/ranks/unread_inputs.h"
#include "findings/context.h"
#include "log/find_logs.h"
#include "queries/findings/damage.h"

namespace tlparse {
namespace {

// Records were lost or changed, or they contradict one another.
constexpr std::string_view kDamage = "(is_damage OR code = 'rank_conflict')";

// A log whose compressed file is cut or damaged. It shows nothing of what its process did later.
void AddUnread(FindingContext& context, RankIndex rank, std::int64_t readable_bytes) {
  const JobParticipant& participant = context.job.participants()[static_cast<std::size_t>(rank)];
  const ProcessStatus& status = context.StatusOf(rank);
  const JobCompile* compile = status.compile_id == 0 ? nullptr : context.LastCompile(rank);
  Finding& finding = context.Add(FindingKind::kImportErrors, FindingSeverity::kWarning);
  context.SetRanks(finding, {rank});
  finding.cause = "the compressed log is cut or damaged";
  finding.title = fmt::format(
      "{} can be read only up to byte {}",
      participant.rank ? context.Who({rank}) + "'s log" : context.Who({rank}), readable_bytes);
  if (status.last_record_us) {
    finding.since_us = status.last_record_us;
    finding.title += ", " + ClockText(*status.last_record_us);
  }
  if (compile != nullptr && status.state == RankState::kCompiling) {
    finding.title += fmt::format(", inside {}", context.Title(*compile));
    finding.compiles = {context.job.string(compile->label_id)};
  }
  finding.title += ": the compressed file is cut or damaged";
  finding.detail = "What its process did after that is not known.";
  if (context.job.participants().size() > 1)
    finding.detail +=
        fmt::format(" What sets {} apart from the others may be due to that: it is not reported.",
                    context.WhoInside({rank}));
  finding.suggestion = "copy the file again, or compare it with the original";
  finding.query = fmt::format(
      "SELECT i.* "
      "FROM import_log i JOIN process p ON p.log_file_id = i.log_file_id WHERE p.id = {}",
      status.process_id);
}

// Of many logs together.
void AddUnread(FindingContext& context, const std::vector<RankIndex>& who) {
  constexpr std::size_t kMost = 10;
  if (who.size() <= kMost) {
    for (const RankIndex one : who) AddUnread(context, one, *context.ReadableBytes(one));
    return;
  }
  Finding& finding = context.Add(FindingKind::kImportErrors, FindingSeverity::kWarning);
  context.SetRanks(finding, who);
  finding.cause = "the compressed log is cut or damaged";
  finding.title = fmt::format(
      "The logs of {} can be read only in part: the compressed files are cut or damaged",
      context.WhoInside(who));
  finding.detail =
      "'tlparse status' shows the last record of each that could be read. What the processes did "
      "after that is not known, and what sets them apart from the others is not reported.";
  finding.suggestion = "copy the files again, or compare them with the originals";
  finding.query =
      fmt::format("SELECT * FROM import_log WHERE run_id = {} AND code = 'damaged_input'",
                  context.job.run_id());
}

// "The log of rank 3", "The recorder's dump of rank 3", "notes/c.log".
std::string SubjectOf(const UnreadInput& input) {
  if (!input.rank) return input.path;
  return fmt::format("The {} of rank {}", input.is_dump ? "recorder's dump" : "log", *input.rank);
}

// Files and directories that may not be opened.
Result<void> AddUnopened(FindingContext& context) {
  constexpr std::size_t kMost = 10;
  ASSIGN_OR_RETURN(const std::vector<UnreadInput> inputs,
                   UnreadInputs(context.database, context.job.run_id()));
  for (std::size_t i = 0; i < std::min(inputs.size(), kMost); ++i) {
    const UnreadInput& input = inputs[i];
    Finding& finding = context.Add(FindingKind::kImportErrors, FindingSeverity::kWarning);
    finding.title = fmt::format("{} cannot be opened: {}", SubjectOf(input), input.reason);
    if (i + 1 == kMost && inputs.size() > kMost)
      finding.title += ", and " + Count(inputs.size() - kMost, "more file");
    if (input.rank) {
      finding.ranks = {*input.rank};
      finding.rank_count = 1;
    }
    finding.cause = "a file or directory of the input cannot be opened";
    finding.detail = fmt::format(
        "{}: what it holds is not known, so that its process is neither compared with the others "
        "nor counted as missing.",
        input.path);
    finding.suggestion = "give this user the right to read it, and ingest again";
    finding.query =
        fmt::format("SELECT * FROM import_log WHERE run_id = {} AND code = 'unread_input'",
                    context.job.run_id());
  }
  return {};
}

}  // namespace

void SayWithoutRecords(const FindingContext& context, Finding& finding, bool is_one,
                       std::string_view others) {
  finding.cause = "no record";
  finding.detail = fmt::format("What {} did is not known, and {} not compared with {}.",
                               is_one ? "its process" : "their processes",
                               is_one ? "it is" : "they are", others);
  finding.suggestion = fmt::format("look at what {} printed, and whether the file was copied whole",
                                   is_one ? "that process" : "those processes");
  finding.query = fmt::format(
      "SELECT id, path, size_bytes, line_count "
      "FROM log_file WHERE run_id = {} AND record_count = 0",
      context.job.run_id());
}

Result<std::string> WhyWithoutRecords(const FindingContext& context,
                                      const std::vector<std::int64_t>& ranks) {
  std::set<std::string> reasons;
  FOR_EACH_ROW(const LogWithoutRecords& row,
               Query<LogWithoutRecords>(context.database, {.run_id = context.job.run_id()})) {
    const std::optional<std::int64_t> rank = RankFromFileName(row.path);
    if (rank && std::binary_search(ranks.begin(), ranks.end(), *rank)) reasons.emplace(row.message);
  }
  return reasons.size() == 1 ? *reasons.begin() : std::string();
}

namespace {

// Logs without a record whose names have no rank: those of ranks are missing ranks.
Result<void> AddWithoutRecords(FindingContext& context) {
  std::vector<std::string> paths;
  std::string why;  // of the first
  FOR_EACH_ROW(const LogWithoutRecords& row,
               Query<LogWithoutRecords>(context.database, {.run_id = context.job.run_id()})) {
    if (context.HasRanks() && RankFromFileName(row.path)) continue;
    if (paths.empty()) why = row.message;
    paths.emplace_back(row.path);
  }
  if (paths.empty()) return {};
  Finding& finding = context.Add(FindingKind::kImportErrors, FindingSeverity::kWarning);
  const bool is_one = paths.size() == 1;
  constexpr std::size_t kMost = 3;
  const std::string names = fmt::format(
      "{}",
      fmt::join(paths.begin(),
                paths.begin() + static_cast<std::ptrdiff_t>(std::min(paths.size(), kMost)), ", "));
  finding.title =
      is_one ? fmt::format("{} holds no record: {}", names, why)
             : fmt::format(
                   "{} logs hold no record: {}{}", paths.size(), names,
                   paths.size() > kMost ? fmt::format(" and {} more", paths.size() - kMost) : "");
  SayWithoutRecords(context, finding, is_one, "others");
  return {};
}

struct ImportErrors {
  std::int64_t total = 0;
  std::int64_t lines = 0;
  bool is_loss = false;  // else the records are odd, and whole
  bool has_error = false;
  bool has_copied = false;  // something that a whole copy of the file would not have
  std::string codes;        // "payload_mismatch ×2, damaged_header ×1"
  std::string advice;       // of the most frequent code
  std::set<std::string> files;
};

// Without the end of the logs that AddUnread reports, and without those that hold no record.
Result<ImportErrors> CountErrors(FindingContext& context) {
  const std::string where = fmt::format(
      "i.run_id = {} AND {} AND i.code <> 'unread_input' AND NOT EXISTS "
      "(SELECT 1 FROM log_file e WHERE e.id = i.log_file_id AND e.record_count = 0) "
      "AND NOT (i.log_file_id IS NOT NULL "
      "AND i.is_cut AND i.log_file_id IN ("
      "SELECT p.log_file_id FROM import_log d JOIN process p ON p.log_file_id = d.log_file_id "
      "WHERE d.code = 'damaged_input' AND d.run_id = {}))",
      context.job.run_id(), kDamage, context.job.run_id());
  ImportErrors errors;
  FOR_EACH_ROW(const ProblemsByCode& row,
               Query<ProblemsByCode>(context.database, {.where = where})) {
    errors.codes += fmt::format("{}{} ×{}", errors.codes.empty() ? "" : ", ", row.code, row.count);
    if (errors.advice.empty()) errors.advice = row.advice;
    errors.total += row.count;
    errors.has_error |= row.has_error;
    errors.lines += row.lines;
    const bool is_whole = row.code == "rank_conflict";
    errors.is_loss |= !is_whole;
    errors.has_copied |= !is_whole && row.code != "refused_pickle";
  }
  FOR_EACH_ROW(const InputWithProblem& row,
               Query<InputWithProblem>(context.database, {.where = where})) {
    if (row.path) errors.files.emplace(*row.path);
  }
  return errors;
}

}  // namespace

Result<void> FindImportErrors(FindingContext& context) {
  std::vector<RankIndex> damaged, unread;
  for (const RankIndex one : context.All()) {
    if (context.ReadableBytes(one)) {
      unread.push_back(one);
    } else if (context.AreDamaged({one})) {
      damaged.push_back(one);
    }
  }
  AddUnread(context, unread);
  RETURN_IF_ERROR(AddUnopened(context));
  RETURN_IF_ERROR(AddWithoutRecords(context));
  ASSIGN_OR_RETURN(const ImportErrors errors, CountErrors(context));
  if (errors.total == 0) return {};
  Finding& finding = context.Add(FindingKind::kImportErrors, FindingSeverity::kWarning);
  const std::string path = errors.files.size() == 1 ? *errors.files.begin() : std::string();
  const std::string where = errors.files.empty() ? "the input"
                            : errors.files.size() == 1
                                ? path.substr(path.rfind('/') + 1)
                                : fmt::format("{} files", errors.files.size());
  finding.title =
      errors.is_loss
          ? fmt::format("{} in {} place{}{} of {}: {}",
                        errors.has_error ? "The input is damaged" : "Records are lost or changed",
                        errors.total, PluralS(errors.total),
                        errors.lines > errors.total ? fmt::format(" ({} lines)", errors.lines) : "",
                        where, errors.codes)
          : fmt::format("Records of one process name different ranks in {}: {}", where,
                        errors.codes);
  finding.cause = errors.codes;
  finding.detail = errors.advice;
  if (!damaged.empty() && context.job.participants().size() > 1)
    finding.detail += fmt::format(
        " What sets {} apart from the others may be the damage: it is "
        "not reported.",
        context.WhoInside(damaged));
  finding.suggestion =
      fmt::format("{}'tlparse import-log' lists where",
                  errors.has_copied ? "compare with the original, or copy it again; " : "");
  finding.query = fmt::format("SELECT * FROM import_log WHERE run_id = {} AND {}",
                              context.job.run_id(), kDamage);
  return {};
}

void SayCut(const FindingContext& context, Finding& finding, std::vector<RankIndex> who) {
  std::sort(who.begin(), who.end());
  const std::size_t all = who.size();
  std::erase_if(who, [&](RankIndex one) { return !context.IsCut(one); });
  if (who.empty()) return;
  const std::string name = context.WhoInside(who);
  const bool is_one = who.size() == 1;
  if (who.size() < all)
    finding.title += is_one ? fmt::format("; {}'s log is cut off", name)
                            : fmt::format("; the logs of {} are cut off", name);
  finding.detail +=
      all == 1 ? std::string(" The log's last record is incomplete: it is cut off, or damaged.")
      : is_one
          ? fmt::format(" The last record of {}'s log is incomplete: it is cut off, or damaged.",
                        name)
          : fmt::format(" The last records of the logs of {} are incomplete: cut off, or damaged.",
                        name);
}

}  // namespace tlparse

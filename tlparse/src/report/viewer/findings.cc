#include "report/viewer/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "facts/job/participants.h"
#include "facts/ranks/ranks.h"
#include "findings/context.h"
#include "report/finding_text.h"
#include "report/viewer/chunk.h"
#include "report/viewer/finding_compiles.h"
#include "report/viewer/place_link.h"

namespace tlparse {
namespace {

// The page shows no more than these; the subcommands show all.
constexpr std::size_t kMostRows = 500;
constexpr std::size_t kMostEvidence = 100;  // of one finding

std::string Joined(const std::vector<std::string>& items) {
  return fmt::format("{}", fmt::join(items, ", "));
}

void AddFinding(const Finding& finding, std::optional<std::int64_t> parent, const PlaceLink& link,
                std::int64_t origin_us, ChunkWriter& writer) {
  const auto add_text = [&writer](std::string_view text) {
    writer.AddText(text.empty() ? std::nullopt : std::optional(text));
  };
  const FindingPlace place = finding.place.value_or(FindingPlace());
  writer.AddNumber(parent);
  writer.AddNumber(finding.launch);
  writer.AddNumber(static_cast<std::int64_t>(finding.rank_count));
  writer.AddNumber(finding.since_us ? std::optional(*finding.since_us - origin_us) : std::nullopt);
  writer.AddNumber(place.line > 0 ? std::optional(place.line) : std::nullopt);
  writer.AddNumber(link.graph_id);
  writer.AddNumber(link.compile_id);
  writer.AddNumber(link.record_id);
  writer.AddNumber(link.line);
  writer.AddText(finding.id);
  writer.AddText(Name(finding.kind));
  writer.AddText(Name(finding.severity));
  writer.AddText(finding.title);
  add_text(finding.detail);
  add_text(FormatRankRanges(finding.ranks));
  add_text(Joined(finding.logs));
  add_text(Joined(finding.compiles));
  add_text(place.file);
  add_text(place.code);
  add_text(link.view);
  add_text(finding.cause);
  add_text(TryText(finding));
  add_text(finding.query);
  add_text(parent ? std::string() : FindingMarkdown(finding));
}

// Findings, and behind each what is evidence of it, which names it as its parent.
Result<void> AddFindings(Database& database, std::int64_t run_id,
                         const std::vector<Finding>& findings, std::int64_t origin_us,
                         ChunkWriter& writer) {
  std::vector<std::pair<std::int64_t, std::int64_t>> compiles_of;  // row of finding, compile
  writer.BeginTable("finding",
                    {"parent", "launch", "rank_count", "since_us", "line", "place_graph_id",
                     "place_compile_id", "place_record_id", "place_line"},
                    {"id", "kind", "severity", "title", "detail", "ranks", "logs", "compiles",
                     "file", "code", "place_view", "cause", "try", "query", "markdown"});
  std::int64_t row = 0;
  for (std::size_t i = 0; i < findings.size() && i < kMostRows; ++i) {
    const std::int64_t parent = row++;
    ASSIGN_OR_RETURN(const std::vector<std::int64_t> compiles,
                     FindingCompiles(database, run_id, findings[i]));
    for (const std::int64_t compile : compiles) compiles_of.emplace_back(parent, compile);
    PlaceLink link;
    if (findings[i].place) {
      ASSIGN_OR_RETURN(link, FindPlaceLink(database, compiles, *findings[i].place));
    }
    AddFinding(findings[i], std::nullopt, link, origin_us, writer);
    const std::vector<Finding>& evidence = findings[i].evidence;  // shown without its place
    for (std::size_t n = 0; n < evidence.size() && n < kMostEvidence; ++n, ++row)
      AddFinding(evidence[n], parent, PlaceLink(), origin_us, writer);
  }
  writer.BeginTable("finding_compile", {"finding", "compile_id"}, {});
  for (const auto& [finding, compile] : compiles_of) {
    writer.AddNumber(finding);
    writer.AddNumber(compile);
  }
  return {};
}

// `answers`: one for each role, else that of all ranks.
void AddClasses(const std::vector<const RanksAnswer*>& answers, ChunkWriter& writer) {
  writer.BeginTable("rank_class",
                    {"ordinal", "ranks_count", "median_compile_s", "is_at_least", "is_damaged",
                     "is_cut", "is_reference"},
                    {"ranks", "role"});
  std::vector<const RankClass*> shown;
  for (const RanksAnswer* const answer : answers) {
    for (std::size_t i = 0; i < answer->classes.size() && shown.size() < kMostRows; ++i) {
      const RankClass& one = answer->classes[i];
      writer.AddNumber(static_cast<std::int64_t>(shown.size()));
      writer.AddNumber(static_cast<std::int64_t>(one.ranks.size()));
      one.median_compile_s > 0 ? writer.AddReal(one.median_compile_s)
                               : writer.AddNumber(std::nullopt);
      writer.AddNumber(std::int64_t{one.is_at_least});
      writer.AddNumber(std::int64_t{one.is_damaged});
      writer.AddNumber(std::int64_t{one.is_cut});
      writer.AddNumber(std::int64_t{i == 0});
      writer.AddText(answer->job().FormatRanks(one.ranks));
      writer.AddText(answers.size() > 1 ? std::optional<std::string_view>(one.role) : std::nullopt);
      shown.push_back(&one);
    }
  }
  writer.BeginTable("aspect", {"class_ordinal"}, {"area", "text"});
  for (std::size_t i = 0; i < shown.size(); ++i) {
    for (const RankAspect& aspect : shown[i]->aspects) {
      writer.AddNumber(static_cast<std::int64_t>(i));
      writer.AddText(Name(aspect.area));
      writer.AddText(aspect.text);
    }
  }
}

// Logs of the launch that lost records, or end early: what their processes did may be missing.
void AddDamage(const RanksAnswer& answer, ChunkWriter& writer) {
  writer.BeginTable("log_damage", {"process_id", "is_damaged", "is_cut"}, {"participant", "path"});
  const std::vector<JobParticipant>& participants = answer.job().participants();
  for (std::size_t i = 0; i < participants.size(); ++i) {
    const bool is_damaged = answer.damage.is_damaged[i] != 0, is_cut = answer.damage.is_cut[i] != 0;
    if (!is_damaged && !is_cut) continue;
    for (const std::int64_t process : participants[i].process_ids) {
      writer.AddNumber(process);
      writer.AddNumber(std::int64_t{is_damaged});
      writer.AddNumber(std::int64_t{is_cut});
      writer.AddText(participants[i].name);
      writer.AddText(participants[i].log_path);
    }
  }
}

// Why the keys of compiles differ from those of most ranks: the matrix of caches shows it.
void AddKeyCauses(const RanksAnswer& answer, ChunkWriter& writer) {
  const Job& job = answer.job();
  const std::vector<CacheFinding>& findings = answer.cache.findings;
  writer.BeginTable("key_cause", {}, {"title", "text"});
  for (std::size_t i = 0; i < findings.size() && i < kMostRows; ++i) {
    writer.AddText(Title(findings[i].cause.kind));
    writer.AddText(findings[i].cause.text);
  }
  writer.BeginTable("key_cause_compile", {"key_cause", "compile_id"}, {});
  for (std::size_t i = 0; i < findings.size() && i < kMostRows; ++i) {
    if (IsNote(findings[i].cause.kind)) continue;
    for (const std::int32_t slot : findings[i].compile_slots) {
      for (const RankIndex rank : findings[i].ranks) {
        const int index = job.CompileOf(rank, slot);
        if (index < 0) continue;
        writer.AddNumber(static_cast<std::int64_t>(i));
        writer.AddNumber(job.compiles()[static_cast<std::size_t>(index)].id);
      }
    }
  }
}

void AddNotes(const RanksAnswer& answer, ChunkWriter& writer) {
  writer.BeginTable("note", {}, {"text"});
  for (std::size_t i = 0; i < answer.notes.size() && i < kMostRows; ++i)
    writer.AddText(answer.notes[i]);
}

// Compiles of different ranks that are the same piece of work.
void AddSlots(const Job* job, ChunkWriter& writer) {
  writer.BeginTable("slot", {"compile_id", "position"}, {"title"});
  if (job == nullptr) return;
  for (const JobCompile& compile : job->compiles()) {
    if (compile.slot < 0) continue;
    writer.AddNumber(compile.id);
    writer.AddNumber(job->SlotPosition(compile.slot));
    writer.AddText(job->slots()[static_cast<std::size_t>(compile.slot)].Title());
  }
}

}  // namespace

Result<std::string> FindingsChunk(Database& database, std::int64_t run_id, std::int64_t origin_us,
                                  std::optional<std::int64_t> asked_launch,
                                  const std::optional<WatchedJob>& watched) {
  FindingsOptions options;
  ASSIGN_OR_RETURN(options.run, NameOfRun(database, run_id));
  options.launch = asked_launch;
  if (watched) options.world_size = watched->world_size;
  RanksOptions ranks_options;
  ranks_options.run = options.run;
  ranks_options.launch = asked_launch;
  ranks_options.world_size = options.world_size;
  RanksAnswer answer;
  std::vector<RanksAnswer> of_roles;  // empty: one role
  std::vector<Finding> findings;
  auto analyzed = AnalyzeRanks(database, ranks_options);
  if (!analyzed && analyzed.error().code != ErrorCode::kNotFound)
    return tl::unexpected<Error>(std::move(analyzed).error());
  if (analyzed) {
    answer = std::move(*analyzed);
    ASSIGN_OR_RETURN(of_roles, AnalyzeRoles(database, answer));
    ASSIGN_OR_RETURN(findings, watched && watched->live
                                   ? FindLiveFindings(database, options, answer, *watched->live)
                                   : FindFindings(database, options, answer));
  } else {
    // Dumps and texts alone have findings as well.
    auto found = watched && watched->live ? FindLiveFindings(database, options, *watched->live)
                                          : FindFindings(database, options);
    if (!found && found.error().code != ErrorCode::kNotFound)
      return tl::unexpected<Error>(std::move(found).error());
    if (found) findings = std::move(*found);
  }
  const std::int64_t launch = analyzed ? answer.job().launch() : asked_launch.value_or(1);
  ASSIGN_OR_RETURN(const std::vector<Launch> launches, LoadLaunches(database, run_id));
  const std::size_t launch_count = std::max<std::size_t>(1, launches.size());
  ChunkWriter writer;
  writer.BeginTable("answer", {"launch", "launch_count", "findings"}, {"markdown"});
  writer.AddNumber(launch);
  writer.AddNumber(static_cast<std::int64_t>(launch_count));
  writer.AddNumber(static_cast<std::int64_t>(findings.size()));
  writer.AddText(FindingsMarkdown(
      findings, FindingsHeading(options.run, launch, launch_count, findings.size())));
  RETURN_IF_ERROR(AddFindings(database, run_id, findings, origin_us, writer));
  std::vector<const RanksAnswer*> compared;
  for (const RanksAnswer& one : of_roles) compared.push_back(&one);
  if (compared.empty() && analyzed) compared = {&answer};
  AddClasses(compared, writer);
  AddDamage(answer, writer);
  AddKeyCauses(answer, writer);
  AddNotes(answer, writer);
  AddSlots(analyzed ? &answer.job() : nullptr, writer);
  return writer.Finish();
}

}  // namespace tlparse

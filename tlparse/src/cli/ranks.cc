// tlparse ranks <db>: one screen for a job of several ranks.
#include "facts/ranks/ranks.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/finding_output.h"
#include "cli/rank_answer.h"
#include "cli/rank_output.h"
#include "cli/role_output.h"
#include "facts/job/job_tree.h"
#include "facts/ranks/rank_votes.h"
#include "findings/context.h"

namespace tlparse {
namespace {

void PrintAspects(const RankClass& one, bool all) {
  constexpr std::size_t kMost = 6;
  const std::size_t most = all ? one.aspects.size() : std::min(one.aspects.size(), kMost);
  for (std::size_t i = 0; i < most; ++i)
    PrintWrapped(fmt::format("{}: {}", one.aspects[i].area, one.aspects[i].text), 4, 6);
  if (most < one.aspects.size())
    PrintWrapped(fmt::format("and {} more (--all)", one.aspects.size() - most), 4, 6);
}

// The times of a log without times are unknown.
std::string CompileTime(const RankClass& one) {
  if (one.median_compile_s <= 0) return "compile time unknown";
  return fmt::format("{}compile time {}{}", one.ranks.size() > 1 ? "median " : "",
                     one.is_at_least ? "at least " : "", HumanDuration(one.median_compile_s));
}

// Logs that end inside a compile do not show what came of it.
const char* SameThing(const Job& job, const RankClass& all_ranks) {
  if (all_ranks.ranks.size() < 2) return ": ";
  const bool is_open =
      std::any_of(job.compiles().begin(), job.compiles().end(),
                  [&](const JobCompile& one) { return one.status == CompileStatus::kUnfinished; });
  return is_open ? " compiled the same, as far as their logs go; " : " compiled the same thing; ";
}

void PrintClasses(const RanksAnswer& answer, bool all) {
  const Job& job = answer.job();
  constexpr std::size_t kMostShown = 12;
  if (answer.classes.size() == 1) {
    const RankClass& all_ranks = answer.classes.front();
    PrintWrapped(fmt::format("{}{}{}", RanksText(job, all_ranks.ranks), SameThing(job, all_ranks),
                             CompileTime(all_ranks)),
                 0, 2);
    return;
  }
  const std::size_t most =
      all ? answer.classes.size() : std::min(answer.classes.size(), kMostShown);
  const bool has_ranks =
      std::any_of(job.participants().begin(), job.participants().end(),
                  [](const JobParticipant& one) { return one.rank.has_value(); });
  for (std::size_t i = 0; i < most; ++i) {
    const RankClass& one = answer.classes[i];
    const char* role = i > 0                                     ? ""
                       : 2 * one.ranks.size() > job.CountOfJob() ? ", the majority"
                       : answer.has_majority
                           ? ", the majority with those alike as far as their logs go"
                           : "; there is no majority, the others are compared with this one";
    PrintWrapped(
        fmt::format("{} ({}{}): {}", RanksText(job, one.ranks),
                    Count(one.ranks.size(), has_ranks ? "rank" : "log"), role, CompileTime(one)),
        0, 2);
    if (one.is_cut && !one.is_damaged)
      PrintWrapped(
          fmt::format("{} incomplete: the log is cut off, or damaged there",
                      one.ranks.size() == 1 ? "The last record is" : "The last records are"),
          4, 6);
    const std::string damage =
        DamageText(job, answer.damage, one.ranks, answer.classes.front().ranks);
    if (i > 0 && !damage.empty())
      PrintWrapped(damage + ": what sets it apart may be due to that", 4, 6);
    if (i > 0 && IsAlikeAsFarAsItGoes(answer, one))
      PrintWrapped(fmt::format("as {}, as far as the log{} go{}",
                               RanksText(job, answer.classes.front().ranks),
                               one.ranks.size() == 1 ? "" : "s", one.ranks.size() == 1 ? "es" : ""),
                   4, 6);
    PrintAspects(one, all);
  }
  if (most < answer.classes.size())
    PrintWrapped(fmt::format("and {} more classes (--all)", answer.classes.size() - most), 0, 2);
}

struct Answer {
  RanksAnswer ranks;
  std::vector<Finding> findings;
  std::vector<TreeRole> roles;
};

void PrintRanks(const Answer& whole, bool all) {
  const RanksAnswer& answer = whole.ranks;
  const Job& job = answer.job();
  PrintHeading(fmt::format("{}: {}, {}, {}", job.Title(),
                           Count(job.participants().size(), "participant"),
                           Count(job.slots().size(), "compile"),
                           Count(answer.cache.lookups.lookups().size(), "cache lookup")));
  PrintFindings(whole.findings);
  PrintRoles(whole.roles);
  PrintClasses(answer, all);
  if (answer.slowest && answer.slowest->compile_s > 1.05 * answer.slowest->median_s) {
    const SlowestRank& slowest = *answer.slowest;
    const auto at_least = [](bool is) { return is ? "at least " : ""; };
    std::string text = fmt::format(
        "slowest{}: {}, {}{} against a median of {}{}",
        slowest.is_of_complete && !slowest.is_at_least ? " of those whose logs have all times" : "",
        RanksText(job, {slowest.rank}), at_least(slowest.is_at_least),
        HumanDuration(slowest.compile_s), at_least(slowest.is_median_at_least),
        HumanDuration(slowest.median_s));
    if (slowest.IsMostInOne())
      text += fmt::format("; {} takes {} longer{}{}", slowest.compile,
                          HumanDuration(slowest.compile_excess_s),
                          slowest.reason.empty() ? "" : ": ", slowest.reason);
    PrintWrapped(text, 0, 2);
  }
  if (!answer.extra_logs.empty())
    PrintWrapped("further logs of a rank: " + job.FormatRanks(answer.extra_logs), 0, 2);
  if (!answer.without_compiles.empty())
    PrintWrapped("no compile in the log of " + RanksText(job, answer.without_compiles), 0, 2);
  constexpr std::size_t kMostNotes = 5;
  const std::size_t most = all ? answer.notes.size() : std::min(answer.notes.size(), kMostNotes);
  for (std::size_t i = 0; i < most; ++i) PrintWrapped("note: " + answer.notes[i], 0, 2);
  if (most < answer.notes.size())
    PrintWrapped(fmt::format("and {} more notes (--all)", answer.notes.size() - most), 0, 2);
}

Result<Answer> Analyze(Database& database, const RanksOptions& options) {
  Answer answer;
  ASSIGN_OR_RETURN(answer.ranks, AnalyzeRanks(database, options));
  FindingsOptions findings_options;
  findings_options.run = options.run;
  findings_options.launch = options.launch;
  findings_options.world_size = options.world_size;
  ASSIGN_OR_RETURN(answer.findings, FindFindings(database, findings_options, answer.ranks));
  const Job& job = answer.ranks.job();
  ASSIGN_OR_RETURN(JobTree tree, LoadJobTree(database, job.run_id(), job.launch()));
  answer.roles = std::move(tree.roles);
  return answer;
}

void WriteSlowest(JsonWriter& json, const RanksAnswer& answer) {
  if (!answer.slowest) {
    json.Null();
    return;
  }
  const SlowestRank& slowest = *answer.slowest;
  json.BeginObject()
      .Key("rank")
      .String(answer.job().participants()[static_cast<std::size_t>(slowest.rank)].name)
      .Key("compile_s")
      .Real(slowest.compile_s)
      .Key("is_at_least")
      .Bool(slowest.is_at_least);
  json.Key("median_s")
      .Real(slowest.median_s)
      .Key("compile")
      .OptionalString(NonEmpty(slowest.compile));
  json.Key("compile_excess_s").Real(slowest.compile_excess_s);
  json.Key("reason").OptionalString(NonEmpty(slowest.reason)).EndObject();
}

// Logs that are not compared, notes and findings.
void WriteRest(JsonWriter& json, const Answer& all) {
  const RanksAnswer& answer = all.ranks;
  const Job& job = answer.job();
  json.Key("extra_logs");
  WriteRanks(json, job, answer.extra_logs);
  json.Key("without_compiles");
  WriteRanks(json, job, answer.without_compiles);
  json.Key("notes").BeginArray();
  for (const std::string& note : answer.notes) json.String(note);
  json.EndArray().Key("findings");
  WriteFindings(json, all.findings);
}

JsonWriter RanksToJson(const Answer& all) {
  const RanksAnswer& answer = all.ranks;
  const Job& job = answer.job();
  JsonWriter json;
  json.BeginObject();
  WriteJob(json, job);
  WriteRoles(json, all.roles);
  json.Key("participants").Int(static_cast<std::int64_t>(job.participants().size()));
  json.Key("compiles").Int(static_cast<std::int64_t>(job.slots().size()));
  json.Key("has_divergence")
      .Bool(answer.HasDivergence())
      .Key("has_majority")
      .Bool(answer.has_majority)
      .Key("classes")
      .BeginArray();
  for (const RankClass& one : answer.classes) {
    json.BeginObject().Key("ranks");
    WriteRanks(json, job, one.ranks);
    const auto known = [&](bool is_at_least) {
      return one.median_compile_s > 0 && one.is_at_least == is_at_least
                 ? std::optional(one.median_compile_s)
                 : std::nullopt;
    };
    json.Key("median_compile_s").OptionalReal(known(false));
    json.Key("least_compile_s").OptionalReal(known(true));
    json.Key("is_damaged")
        .Bool(one.is_damaged)
        .Key("is_cut")
        .Bool(one.is_cut)
        .Key("aspects")
        .BeginArray();
    for (const RankAspect& aspect : one.aspects)
      json.BeginObject()
          .Key("area")
          .String(aspect.area)
          .Key("text")
          .String(aspect.text)
          .EndObject();
    json.EndArray().EndObject();
  }
  json.EndArray()
      .Key("same_key_codes")
      .Int(static_cast<std::int64_t>(answer.cache.same_key_codes.size()))
      .Key("slowest");
  WriteSlowest(json, answer);
  json.Key("world_size").Int(answer.world_size).Key("missing_ranks").BeginObject().Key("count");
  json.Int(static_cast<std::int64_t>(answer.missing_ranks.size()))
      .Key("ranks")
      .String(FormatRankRanges(answer.missing_ranks))
      .EndObject();
  WriteRest(json, all);
  json.EndObject();
  return json;
}

}  // namespace

int RunRanks(std::span<const std::string> arguments) {
  Arguments app(
      "One screen for a job: which ranks compiled the same thing, what sets the others apart, the "
      "slowest, the missing.",
      "ranks");
  RanksOptions options;
  app.Add("--world-size", options.world_size,
          "expected number of ranks (default: as many as the inputs show)")
      .Positive();
  return RunRankAnswer(
      app, arguments, "every class, aspect and note", options.run, options.launch,
      [&](Database& database, bool) { return Analyze(database, options); }, RanksToJson,
      PrintRanks);
}

}  // namespace tlparse

// tlparse ranks <db>: one screen for a job of several ranks.
#include "facts/ranks/ranks.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/finding_output.h"
#include "cli/rank_answer.h"
#include "cli/rank_fields.h"
#include "cli/rank_output.h"
#include "cli/role_output.h"
#include "cli/schemas.h"
#include "facts/job/job_tree.h"
#include "facts/ranks/asked_part.h"
#include "facts/ranks/rank_votes.h"
#include "findings/context.h"

namespace tlparse {
namespace {

void PrintAspects(const RankClass& one, bool all) {
  constexpr std::size_t kMost = 6;
  const std::size_t most = all ? one.aspects.size() : std::min(one.aspects.size(), kMost);
  for (std::size_t i = 0; i < most; ++i)
    PrintWrapped(fmt::format("{}: {}", Name(one.aspects[i].area), one.aspects[i].text), 4, 6);
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

void PrintSlowest(const RanksAnswer& answer) {
  if (!answer.slowest || answer.slowest->compile_s <= 1.05 * answer.slowest->median_s) return;
  const SlowestRank& slowest = *answer.slowest;
  const auto at_least = [](bool is) { return is ? "at least " : ""; };
  std::string text = fmt::format(
      "slowest{}: {}, {}{} against a median of {}{}",
      slowest.is_of_complete && !slowest.is_at_least ? " of those whose logs have all times" : "",
      RanksText(answer.job(), {slowest.rank}), at_least(slowest.is_at_least),
      HumanDuration(slowest.compile_s), at_least(slowest.is_median_at_least),
      HumanDuration(slowest.median_s));
  if (slowest.IsMostInOne())
    text += fmt::format("; {} takes {} longer{}{}", slowest.compile,
                        HumanDuration(slowest.compile_excess_s), slowest.reason.empty() ? "" : ": ",
                        slowest.reason);
  if (!slowest.went_first.empty() && !slowest.AreFirst())
    text += fmt::format("; not counted: {}, which had compiled before the others began",
                        RanksText(answer.job(), slowest.went_first));
  PrintWrapped(text, 0, 2);
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
                               PluralS(one.ranks.size()), one.ranks.size() == 1 ? "es" : ""),
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
  std::vector<RanksAnswer> of_roles = {};  // empty: one role
};

void PrintRanks(const Answer& whole, bool all, const AskedPart& part) {
  const RanksAnswer& answer = whole.ranks;
  const Job& job = answer.job();
  PrintHeading(
      fmt::format("{}: {}, {}, {}", job.Title(), Count(job.participants().size(), "participant"),
                  Count(job.slots().size(), "compile"),
                  Count(answer.cache.lookups.lookups().size(), "cache lookup")),
      part);
  PrintFindings(whole.findings);
  PrintRoles(whole.roles);
  for (const RanksAnswer& one : whole.of_roles) {
    PrintClasses(one, all);
    PrintSlowest(one);
  }
  if (whole.of_roles.empty()) {
    PrintClasses(answer, all);
    PrintSlowest(answer);
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

// Of roles that others are in nothing is said but that they are left out.
std::string KeepAskedInAll(const AskedParticipant& asked, Answer& answer) {
  std::string only = KeepAsked(asked, answer.ranks);
  if (!asked.IsGiven() || answer.of_roles.empty()) return only;
  const std::size_t others = std::erase_if(
      answer.of_roles, [&](const RanksAnswer& one) { return asked.In(one.job()).empty(); });
  for (RanksAnswer& one : answer.of_roles) only = KeepAsked(asked, one);
  if (others > 0)
    only += fmt::format("{}{} that it is not in",
                        only.find("left out") == std::string::npos ? "; left out: " : ", ",
                        Count(others, "role"));
  return only;
}

Result<Answer> Analyze(Database& database, const RanksOptions& options, bool without_findings) {
  Answer answer;
  ASSIGN_OR_RETURN(answer.ranks, AnalyzeRanks(database, options));
  if (!without_findings) {
    FindingsOptions findings_options;
    findings_options.run = options.run;
    findings_options.launch = options.launch;
    findings_options.world_size = options.world_size;
    ASSIGN_OR_RETURN(answer.findings, FindFindings(database, findings_options, answer.ranks));
  }
  const Job& job = answer.ranks.job();
  ASSIGN_OR_RETURN(JobTree tree, LoadJobTree(database, job.run_id(), job.launch()));
  answer.roles = std::move(tree.roles);
  ASSIGN_OR_RETURN(answer.of_roles, AnalyzeRoles(database, answer.ranks));
  return answer;
}

// The classes of the roles, of the ranks of the whole job.
std::vector<RankClass> ClassesOf(const Answer& whole) {
  if (whole.of_roles.empty()) return whole.ranks.classes;
  std::vector<RankClass> classes;
  for (const RanksAnswer& role : whole.of_roles) {
    for (RankClass one : role.classes) {
      for (RankIndex& rank : one.ranks) {
        rank = whole.ranks.job().ParticipantOfProcess(
            role.job().participants()[static_cast<std::size_t>(rank)].process_ids.front());
      }
      classes.push_back(std::move(one));
    }
  }
  return classes;
}

bool HasDivergence(const Answer& whole) {
  return whole.of_roles.empty()
             ? whole.ranks.HasDivergence()
             : std::any_of(whole.of_roles.begin(), whole.of_roles.end(),
                           [](const RanksAnswer& one) { return one.HasDivergence(); });
}

bool HasMajority(const Answer& whole) {
  return whole.of_roles.empty()
             ? whole.ranks.has_majority
             : std::all_of(whole.of_roles.begin(), whole.of_roles.end(),
                           [](const RanksAnswer& one) { return one.has_majority; });
}

using InRanks = WithFindings<RanksAnswer>;

// Of a class whose time is known; `is_at_least`: whether the logs lack times.
template <bool is_at_least>
std::optional<double> TimeOf(const RankClass& of) {
  return of.median_compile_s > 0 && of.is_at_least == is_at_least
             ? std::optional(of.median_compile_s)
             : std::nullopt;
}

RankList MissingRanks(const RanksAnswer& of) {
  return {of.missing_ranks.size(), FormatRankRanges(of.missing_ranks)};
}

}  // namespace

template <>
struct FieldsOf<RankAspect> {
  static constexpr FieldList list{
      Field{"area", [](const RankAspect& of) { return Name(of.area); }, "", kAspectAreas},
      Field{"text", &RankAspect::text},
  };
};

template <>
struct FieldsOf<RankClass> {
  using Of = RankClass;
  static constexpr FieldList list{
      Field{"ranks", Participants{&Of::ranks}},
      Field{"role", OrNull{&Of::role}, "of a job with several roles"},
      Field{"median_compile_s", &TimeOf<false>,
            "of the ranks whose logs have the times of all compiles; null: none has"},
      Field{"least_compile_s", &TimeOf<true>,
            "where median_compile_s is null: of the times that the logs have"},
      Field{"is_damaged", &Of::is_damaged,
            "records of all its logs are lost or changed: what sets it apart may be due to that, "
            "and is no divergence"},
      Field{"is_cut", &Of::is_cut, "the last record of each of its logs is cut off or damaged"},
      Field{"aspects", &Of::aspects},
  };
};

template <>
struct FieldsOf<SlowestRank> {
  using Of = SlowestRank;
  static constexpr FieldList list{
      Field{"rank", kNameOfRank},
      Field{"compile_s", &Of::compile_s},
      Field{"is_at_least", &Of::is_at_least, "its log lacks the time of a compile"},
      Field{"median_s", &Of::median_s},
      Field{"compile", OrNull{&Of::compile}},
      Field{"compile_excess_s", &Of::compile_excess_s},
      Field{"reason", OrNull{&Of::reason}},
  };
};

template <>
struct FieldsOf<RanksAnswer> {
  using Of = RanksAnswer;
  static constexpr FieldList list{
      Inlined{&Of::job},
      Field{"compiles", [](const Of& of) { return of.job().slots().size(); }},
      Field{"same_key_codes", [](const Of& of) { return of.cache.same_key_codes.size(); }},
      Field{"slowest", &Of::slowest},
      Field{"world_size", AtLeast<0>(&Of::world_size),
            "as given with --world-size, else the least number of ranks that the logs, recorder "
            "dumps and profiles show"},
      Field{"missing_ranks", &MissingRanks},
      Field{"extra_logs", Participants{&Of::extra_logs}},
      Field{"without_compiles", Participants{&Of::without_compiles}},
      Field{"notes", &Of::notes},
      Field{"findings", &FindingsOf<Of>},
  };
};

template <>
struct FieldsOf<Answer> {
  static constexpr FieldList list{
      Inlined{&Answer::ranks},
      Missable{"only", kOnlyOf, kOnly},
      Field{"has_divergence", &HasDivergence, "within a role"},
      Field{"has_majority", &HasMajority, "within each role"},
      Field{"classes", &ClassesOf,
            "of each role, the reference first; aspects say what sets a class apart from it"},
      Field{"roles", &Answer::roles, kRolesDescription},
  };
};

std::string RanksSchema() { return SchemaOf<Answer, InRanks>("tlparse ranks --json"); }

int RunRanks(std::span<const std::string> arguments) {
  Arguments app(
      "One screen for a job: which ranks compiled the same thing, what sets the others apart, the "
      "slowest, the missing.",
      "ranks");
  RanksOptions options;
  app.Add("--world-size", options.world_size,
          "expected number of ranks (default: as many as the inputs show)")
      .Positive();
  bool without_findings = false;
  AddWithoutFindings(app, without_findings);
  AskedPart part;
  return RunRankAnswer(
      app, arguments, "every class, aspect and note", options.run, options.launch, part,
      [&](Database& database, bool) -> Result<Answer> {
        ASSIGN_OR_RETURN(Answer answer, Analyze(database, options, without_findings));
        part.only = KeepAskedInAll(part.asked, answer);
        RETURN_IF_ERROR(
            KeepNamed(database, part.asked, options.run, options.launch, answer.findings));
        return answer;
      },
      [&](const Answer& all) {
        return ToJson(all, InRanks{all.ranks, all.ranks.job(), all.findings, part.only});
      },
      [&](const Answer& answer, bool all) { PrintRanks(answer, all, part); });
}

}  // namespace tlparse

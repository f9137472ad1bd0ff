// tlparse collectives <db>: which rank schedules its collectives differently, where, and how.
#include "facts/collectives/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/collectives_issued.h"
#include "cli/commands.h"
#include "cli/finding_output.h"
#include "cli/rank_answer.h"
#include "cli/rank_output.h"

namespace tlparse {
namespace {

std::string Place(std::int64_t ordinal) {
  return ordinal < 0 ? std::string("(none)") : fmt::format("#{}", ordinal + 1);
}

void PrintMismatch(const CollectiveAnswer& answer, const CollectiveMismatch& mismatch) {
  PrintWrapped(fmt::format("{} in {}", Name(mismatch.kind),
                           answer.graphs.Title(answer.job, mismatch.graph_slot)),
               4, 6);
  if (mismatch.kind == MismatchKind::kOrder) {
    const auto print = [](std::int64_t ordinal, const std::string& here, const std::string& there) {
      PrintWrapped(fmt::format("at {}: here {}, there {}", Place(ordinal),
                               here.empty() ? "(none)" : here, there.empty() ? "(none)" : there),
                   6, 8);
    };
    print(mismatch.against_ordinal, mismatch.instead, mismatch.against_item);
    print(mismatch.ordinal, mismatch.item, mismatch.against_instead);
    return;
  }
  PrintWrapped(fmt::format("here {} {}", Place(mismatch.ordinal), mismatch.item), 6, 8);
  PrintWrapped(fmt::format("there {} {}", Place(mismatch.against_ordinal), mismatch.against_item),
               6, 8);
}

// Collectives that one side lacks because its compile of the graph did not end well: once for each
// graph. Returns how many of the mismatches these are.
std::size_t PrintState(const CollectiveAnswer& answer, const CollectiveClass& one, std::size_t at) {
  const CollectiveMismatch& first = one.mismatches[at];
  std::size_t end = at;
  while (end < one.mismatches.size() && one.mismatches[end].kind == MismatchKind::kState &&
         one.mismatches[end].graph_slot == first.graph_slot)
    ++end;
  PrintWrapped(
      fmt::format("no collectives in {} {}: {}", answer.graphs.Title(answer.job, first.graph_slot),
                  first.ordinal < 0 ? "here" : "there", first.reason),
      4, 6);
  for (std::size_t i = at; i < end; ++i) {
    const CollectiveMismatch& mismatch = one.mismatches[i];
    const bool is_here = mismatch.ordinal >= 0;
    PrintWrapped(fmt::format("{} {} {}", is_here ? "here" : "there",
                             Place(is_here ? mismatch.ordinal : mismatch.against_ordinal),
                             is_here ? mismatch.item : mismatch.against_item),
                 6, 8);
  }
  return end - at;
}

void PrintMismatches(const CollectiveAnswer& answer, const CollectiveClass& one, bool all) {
  constexpr std::size_t kMost = 5;
  if (!one.mismatches.empty()) PrintWrapped("first divergence:", 2, 4);
  std::size_t shown = 0;
  while (shown < one.mismatches.size() && (all || shown < kMost)) {
    if (one.mismatches[shown].kind == MismatchKind::kState) {
      shown += PrintState(answer, one, shown);
    } else {
      PrintMismatch(answer, one.mismatches[shown++]);
    }
  }
  const std::size_t more = one.mismatches.size() - shown + one.left_out;
  if (more > 0) PrintWrapped(fmt::format("and {} more (--all)", more), 4, 6);
}

void PrintCollectives(const CollectiveAnswer& answer, bool all) {
  const Job& job = answer.job;
  if (job.participants().empty()) {
    PrintHeading(fmt::format("run {}: no log", job.run_name()));
    if (answer.issued.empty() && answer.issued.not_compared.empty())
      PrintWrapped("no collective is in its profiles and dumps", 0, 2);
    else if (answer.issued.empty())
      PrintWrapped("no collective with its group and number is in its profiles and dumps", 0, 2);
    return PrintIssued(answer, all);
  }
  PrintHeading(fmt::format("{}: {}", job.Title(), Count(job.participants().size(), "participant")));
  if (answer.classes.size() == 1) {
    const CollectiveClass& one = answer.classes.front();
    PrintWrapped(one.collectives + one.waits == 0
                     ? "no collectives in this run's graphs"
                     : fmt::format("{}: the same {} and {}", RanksText(job, one.ranks),
                                   Count(one.collectives, "collective"), Count(one.waits, "wait")),
                 0, 2);
  }
  for (std::size_t i = 0; i < answer.classes.size(); ++i) {
    const CollectiveClass& one = answer.classes[i];
    if (answer.classes.size() > 1) {
      PrintWrapped(
          fmt::format(
              "{}: {}, {}{}", RanksText(job, one.ranks), Count(one.collectives, "collective"),
              Count(one.waits, "wait"),
              i == 0 ? (answer.has_majority
                            ? " (the majority)"
                            : " (there is no majority: the others are compared with this class)")
                     : ""),
          0, 2);
    }
    const std::string damage =
        DamageText(job, answer.damage, one.ranks, answer.classes.front().ranks);
    if (i > 0 && !damage.empty()) PrintWrapped(damage + ": what follows may be due to that", 2, 4);
    PrintMismatches(answer, one, all);
    for (const std::string& note : one.notes) PrintWrapped("note: " + note, 2, 4);
  }
  for (const CollectiveParity& parity : answer.parity) {
    const std::string where = fmt::format("{} of {}", answer.graphs.Title(job, parity.graph_slot),
                                          RanksText(job, parity.ranks));
    if (parity.differs)
      PrintWrapped(fmt::format("scheduler and generated code differ in {}: {}", where,
                               parity.first_difference),
                   0, 2);
    if (parity.missing_waits > 0) {
      PrintWrapped(fmt::format("note: {} without a wait in {}",
                               Count(parity.missing_waits, "collective"), where),
                   0, 2);
    }
  }
  if (!answer.from_code_only.empty()) {
    PrintWrapped(fmt::format("note: {} logged no schedule (cache hit, or a version without it): "
                             "compared through the generated code",
                             RanksText(job, answer.from_code_only)),
                 0, 2);
  }
  PrintIssued(answer, all);
}

// Kinds of findings whose subject is a collective; stuck: in one.
constexpr FindingKind kOfCollectives[] = {FindingKind::kCollectiveDivergence,
                                          FindingKind::kCollectiveNotReached, FindingKind::kStuck};

void WriteMismatch(JsonWriter& json, const CollectiveAnswer& answer,
                   const CollectiveMismatch& mismatch) {
  const auto place = [](std::int64_t ordinal) {
    return ordinal < 0 ? std::nullopt : std::optional(ordinal);
  };
  json.BeginObject().Key("kind").String(Name(mismatch.kind));
  json.Key("graph").String(answer.graphs.Title(answer.job, mismatch.graph_slot));
  json.Key("ordinal").OptionalInt(place(mismatch.ordinal));
  json.Key("against_ordinal").OptionalInt(place(mismatch.against_ordinal));
  json.Key("item").OptionalString(NonEmpty(mismatch.item));
  json.Key("against_item").OptionalString(NonEmpty(mismatch.against_item));
  json.Key("instead").OptionalString(NonEmpty(mismatch.instead));
  json.Key("against_instead").OptionalString(NonEmpty(mismatch.against_instead));
  json.Key("reason").OptionalString(NonEmpty(mismatch.reason)).EndObject();
}

void WriteCollectiveClass(JsonWriter& json, const CollectiveAnswer& answer,
                          const CollectiveClass& one) {
  json.BeginObject().Key("ranks");
  WriteRanks(json, answer.job, one.ranks);
  json.Key("collectives").Int(static_cast<std::int64_t>(one.collectives));
  json.Key("waits").Int(static_cast<std::int64_t>(one.waits));
  json.Key("mismatches").BeginArray();
  for (const CollectiveMismatch& mismatch : one.mismatches) WriteMismatch(json, answer, mismatch);
  json.EndArray().Key("left_out").Int(static_cast<std::int64_t>(one.left_out));
  json.Key("notes");
  WriteStrings(json, one.notes);
  json.Key("is_divergent").Bool(answer.IsDivergent(one)).EndObject();
}

void WriteParity(JsonWriter& json, const CollectiveAnswer& answer, const CollectiveParity& parity) {
  json.BeginObject().Key("graph").String(answer.graphs.Title(answer.job, parity.graph_slot));
  json.Key("ranks");
  WriteRanks(json, answer.job, parity.ranks);
  json.Key("scheduled").Int(static_cast<std::int64_t>(parity.scheduled));
  json.Key("generated").Int(static_cast<std::int64_t>(parity.generated));
  json.Key("missing_waits").Int(static_cast<std::int64_t>(parity.missing_waits));
  json.Key("differs").Bool(parity.differs);
  json.Key("first_difference").OptionalString(NonEmpty(parity.first_difference)).EndObject();
}

JsonWriter CollectivesToJson(const CollectiveAnswer& answer, const std::vector<Finding>& findings) {
  JsonWriter json;
  json.BeginObject();
  WriteJob(json, answer.job);
  json.Key("participants").Int(static_cast<std::int64_t>(answer.job.participants().size()));
  json.Key("has_divergence").Bool(answer.HasDivergence());
  json.Key("has_majority").Bool(answer.has_majority);
  json.Key("classes").BeginArray();
  for (const CollectiveClass& one : answer.classes) WriteCollectiveClass(json, answer, one);
  json.EndArray().Key("parity").BeginArray();
  for (const CollectiveParity& parity : answer.parity) WriteParity(json, answer, parity);
  json.EndArray().Key("from_code_only");
  WriteRanks(json, answer.job, answer.from_code_only);
  json.Key("issued");
  WriteIssued(json, answer);
  json.Key("not_compared");
  WriteNotCompared(json, answer);
  json.Key("findings");
  WriteFindings(json, findings);
  json.EndObject();
  return json;
}

}  // namespace

int RunCollectives(std::span<const std::string> arguments) {
  Arguments app(
      "Which rank schedules its collectives differently, where, and how; the scheduler's list "
      "against generated code; and the collectives that each rank issued, from recorder dumps, "
      "profiles or libtrace's logs.",
      "collectives");
  CollectiveOptions options;
  return RunSubjectAnswer(app, arguments, "every mismatch", options, kOfCollectives,
                          AnalyzeCollectives, CollectivesToJson, PrintCollectives);
}

}  // namespace tlparse

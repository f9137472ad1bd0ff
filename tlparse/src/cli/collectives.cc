// tlparse collectives <db>: which rank schedules its collectives differently, where, and how.
#include "facts/collectives/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/collectives_issued.h"
#include "cli/commands.h"
#include "cli/issued_fields.h"
#include "cli/rank_answer.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"

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

void PrintParity(const CollectiveAnswer& answer) {
  for (const CollectiveParity& parity : answer.parity) {
    const std::string where =
        fmt::format("{} of {}", answer.graphs.Title(answer.job, parity.graph_slot),
                    RanksText(answer.job, parity.ranks));
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
}

void PrintCollectives(const CollectiveAnswer& answer, bool all, const AskedPart& part) {
  const Job& job = answer.job;
  if (job.participants().empty()) {
    PrintHeading(fmt::format("run {}: no log", job.run_name()), part);
    if (answer.issued.empty() && answer.issued.not_compared.empty() && answer.problems.empty())
      PrintWrapped("no collective is in its profiles and dumps", 0, 2);
    return PrintIssued(answer, all);
  }
  PrintHeading(fmt::format("{}: {}", job.Title(), Count(job.participants().size(), "participant")),
               part);
  if (answer.classes.size() == 1) {
    const CollectiveClass& one = answer.classes.front();
    PrintWrapped(one.collectives + one.waits == 0
                     ? "no collectives in this run's graphs"
                     : fmt::format("{}: {}{} and {}", RanksText(job, one.ranks),
                                   one.ranks.size() > 1 ? "the same " : "",
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
  PrintParity(answer);
  if (!answer.from_code_only.empty()) {
    PrintWrapped(fmt::format("note: {} logged no schedule (cache hit, or a version without it): "
                             "compared through the generated code",
                             RanksText(job, answer.from_code_only)),
                 0, 2);
  }
  if (!answer.not_written.empty()) {
    PrintWrapped("note: no recorder dump or profile says what ranks issued; " + answer.not_written,
                 0, 2);
  }
  PrintIssued(answer, all);
}

// Kinds of findings whose subject is a collective; stuck: in one.
constexpr FindingKind kOfCollectives[] = {FindingKind::kCollectiveDivergence,
                                          FindingKind::kCollectiveNotReached, FindingKind::kStuck};

using InCollectives = WithFindings<CollectiveAnswer>;

// Null: it is not there.
template <std::int64_t CollectiveMismatch::*member>
std::optional<std::int64_t> OrdinalOf(const CollectiveMismatch& of) {
  return of.*member < 0 ? std::nullopt : std::optional(of.*member);
}

const IssuedJob* IssuedOf(const CollectiveAnswer& of) {
  return of.issued.empty() ? nullptr : &of.issued;
}

}  // namespace

template <>
struct LastOf<MismatchKind> {
  static constexpr MismatchKind value = MismatchKind::kState;
};

template <>
struct FieldsOf<CollectiveMismatch> {
  using Of = CollectiveMismatch;
  static constexpr FieldList list{
      Field{"kind", &Of::kind},
      Field{"graph", kGraphTitle},
      Field{"ordinal", &OrdinalOf<&Of::ordinal>, "0-based, in the graph; null: not there"},
      Field{"against_ordinal", &OrdinalOf<&Of::against_ordinal>},
      Field{"item", OrNull{&Of::item}},
      Field{"against_item", OrNull{&Of::against_item}},
      Field{"instead", OrNull{&Of::instead},
            "for order: what this side has where the others have the collective"},
      Field{"against_instead", OrNull{&Of::against_instead},
            "for order: what the others have where this side has the collective"},
      Field{"reason", OrNull{&Of::reason}},
  };
};

template <>
struct FieldsOf<CollectiveClass> {
  using Of = CollectiveClass;
  static constexpr FieldList list{
      Field{"ranks", Participants{&Of::ranks}},
      Field{"collectives", &Of::collectives, "without waits"},
      Field{"waits", &Of::waits},
      Field{"mismatches", &Of::mismatches,
            "against the reference; the first is the first divergence"},
      Field{"left_out", &Of::left_out},
      Field{"notes", &Of::notes},
      Field{"is_divergent",
            [](const Of& of, const InCollectives& in) { return in.answer.IsDivergent(of); },
            "false for the first class, and where damage of the logs may be why it differs"},
  };
};

template <>
struct FieldsOf<CollectiveParity> {
  using Of = CollectiveParity;
  static constexpr FieldList list{
      Field{"graph", kGraphTitle},
      Field{"ranks", Participants{&Of::ranks}},
      Field{"scheduled", &Of::scheduled},
      Field{"generated", &Of::generated},
      Field{"missing_waits", &Of::missing_waits},
      Field{"differs", &Of::differs},
      Field{"first_difference", OrNull{&Of::first_difference}},
  };
};

template <>
struct FieldsOf<CollectiveAnswer> {
  using Of = CollectiveAnswer;
  static constexpr FieldList list{
      Inlined{&Of::job},
      Missable{"only", kOnlyOf, kOnly},
      Field{"has_divergence", &Of::HasDivergence},
      Field{"has_majority", &Of::has_majority},
      Field{"classes", &Of::classes, "the reference first"},
      Field{"parity", &Of::parity, "scheduler against generated code, where something is off"},
      Field{"from_code_only", Participants{&Of::from_code_only}},
      Field{"issued", &IssuedOf,
            "what ranks really issued, as recorder dumps, profiles and libtrace tell; null: none "
            "of them is in the run"},
      Field{"not_written", OrNull{&Of::not_written},
            "where `issued` is null though graphs have collectives: since when PyTorch writes "
            "recorder dumps of gloo, unless some log is of such a version"},
      Field{"not_compared",
            [](const Of& of) -> const std::vector<NotCompared>& { return of.issued.not_compared; },
            "collectives in profiles, dumps and libtrace's logs that are not in `issued`"},
      Field{"profiled_messages",
            [](const Of& of) -> const std::vector<ProfiledMessages>& {
              return of.issued.profiled_traffic.ranks;
            },
            "sends and receives in the profiles, by rank"},
      Field{"profiled_pairs",
            [](const Of& of) -> const std::vector<ProfiledPair>& {
              return of.issued.profiled_traffic.pairs;
            },
            "the same from one rank to another, where the profiles tell the peer: those with "
            "kernels of "
            "NCCL, or with record_shapes"},
      Field{"findings", &FindingsOf<Of>,
            "of what tlparse findings lists: those of kind collective_divergence, "
            "collective_not_reached or stuck, or with one of these among their evidence"},
  };
};

std::string CollectivesSchema() {
  return SchemaOf<CollectiveAnswer, InCollectives>("tlparse collectives --json");
}

int RunCollectives(std::span<const std::string> arguments) {
  Arguments app(
      "Which rank schedules its collectives differently, where, and how; the scheduler's list "
      "against generated code; and the collectives that each rank issued, from recorder dumps, "
      "profiles or libtrace's logs.",
      "collectives");
  CollectiveOptions options;
  app.Flag("--stack", options.with_stacks,
           "with the user's frames that led to each call shown, by recorder dumps");
  return RunSubjectAnswer(app, arguments, "every mismatch", options, kOfCollectives,
                          AnalyzeCollectives, TakeCollectives, PrintCollectives);
}

}  // namespace tlparse

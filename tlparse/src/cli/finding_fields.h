// The fields of a finding, of the answers that hold findings.
#pragma once

#include "base/fields.h"
#include "facts/compiles/change_fields.h"
#include "findings/findings.h"

namespace tlparse {

template <>
struct LastOf<FindingSeverity> {
  static constexpr FindingSeverity value = FindingSeverity::kNote;
};
template <>
struct LastOf<ExperimentVerdict> {
  static constexpr ExperimentVerdict value = ExperimentVerdict::kInconclusive;
};

template <>
struct FieldsOf<FindingPlace> {
  using Of = FindingPlace;
  static constexpr FieldList list{
      Field{"file", &Of::file},
      Field{"line", Positive{&Of::line}},
      Field{"code", OrNull{&Of::code}},
  };
};

template <>
struct FieldsOf<FindingRow> {
  static constexpr std::string_view name = "row";
  static constexpr std::string_view description = "SELECT * FROM <table> WHERE id = <id>";
  static constexpr FieldList list{
      Field{"table", &FindingRow::table},
      Field{"id", &FindingRow::id},
  };
};

template <>
struct FieldsOf<EvidenceLine> {
  using Of = EvidenceLine;
  static constexpr FieldList list{
      Inlined{&Of::row},
      Field{"file", &Of::file},
      Field{"line", &Of::line, "of the text; null: a file without lines"},
      Field{"byte_offset", &Of::byte_offset, "of the record's header, in the decompressed file"},
      Field{"record", OrNull{&Of::record}, "kind of the record, or name of the artifact"},
      Field{"text", &Of::text, "quoted from the input, cut, without control characters"},
  };
};

template <>
struct LastOf<LookedInput> {
  static constexpr LookedInput value = LookedInput::kMemorySnapshot;
};
template <>
struct FieldsOf<LookedFor> {
  using Of = LookedFor;
  static constexpr FieldList list{
      Field{"input", &Of::input},
      Field{"found", OrNull{&Of::found},
            "of which ranks, 0,1,3, or logs without rank; job: it is one of the whole job"},
      Field{"not_found", OrNull{&Of::not_found}, "it is not among the inputs of these"},
      Field{"not_known", OrNull{&Of::not_known}, "the file is damaged or cannot be read"},
  };
};

template <>
struct FieldsOf<FindingExperiment> {
  using Of = FindingExperiment;
  static constexpr FieldList list{
      Field{"id", &Of::id},
      Field{"verdict", &Of::verdict,
            "the finding is gone; is still there; is gone, but others came or a note is left; the "
            "run does not show it"},
      Field{"reason", &Of::reason},
  };
};

template <>
struct FieldsOf<Finding> {
  using Of = Finding;
  static constexpr std::string_view name = "finding";
  static constexpr FieldList list{
      Field{"id", &Of::id,
            "made from kind, function, file:line and the cause without numbers: the same cause in "
            "another run has the same id"},
      Field{"kind", &Of::kind,
            "a page of docs/playbooks; tlparse explain lists the kinds and what each means"},
      Field{"severity", &Of::severity,
            "error: wrong or lost work; warning: costs time, or ranks do not do the same; note: "
            "worth knowing"},
      Field{"title", &Of::title, "one sentence: who, what, where"},
      Field{"detail", &Of::detail},
      Field{"launch", &Of::launch, "ordinal, 1 is the first"},
      Field{"ranks", &Of::ranks,
            "ascending; those in which the cause lies, never those that merely wait; empty: all, "
            "or unranked"},
      Field{"rank_count", &Of::rank_count, "participants concerned"},
      Field{"roles", &Of::roles,
            "the roles of these ranks, as replicas or shards, or pipeline part 1 of 2; empty: all "
            "ranks have "
            "one "
            "role, or roles are not known"},
      Field{"logs", &Of::logs, "names of participants without rank"},
      Field{"compiles", &Of::compiles, "labels"},
      Field{"since_us", &Of::since_us, "microseconds since the epoch, UTC"},
      Field{"place", &Of::place},
      Field{"cause", OrNull{&Of::cause}},
      Field{"try", OrNull{&Of::suggestion}},
      Field{"changes", &Of::changes,
            "what of it can be done from outside of the program, all of it together, by tlparse "
            "try; empty: nothing"},
      Field{"experiment", &Of::experiment,
            "the last that tlparse try made for this finding: a row of the table experiment"},
      Field{"evidence", &Of::evidence, "symptoms of the same cause"},
      Field{"query", &Of::query, "SQL that gives the rows behind title and detail"},
      Field{"rows", &Of::rows,
            "the first of these rows, up to 6, those of the finding's ranks before others"},
      Field{"row_count", &Of::row_count, "how many rows there are, up to 1000"},
      Field{"has_more_rows", &Of::has_more_rows,
            "there are more rows than row_count: they were not counted"},
      Missable{"log_lines", &Of::lines, "with --evidence: lines of the inputs behind these rows"},
      Missable{"looked_for", &Of::looked_for,
               "with --evidence: inputs that would say more of it, and of whom they are there"},
  };
};

}  // namespace tlparse

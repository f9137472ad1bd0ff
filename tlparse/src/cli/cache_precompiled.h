// The part of the answer of `tlparse cache` on precompiled code, and on one artifact for all ranks.
#pragma once

#include "base/fields.h"
#include "cli/rank_fields.h"
#include "facts/cache/cache.h"
#include "facts/cache/one_artifact.h"

namespace tlparse {

void PrintPrecompiled(const CacheAnswer& answer);
void PrintOneArtifact(const CacheAnswer& answer);

template <>
struct FieldsOf<GuardChange> {
  using Of = GuardChange;
  static constexpr std::string_view name = "guard_change";
  static constexpr std::string_view description = "what the code of two sides needs";
  static constexpr FieldList list{
      Field{"a", OrNull{&Of::a}, "SCALE == 2; null: that side does not check it"},
      Field{"b", OrNull{&Of::b}},
  };
};

template <>
struct FieldsOf<SavedEntry> {
  using Of = SavedEntry;
  static constexpr FieldList list{
      Field{"key", &Of::key, "of the qualified name and first line alone"},
      Field{"function", &Of::function, "qualified name"},
      Field{"line", Positive{&Of::line}},
      Field{"device_type", OrNull{&Of::device_type}},
      Field{"codes", &Of::codes},
      Field{"backends", &Of::backends, "compiled graphs that these call"},
      Field{"missing_backends", &Of::missing_backends,
            "not held by the process: code that calls them was not saved"},
      Field{"error", OrNull{&Of::error}, "why it was not saved"},
      Field{"ranks", Participants{&Of::ranks}},
      Field{"record_id", &Of::record_id, "of the first of them"},
  };
};

template <>
struct FieldsOf<DifferentEntry> {
  using Of = DifferentEntry;
  static constexpr FieldList list{
      Field{"key", &Of::key},
      Field{"function", &Of::function},
      Field{"line", Positive{&Of::line}},
      Field{"ranks", Participants{&Of::ranks}, "the most that saved the same"},
      Field{"other_ranks", Participants{&Of::other_ranks}},
      Field{"changes", &Of::changes, "a: of ranks, b: of other_ranks"},
      Field{"record_id", &Of::record_id},
      Field{"other_record_id", &Of::other_record_id},
  };
};

template <>
struct FieldsOf<CompiledAgain> {
  using Of = CompiledAgain;
  static constexpr FieldList list{
      Field{"function", &Of::function},
      Field{"file", OrNull{&Of::file}},
      Field{"line", Positive{&Of::line}},
      Field{"loaded", &Of::loaded},
      Field{"compiled", &Of::compiled, "label, of the first rank"},
      Field{"ranks", Participants{&Of::ranks}},
      Field{"changes", &Of::changes,
            "a: the loaded code that differs least, b: the new one; empty: their guards are equal"},
      Field{"seconds", &Of::seconds, "of the rank that took longest; null: not in the log"},
  };
};

template <>
struct FieldsOf<PrecompiledCode> {
  using Of = PrecompiledCode;
  static constexpr std::string_view name = "precompiled";
  static constexpr std::string_view description =
      "code that is kept for other processes (torch._dynamo.config.caching_precompile)";
  static constexpr FieldList list{
      Field{"loaded", &Of::loaded, "compiles whose code was loaded: compile.status is loaded"},
      Field{"compiled_again", &Of::again,
            "functions of which code was loaded, and which were compiled all the same"},
      Field{"entries", &Of::entries, "saved, as of the last call of each process that did"},
      Field{"different_entries", &Of::different, "that ranks saved with different guards"},
  };
};

template <>
struct FieldsOf<ArtifactOfRank> {
  using Of = ArtifactOfRank;
  static constexpr std::string_view name = "artifact_of_rank";
  static constexpr std::string_view description =
      "the rank whose artifact serves most (null: no log tells), and whom";
  static constexpr FieldList list{
      Field{"of",
            [](const Of& of, const auto& in) {
              return of.of < 0 ? std::optional<std::string>()
                               : in.job.participants()[static_cast<std::size_t>(of.of)].name;
            }},
      Field{"served", Participants{&Of::served}},
      Field{"others", Participants{&Of::others}},
  };
};

template <>
struct FieldsOf<OtherKeys> {
  using Of = OtherKeys;
  static constexpr FieldList list{
      Field{"kind", &Of::kind},
      Field{"text", &Of::text},
      Field{"ranks", Participants{&Of::ranks}},
      Field{"lookups", &Of::lookups, "of these ranks"},
  };
};

template <>
struct FieldsOf<OtherGuards> {
  using Of = OtherGuards;
  static constexpr FieldList list{
      Field{"function", &Of::function},
      Field{"file", OrNull{&Of::file}},
      Field{"line", Positive{&Of::line}},
      Field{"ranks", Participants{&Of::ranks}},
      Field{"is_absent", &Of::is_absent, "the rank of the artifact did not compile the function"},
      Field{"changes", &Of::changes, "a: of the artifact, b: of these ranks"},
  };
};

template <>
struct FieldsOf<OneArtifact> {
  using Of = OneArtifact;
  static constexpr std::string_view name = "one_artifact";
  static constexpr std::string_view description =
      "would what one rank saves (torch.compiler.save_cache_artifacts) serve the others";
  static constexpr FieldList list{
      Field{"caches", &Of::caches, "by the keys of the compile caches"},
      Field{"keys", &Of::keys, "why the others look for other keys"},
      Field{"code", &Of::code, "by the guards of precompiled code"},
      Field{"guards", &Of::guards, "what the code of the others needs otherwise"},
      Field{"bypassed", &Of::bypassed},
      Field{
          "of_named_graphs", &Of::of_named_graphs,
          "lookups of aotautograd, not judged: their keys hold the name of a graph of the process"},
  };
};

}  // namespace tlparse

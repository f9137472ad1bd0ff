// Findings about ranks that differ from the others. Internal to findings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facts/job/exits.h"
#include "findings/context.h"

namespace tlparse {

// A difference as a finding. In one compile differences of lower priority explain those of higher
// priority.
struct Difference {
  Finding finding;
  int priority = 0;
  std::int32_t position = -1;      // of the first compile where it shows; -1: in none
  bool is_odd_known = false;       // else both sides are named
  bool is_of_hashes = false;       // of names of groups, or of no text: explains nothing else
  std::vector<RankIndex> unknown;  // whose logs end before it
};

// Another build or option: what a rank was given, not what became of it.
bool IsOfConfiguration(const RankAspect& aspect);

// The options with their first values.
std::vector<Change> OptionsOfReference(const std::vector<RankOption>& options);
// "; cuda_matmul_settings is set by torch.set_float32_matmul_precision", for each that a call sets.
std::string HowToSet(const std::vector<RankOption>& options);

// "8 → s52": a size that is fixed on one side, and a symbol on the other. `change` is a ChangeText.
bool IsOfDynamicSize(std::string_view change);
// Whether an input of a graph is one of the model, by its name.
bool IsOfModel(std::string_view text);

class DivergenceFinder {
 public:
  // `exits`: of a job without ranks.
  DivergenceFinder(FindingContext& context, std::vector<ProcessExit> exits)
      : context_(context),
        exits_(std::move(exits)),
        answer_(context.ranks),
        job_(context.job),
        classes_(context.ranks.classes) {}

  void Run();

 private:
  void Examine(const RankClass& one);
  void Report(const RankClass& one, std::vector<Difference> own);
  void TakeOutOwnThings();
  void JoinAlike();
  // `groups` of ranks differ in one of these.
  void TellOwnThings(const std::vector<RankAspect>& own, std::size_t groups);
  void CompareLogs();
  bool HasRank(const std::vector<RankIndex>& participants) const;
  bool CompiledTheSame(RankIndex a, RankIndex b) const;
  bool RanInTurn(RankIndex a, RankIndex b) const;
  std::optional<Difference> Describe(const RankClass& one, const RankAspect& aspect);
  std::optional<Difference> DescribeLookup(const RankClass& one, const RankAspect& aspect,
                                           const std::string& where);
  Difference DescribeGraphs(const RankClass& one, const RankAspect& aspect) const;
  // A sentence on a file of which the class ran another text than the reference; empty: none is known.
  std::string OtherText(const RankClass& one, const std::string& file) const;
  // The same of a file of another folder, with its name, where the graphs first differ.
  struct OtherFile {
    std::string name, sentence;
  };
  OtherFile OtherFolder(const RankClass& one, const RankAspect& aspect) const;
  Difference DescribeOptions(const RankClass& one, const RankAspect& aspect) const;
  std::vector<RankIndex> WithoutOutcome(const RankClass& one, const RankAspect& aspect) const;
  std::string Pair(const RankClass& one, const RankAspect& aspect, std::string_view of_one,
                   std::string_view of_several, std::string_view of_both,
                   const std::string& what) const;
  std::string TitleOfBreak(const RankClass& one, const RankAspect& aspect, const std::string& where,
                           const std::string& at, const std::string& cause) const;
  const std::vector<RankIndex>& Reference() const { return classes_.front().ranks; }
  // The ranks that lack what an aspect says.
  const std::vector<RankIndex>& Lacking(const RankClass& one, const RankAspect& aspect) const {
    return aspect.is_on_others ? one.ranks : Reference();
  }
  bool IsOfOwnFunction(const RankClass& one, const RankAspect& aspect) const;
  bool WentOnWithout(const RankClass& one, const RankAspect& aspect) const;
  bool AreWithoutGradients(const RankAspect& aspect) const;
  bool EndedAfterFailure(const RankClass& one, const RankAspect& aspect) const;
  std::string RecompiledText(const RankAspect& aspect, const std::vector<RankIndex>& with,
                             const std::string& reason) const;
  bool HaveBothGraphs(const RankClass& one, std::int32_t slot) const;
  bool WereForSizes(const RankClass& one, std::int32_t slot) const;
  bool HaveSeveralSizes(const RankClass& one) const;
  bool IsForInference(const RankClass& one, std::int32_t slot) const;
  // Whether some rank compiled the function of this slot again.
  bool WasRecompiled(const JobSlot& of) const;
  std::string WhereOf(const RankClass& one, const RankAspect& aspect) const;
  bool AreFewRecompiles(const RankClass& one, const RankAspect& aspect) const;
  std::string TitleOfOther(const RankClass& one, const RankAspect& aspect) const;
  std::string WhoHave(const std::vector<RankIndex>& lacking, const RankAspect& aspect) const;
  std::string TitleOfMissing(const RankClass& one, const RankAspect& aspect,
                             const std::string& where, const std::string& reason) const;
  Difference Of(const RankClass& one, const RankAspect& aspect, FindingKind kind,
                FindingSeverity severity) const;
  // The finding on the end of one of these ranks, which explains missing compiles; nullptr: none.
  Finding* EndOf(const std::vector<RankIndex>& ranks);
  bool IsUnfinished(const RankClass& one, const std::vector<std::int32_t>& slots) const;

  FindingContext& context_;
  const std::vector<ProcessExit> exits_;
  const RanksAnswer& answer_;
  const Job& job_;
  // The answer's classes, without differences that every rank or group of ranks has.
  std::vector<RankClass> classes_;
};

}  // namespace tlparse

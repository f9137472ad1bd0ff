// Compiles that some ranks lack, and those of another function.
#include "queries/findings/missing_compiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/plural.h"
#include "facts/job/job_status.h"
#include "facts/text/shorten.h"
#include "findings/divergences.h"

namespace tlparse {
namespace {

// "torch.ops._c10d_functional.all_reduce_.default" → "all_reduce"
std::string NameOfCollective(std::string_view op) {
  if (op.ends_with(".default")) op.remove_suffix(8);
  op.remove_prefix(op.rfind('.') + 1);
  while (op.ends_with('_')) op.remove_suffix(1);
  return std::string(op);
}

// The collectives of a compile, which need all ranks of a group: "all_reduce, broadcast"; empty: none.
Result<std::string> CollectivesOf(const FindingContext& context, const JobCompile& compile) {
  std::string ops;
  FOR_EACH_ROW(const CollectiveOfCompile& row,
               Query<CollectiveOfCompile>(context.database, {.compile_id = compile.id})) {
    const std::string name = NameOfCollective(row.op);
    if (ops.find(name) == std::string::npos) ops += (ops.empty() ? "" : ", ") + name;
  }
  return ops;
}

// The first compile behind this one that all of them have; -1: none.
std::int32_t NextOf(const Job& job, std::int32_t slot, const std::vector<RankIndex>& who) {
  for (const std::int32_t next : job.slot_order()) {
    if (job.SlotPosition(next) > job.SlotPosition(slot) &&
        std::all_of(who.begin(), who.end(),
                    [&](RankIndex one) { return job.CompileOf(one, next) >= 0; }))
      return next;
  }
  return -1;
}

// Of a compile that rank `with` has and `lacking` do not: the collectives in it, and what they
// compiled instead. ": it holds all_reduce; rank 1 went on to 2/0 update". Empty: there are no
// collectives, or they compiled nothing after it.
std::string WithCollectives(const FindingContext& context, std::int32_t slot, RankIndex with,
                            const std::vector<RankIndex>& lacking) {
  const Job& job = context.job;
  const std::int32_t index = job.CompileOf(with, slot);
  if (index < 0) return {};
  const Result<std::string> ops =
      CollectivesOf(context, job.compiles()[static_cast<std::size_t>(index)]);
  const std::int32_t next = NextOf(job, slot, lacking);
  if (!ops || ops->empty() || next < 0) return {};
  return fmt::format(": it holds {}; {} went on to {}", *ops, context.WhoInside(lacking),
                     job.SlotOf(next, lacking).Title());
}

}  // namespace

// "recompiled forward: 0/1 after 0/0: tensor 'x' …", of the one compile that some ranks lack; empty:
// it was not recompiled, or it is not known after which compile.
std::string DivergenceFinder::RecompiledText(const RankAspect& aspect,
                                             const std::vector<RankIndex>& with,
                                             const std::string& reason) const {
  constexpr std::string_view kBecause = "because ";  // of one compile
  if (aspect.slots.size() != 1 || reason.empty()) return {};
  const JobSlot slot = job_.SlotOf(aspect.slots.front(), with);
  if (slot.function.empty()) return {};
  return fmt::format("recompiled {}: {} after {}", slot.function, slot.label,
                     Shorten(reason.substr(kBecause.size()), 200));
}

// "the others", if all of them compiled what these ranks did not; else who did.
std::string DivergenceFinder::WhoHave(const std::vector<RankIndex>& lacking,
                                      const RankAspect& aspect) const {
  std::vector<RankIndex> having = context_.Others(lacking);
  const std::size_t count = having.size();
  const std::int32_t slot = aspect.slots.front();
  const std::string& function = job_.slots()[static_cast<std::size_t>(slot)].function;
  std::erase_if(having, [&](RankIndex rank) {
    const std::int32_t own = job_.CompileOf(rank, slot);
    return own < 0 ||
           context_.FunctionOf(job_.compiles()[static_cast<std::size_t>(own)]) != function;
  });
  return having.empty() || having.size() == count ? "the others" : context_.WhoInside(having);
}

std::string DivergenceFinder::TitleOfMissing(const RankClass& one, const RankAspect& aspect,
                                             const std::string& where,
                                             const std::string& reason) const {
  const std::string because = reason.empty() ? "" : "recompiled " + Shorten(reason, 200);
  const std::vector<RankIndex>& who = Lacking(one, aspect);
  const std::vector<RankIndex>& with = aspect.is_on_others ? Reference() : one.ranks;
  if (answer_.damage.AnyIsIncomplete(who))
    return fmt::format("{} {} not in the log{} of {}, which {} cut off or damaged", where,
                       aspect.slots.size() == 1 ? "is" : "are", PluralS(who.size()),
                       context_.WhoInside(who), who.size() == 1 ? "is" : "may be");
  if (where == kCompileWithoutId)
    return fmt::format("{} {} {}; {} {} none", context_.Who(with),
                       with.size() == 1 ? "has" : "have", where, context_.WhoInside(who),
                       who.size() == 1 ? "has" : "have");
  const bool is_done =
      std::all_of(aspect.slots.begin(), aspect.slots.end(), [&](std::int32_t slot) {
        const std::int32_t index = job_.CompileOf(with.front(), slot);
        return index < 0 || IsFinished(job_.compiles()[static_cast<std::size_t>(index)].status);
      });
  const std::string_view did = is_done ? "compiled" : "began to compile";
  const std::string recompiled = RecompiledText(aspect, with, reason);
  const std::string after_comma = because.empty() ? "" : ", " + because;
  if (aspect.has_majority)
    return aspect.is_on_others
               ? fmt::format(
                     "{} did not {} {}, {} did{}", context_.Who(one.ranks),
                     is_done ? "compile" : "begin to compile", where, WhoHave(one.ranks, aspect),
                     aspect.slots.size() == 1 ? WithCollectives(context_, aspect.slots.front(),
                                                                Reference().front(), one.ranks)
                                              : "")
           : recompiled.empty()
               ? fmt::format("Only {} {} {}{}", context_.WhoInside(one.ranks), did, where,
                             after_comma)
               : fmt::format("Only {} {}", context_.WhoInside(one.ranks), recompiled);
  const std::vector<RankIndex>& without = aspect.is_on_others ? one.ranks : Reference();
  if (!recompiled.empty() && !aspect.is_on_others)
    return fmt::format("{} {}; {} did not", context_.Who(with), recompiled,
                       context_.WhoInside(without));
  return fmt::format("{} {} {}, {} did not{}", context_.Who(with), did, where,
                     context_.WhoInside(without), because.empty() ? "" : "; it was " + because);
}

// Whether those that lack these compiles never compiled their functions: an evaluation, or a
// checkpoint, of some ranks.
bool DivergenceFinder::IsOfOwnFunction(const RankClass& one, const RankAspect& aspect) const {
  const std::vector<RankIndex>& lacking = Lacking(one, aspect);
  return std::all_of(aspect.slots.begin(), aspect.slots.end(), [&](std::int32_t slot) {
    const JobSlot& own = job_.slots()[static_cast<std::size_t>(slot)];
    if (IsWithoutId(own.label)) return true;  // an export, AOTInductor
    return !own.function.empty() &&
           std::none_of(
               job_.compiles().begin(), job_.compiles().end(), [&](const JobCompile& compile) {
                 return std::binary_search(lacking.begin(), lacking.end(), compile.participant) &&
                        job_.IsOfFunction(compile, own);
               });
  });
}

// Whether these compiles are of functions that a rank compiled both with and without gradients, without
// them: an evaluation, or a first call to learn shapes.
bool DivergenceFinder::AreWithoutGradients(const RankAspect& aspect) const {
  return std::all_of(aspect.slots.begin(), aspect.slots.end(), [&](std::int32_t slot) {
    const auto having =
        std::find_if(job_.compiles().begin(), job_.compiles().end(),
                     [slot](const JobCompile& compile) { return compile.slot == slot; });
    return having != job_.compiles().end() && job_.IsWithoutGradients(*having);
  });
}

// Whether ranks went on without what the others compiled, in which nobody waits for them: a part of
// the program that is not theirs.
bool DivergenceFinder::WentOnWithout(const RankClass& one, const RankAspect& aspect) const {
  const std::vector<RankIndex>& lacking = Lacking(one, aspect);
  return std::all_of(aspect.slots.begin(), aspect.slots.end(), [&](std::int32_t slot) {
    const auto having =
        std::find_if(job_.compiles().begin(), job_.compiles().end(),
                     [slot](const JobCompile& compile) { return compile.slot == slot; });
    const Result<std::string> ops = CollectivesOf(context_, *having);
    return ops && ops->empty() && NextOf(job_, slot, lacking) >= 0;
  });
}

// Whether those that lack these compiles compiled nothing behind them, and their logs end after the
// last compile of yet another rank failed: what ended that one may have ended these, or they waited
// for it.
bool DivergenceFinder::EndedAfterFailure(const RankClass& one, const RankAspect& aspect) const {
  const std::vector<RankIndex>& lacking = Lacking(one, aspect);
  std::int64_t failed_us = INT64_MAX;
  for (const RankIndex other : context_.Others(lacking)) {
    if (context_.StatusOf(other).state == RankState::kFailed)
      failed_us = std::min(failed_us, context_.StatusOf(other).last_record_us.value_or(INT64_MAX));
  }
  return NextOf(job_, aspect.slots.front(), lacking) < 0 &&
         std::all_of(lacking.begin(), lacking.end(), [&](RankIndex rank) {
           return context_.StatusOf(rank).last_record_us.value_or(0) >= failed_us;
         });
}

// "Rank 0 compiled objective as 1/0, the others compiled generate"
std::string DivergenceFinder::TitleOfOther(const RankClass& one, const RankAspect& aspect) const {
  const std::size_t end = aspect.reason.find('\n');
  const std::string label =
      job_.SlotOf(aspect.slots.front(), {one.ranks.front(), Reference().front()}).label;
  return fmt::format("{} compiled {}{}{}, {} compiled {}", context_.Who(one.ranks),
                     aspect.reason.substr(end + 1), label.empty() ? "" : " as ", label,
                     aspect.has_majority ? "most others" : context_.WhoInside(Reference()),
                     aspect.reason.substr(0, end));
}

}  // namespace tlparse

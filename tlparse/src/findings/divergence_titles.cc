// Titles of findings about a difference between ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/plural.h"
#include "facts/cache/cause.h"
#include "facts/compiles/advice.h"
#include "facts/contents/graph_difference.h"
#include "facts/ranks/aspect_text.h"
#include "facts/text/compile_label.h"
#include "facts/text/shorten.h"
#include "findings/divergences.h"
#include "findings/graph_breaks.h"

namespace tlparse {

// Where there is no majority both sides are named, and none is the odd one.
std::string DivergenceFinder::Pair(const RankClass& one, const RankAspect& aspect,
                                   std::string_view of_one, std::string_view of_several,
                                   std::string_view of_both, const std::string& what) const {
  if (aspect.has_majority)
    return fmt::format("{} {}{}", context_.Who(one.ranks),
                       one.ranks.size() == 1 ? of_one : of_several, what);
  const std::vector<RankIndex>& reference = Reference();
  std::string text = fmt::format("{} and {} {}{}", context_.Who(reference),
                                 context_.WhoInside(one.ranks), of_both, what);
  // What the others have is compared with this class.
  const auto [from, to] =
      aspect.is_on_others ? std::pair(&one.ranks, &reference) : std::pair(&reference, &one.ranks);
  if (text.find(" → ") != std::string::npos && text.find(" (from ") == std::string::npos)
    text += fmt::format(" (from {} to {})", context_.WhoInside(*from), context_.WhoInside(*to));
  constexpr std::string_view kOthers = " others ";
  if (const std::size_t at = text.find(kOthers);
      aspect.area == AspectArea::kExecution && at != std::string::npos)
    text.replace(at, kOthers.size(), fmt::format(" {} ", context_.WhoInside(reference)));
  return text;
}

std::string DivergenceFinder::TitleOfBreak(const RankClass& one, const RankAspect& aspect,
                                           const std::string& where, const std::string& at,
                                           const std::string& cause) const {
  const bool is_eager = IsSkippedFunction(aspect.reason);
  const auto breaks = [&](bool is_one, bool is_negated) {
    return fmt::format("{}{}{}", is_negated ? (is_one ? "does not " : "do not ") : "",
                       is_eager ? "run" : "break", is_one && !is_negated ? "s" : "");
  };
  const std::string what =
      (is_eager ? where + " eagerly because of a graph break" : "the graph of " + where) + at;
  const std::vector<RankIndex>& reference = Reference();
  if (!aspect.has_majority) {
    const std::vector<RankIndex>& with = aspect.is_on_others ? reference : one.ranks;
    const std::vector<RankIndex>& without = aspect.is_on_others ? one.ranks : reference;
    return fmt::format("{} {} {}, {} {}: {}", context_.Who(with), breaks(with.size() == 1, false),
                       what, context_.WhoInside(without),
                       without.size() == 1 ? "does not" : "do not", cause);
  }
  if (aspect.is_on_others)
    return fmt::format("{} {} {} where the others do: {}", context_.Who(one.ranks),
                       breaks(one.ranks.size() == 1, true), what, cause);
  return fmt::format("Only {} {} {}: {}", context_.WhoInside(one.ranks),
                     breaks(one.ranks.size() == 1, false), what, cause);
}

// "1/0 take_step"; "take_step" where these ranks compiled it under another id.
std::string DivergenceFinder::WhereOf(const RankClass& one, const RankAspect& aspect) const {
  Finding scratch;
  const RankIndex having = aspect.is_on_others ? Reference().front() : one.ranks.front();
  // One that was refused at the recompile limit is no compile.
  std::vector<std::int32_t> slots = aspect.slots;
  std::erase_if(slots, [&](std::int32_t slot) {
    const std::int32_t index = job_.CompileOf(having, slot);
    return index >= 0 &&
           job_.compiles()[static_cast<std::size_t>(index)].status == CompileStatus::kSkipped;
  });
  if (aspect.cause != CauseKind::kMissingCompile || slots.empty()) slots = aspect.slots;
  return context_.SetCompiles(scratch, slots, {Reference().front(), one.ranks.front()});
}

// Few recompiles follow from what a rank was given: another size, train and eval. That one of several
// ranks alone recompiled a function sets it apart, unless it is for one new size or PyTorch's own state.
bool DivergenceFinder::AreFewRecompiles(const RankClass& one, const RankAspect& aspect) const {
  constexpr std::size_t kFew = 2;
  const auto is_recompile = [](const JobSlot& slot) { return IsOfRecompile(slot.label); };
  const bool are_few =
      aspect.slots.size() <= kFew &&
      std::all_of(aspect.slots.begin(), aspect.slots.end(), [&](std::int32_t slot) {
        return is_recompile(job_.slots()[static_cast<std::size_t>(slot)]);
      });
  if (!are_few || !aspect.has_majority) return are_few;
  if (aspect.text.find("(user_override)") != std::string::npos) return true;
  if (aspect.slots.size() == 1 && aspect.reason.find("size mismatch") != std::string::npos)
    return true;
  const JobSlot& of = job_.slots()[static_cast<std::size_t>(aspect.slots.front())];
  const std::vector<RankIndex>& lacking = Lacking(one, aspect);
  return std::any_of(job_.compiles().begin(), job_.compiles().end(), [&](const JobCompile& other) {
    if (other.slot < 0 || !std::binary_search(lacking.begin(), lacking.end(), other.participant))
      return false;
    const JobSlot& slot = job_.slots()[static_cast<std::size_t>(other.slot)];
    return is_recompile(slot) && slot.function == of.function && slot.file == of.file &&
           slot.line == of.line;
  });
}

std::optional<Difference> DivergenceFinder::Describe(const RankClass& one,
                                                     const RankAspect& aspect) {
  const std::string where = WhereOf(one, aspect);
  const auto make = [&](FindingKind kind, FindingSeverity severity, std::string cause,
                        std::string title) {
    Difference difference = Of(one, aspect, kind, severity);
    difference.finding.cause = std::move(cause);
    difference.finding.title = std::move(title);
    return difference;
  };
  const AspectArea area = aspect.area;
  if (area == AspectArea::kCache || aspect.cause == CauseKind::kProcessGroup)
    return DescribeLookup(one, aspect, where);
  if (area == AspectArea::kOptions) return DescribeOptions(one, aspect);
  if (area == AspectArea::kBuild) {
    return make(FindingKind::kConfigDivergence, FindingSeverity::kError, aspect.text,
                Pair(one, aspect, "runs another build: ", "run another build: ",
                     "run different builds: ", aspect.text));
  }
  if (area == AspectArea::kGraphBreaks) {
    const std::string cause = CauseOfBreak(aspect.reason);
    const FindingPlace site = SiteOfBreak(aspect.stack);
    Difference difference =
        make(FindingKind::kGraphBreakDivergence, FindingSeverity::kWarning, cause, {});
    difference.finding.title =
        TitleOfBreak(one, aspect, where, WhereOfBreak(difference.finding.place, site), cause);
    AddBreakAdvice(difference.finding, aspect.reason, site);
    return difference;
  }
  if (area == AspectArea::kCollectives && aspect.is_state) {
    const std::vector<RankIndex>& lacking = Lacking(one, aspect);
    return make(FindingKind::kCollectiveDivergence, FindingSeverity::kError, aspect.text,
                fmt::format("No schedule or code with the collectives of {} is in the log{} of {}",
                            aspect.reason, PluralS(lacking.size()), context_.WhoInside(lacking)));
  }
  if (area == AspectArea::kCollectives && aspect.is_order) {
    return make(FindingKind::kCollectiveDivergence, FindingSeverity::kError, aspect.text,
                Pair(one, aspect, "schedules its collectives in another order than the others: ",
                     "schedule their collectives in another order than the others: ",
                     "schedule their collectives in different orders: ", aspect.text));
  }
  if (area == AspectArea::kCollectives) {
    return make(FindingKind::kCollectiveDivergence, FindingSeverity::kError, aspect.text,
                Pair(one, aspect, "schedules other collectives than the others: ",
                     "schedule other collectives than the others: ",
                     "schedule different collectives: ", aspect.text));
  }
  if (area == AspectArea::kExecution) {
    if (aspect.is_absence) return std::nullopt;  // an order that ends with its log
    Difference difference =
        make(FindingKind::kExecutionDivergence, FindingSeverity::kWarning, aspect.text,
             Pair(one, aspect,
                  "ran its graphs in another order: ", "ran their graphs in another order: ",
                  "ran their graphs in different orders: ", aspect.text));
    difference.finding.detail = aspect.reason;
    return difference;
  }
  if (area == AspectArea::kCode)
    return make(FindingKind::kCodeDivergence,
                aspect.is_of_sizes ? FindingSeverity::kNote : FindingSeverity::kWarning,
                aspect.text,
                Pair(one, aspect, "generated other code in ", "generated other code in ",
                     "generated different code in ", aspect.text));
  if (area == AspectArea::kTensors)
    return make(FindingKind::kCodeDivergence, FindingSeverity::kWarning, aspect.text,
                Pair(one, aspect, "has other output tensors in ", "have other output tensors in ",
                     "have different output tensors in ", aspect.text));
  if (area == AspectArea::kCompiles && aspect.cause == CauseKind::kMissingCompile) {
    if (aspect.is_absence) return std::nullopt;  // the finding on the end says where
    const bool is_without = AreWithoutGradients(aspect);
    const bool is_note =
        is_without || answer_.damage.AnyIsIncomplete(Lacking(one, aspect)) ||
        AreFewRecompiles(one, aspect) || EndedAfterFailure(one, aspect) ||
        (IsOfOwnFunction(one, aspect) &&
         (!(aspect.is_on_others && aspect.has_majority) || WentOnWithout(one, aspect)));
    return make(aspect.is_on_others ? FindingKind::kMissingCompile : FindingKind::kExtraCompile,
                is_note ? FindingSeverity::kNote : FindingSeverity::kWarning, aspect.reason,
                TitleOfMissing(one, aspect, is_without ? where + " without gradients" : where,
                               aspect.reason));
  }
  if (area == AspectArea::kCompiles)
    return make(FindingKind::kGraphDivergence, FindingSeverity::kWarning, aspect.text,
                TitleOfOther(one, aspect));
  if (area == AspectArea::kGraphs && aspect.is_of_lines &&
      OtherText(one, job_.slots()[static_cast<std::size_t>(aspect.slots.front())].file).empty())
    return std::nullopt;  // each rank may run its own copy of the code
  if (area == AspectArea::kGraphs) return DescribeGraphs(one, aspect);
  return std::nullopt;
}

namespace {

// Inputs of several compiles are named with theirs, which the title says where it is the only one.
std::string WithoutPlace(const std::string& reason, const std::string& where) {
  const std::string place = " in " + where;
  return reason.ends_with(place) ? reason.substr(0, reason.size() - place.size()) : reason;
}

}  // namespace

bool DivergenceFinder::WasRecompiled(const JobSlot& of) const {
  return std::any_of(job_.slots().begin(), job_.slots().end(), [&](const JobSlot& slot) {
    return slot.function == of.function && slot.file == of.file && slot.line == of.line &&
           IsOfRecompile(slot.label);
  });
}

Difference DivergenceFinder::DescribeGraphs(const RankClass& one, const RankAspect& aspect) const {
  const JobSlot slot = job_.SlotOf(aspect.slots.front(), {Reference().front(), one.ranks.front()});
  // A function that is recompiled gets data of several sizes: who had which first says nothing.
  const std::int32_t first = aspect.slots.front();
  const bool have_both = HaveBothGraphs(one, first);
  const bool is_of_lengths = aspect.is_of_sizes && !IsOfModel(aspect.text) && HaveSeveralSizes(one);
  const bool is_of_data =
      have_both || is_of_lengths ||
      (aspect.is_of_sizes && (WasRecompiled(slot) || IsForInference(one, first))) ||
      (IsOfDynamicSize(aspect.text) && WereForSizes(one, first));
  // Replicas of another model would differ in the collectives of their gradients.
  const bool is_of_part =
      aspect.is_of_parameters &&
      std::none_of(one.aspects.begin(), one.aspects.end(),
                   [](const RankAspect& other) { return other.area == AspectArea::kCollectives; });
  Difference difference =
      Of(one, aspect, FindingKind::kGraphDivergence,
         is_of_data || is_of_part ? FindingSeverity::kNote : FindingSeverity::kWarning);
  Finding& finding = difference.finding;
  finding.is_of_numbers = aspect.is_of_numbers;
  finding.cause = aspect.text;
  const std::string& text = aspect.change.empty() ? aspect.text : aspect.change;
  OtherFile other = OtherFolder(one, aspect);
  if (other.name.empty())
    other = {slot.file.substr(slot.file.rfind('/') + 1), OtherText(one, slot.file)};
  if (const auto& [file, other_text] = other; !other_text.empty()) {
    finding.title = Pair(one, aspect, fmt::format("ran another text of {}: ", file),
                         fmt::format("ran another text of {}: ", file),
                         fmt::format("ran different texts of {}: ", file), text);
    finding.detail = other_text;
    finding.suggestion = "start all ranks with the same source files";
    return difference;
  }
  finding.title = Pair(one, aspect, "compiled another graph: ", "compiled another graph: ",
                       "compiled different graphs: ", text);
  if (have_both)
    finding.detail =
        "Each side compiled both graphs, one of them for other sizes later: as where data come in "
        "another order.";
  if (is_of_lengths && !have_both) finding.detail = "As where the ranks get data of other sizes.";
  if (is_of_part)
    finding.detail =
        "One side takes parameters that the other does not, as in a job whose ranks hold parts of "
        "a model each.";
  if (IsOfDynamicSize(aspect.text)) {
    finding.detail =
        "One side compiled for the size that it saw, the other for any size: s and a number stand "
        "for a size that may vary.";
    finding.suggestion =
        "make the same sizes dynamic on all ranks (torch._dynamo.mark_dynamic, "
        "torch.compile(dynamic=…), torch._dynamo.config.assume_static_by_default)";
  }
  if (aspect.file.empty() && !slot.file.empty() && slot.line > 0)
    finding.detail +=
        fmt::format("{}The log has no line of the user's code for it; {} begins at {}:{}.",
                    finding.detail.empty() ? "" : " ",
                    slot.function.empty() ? "the function" : slot.function, slot.file, slot.line);
  return difference;
}

Difference DivergenceFinder::DescribeOptions(const RankClass& one, const RankAspect& aspect) const {
  Difference difference =
      Of(one, aspect, FindingKind::kConfigDivergence, FindingSeverity::kWarning);
  difference.finding.cause = aspect.reason;
  difference.finding.title = Pair(
      one, aspect, "compiled with another configuration: ", "compiled with another configuration: ",
      "compiled with different configurations: ", OptionsText(aspect.options, true));
  difference.finding.suggestion =
      fmt::format("set the same option {}, unless they are meant to differ",
                  context_.HasRanks() ? "on all ranks" : "in all processes");
  difference.finding.suggestion += HowToSet(aspect.options);
  difference.finding.changes = OptionsOfReference(aspect.options);
  return difference;
}

// Cache lookups under different keys, by what makes the keys differ.
std::optional<Difference> DivergenceFinder::DescribeLookup(const RankClass& one,
                                                           const RankAspect& aspect,
                                                           const std::string& where) {
  if (!aspect.cause) return std::nullopt;
  const std::string& reason = aspect.reason;
  // Of a missed guard and a bypass, which one side alone has.
  const std::vector<RankIndex>& having = aspect.is_on_others ? Reference() : one.ranks;
  const auto make = [&](FindingKind kind, FindingSeverity severity, std::string title) {
    Difference difference = Of(one, aspect, kind, severity);
    difference.finding.cause = reason;
    difference.finding.title = std::move(title);
    return difference;
  };
  switch (*aspect.cause) {
    case CauseKind::kBuild:
      return make(FindingKind::kConfigDivergence, FindingSeverity::kError,
                  Pair(one, aspect, "runs another build: ", "run another build: ",
                       "run different builds: ", reason));
    case CauseKind::kConfig:
    case CauseKind::kSetting:
      return DescribeOptions(one, aspect);
    case CauseKind::kComponent: {
      const std::string other = fmt::format("looked up other cache keys in {}: ", where);
      const std::string both = fmt::format("looked up different cache keys in {}: ", where);
      return make(FindingKind::kConfigDivergence, FindingSeverity::kWarning,
                  Pair(one, aspect, other, other, both, reason));
    }
    case CauseKind::kInputs: {
      const std::string what = fmt::format("compiled {} for ", where);
      const std::string other = what + "other inputs: ", both = what + "different inputs: ";
      Difference difference =
          make(FindingKind::kInputDivergence,
               aspect.is_of_sizes || aspect.is_of_first_stage ? FindingSeverity::kNote
                                                              : FindingSeverity::kWarning,
               Pair(one, aspect, other, other, both, WithoutPlace(reason, where)));
      if (aspect.is_of_first_stage)
        difference.finding.detail =
            "As of the first stage of a pipeline, whose input needs no gradient.";
      return difference;
    }
    case CauseKind::kGuardMiss: {
      // These guards are of sizes. A few ranks with sizes of their own lose time where the others hit.
      const bool are_few = aspect.has_majority && !aspect.is_on_others;
      Difference difference =
          make(FindingKind::kInputDivergence,
               are_few ? FindingSeverity::kWarning : FindingSeverity::kNote,
               fmt::format("{} found cached entries whose guards do not hold in {}: {}",
                           context_.Who(having), where, reason));
      context_.SetRanks(difference.finding, having);
      return difference;
    }
    case CauseKind::kRemoteError:  // a finding of its own, whether ranks differ in it or not
      return std::nullopt;
    case CauseKind::kBypass:
      return make(
          FindingKind::kCacheBypassed, FindingSeverity::kWarning,
          fmt::format("{} bypassed the cache in {}: {}", context_.Who(having), where, reason));
    case CauseKind::kProcessGroup: {  // ranks of several groups: expected
      Difference difference =
          make(FindingKind::kCodeDivergence, FindingSeverity::kNote,
               fmt::format("{} of {} in {} differ from those of {} in names of process groups",
                           aspect.area == AspectArea::kCache ? "Cache keys" : "Graphs",
                           context_.WhoInside(one.ranks), where, context_.WhoInside(Reference())));
      difference.is_of_hashes = true;
      return difference;
    }
    default: {
      const std::string other = fmt::format("looked up other cache keys in {}: ", where);
      const std::string both = fmt::format("looked up different cache keys in {}: ", where);
      const bool is_of_hashes = *aspect.cause == CauseKind::kUnstable;
      Difference difference =
          make(FindingKind::kCodeDivergence,
               is_of_hashes ? FindingSeverity::kNote : FindingSeverity::kWarning,
               Pair(one, aspect, other, other, both, is_of_hashes ? reason : aspect.text));
      difference.is_of_hashes = is_of_hashes;
      return difference;
    }
  }
}

}  // namespace tlparse

#include "findings/recompile_fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "artifacts/common/text/python_traceback.h"
#include "base/plural.h"

namespace tlparse {
namespace {

// Whether two findings are about the same function on the same ranks. Where there is no majority, a
// divergence names both sides.
bool IsOfSame(const Finding& other, const Finding& own) {
  if (own.ranks.empty() || other.function != own.function) return false;
  return other.ranks == own.ranks ||
         ((other.ranks.empty() || std::includes(other.ranks.begin(), other.ranks.end(),
                                                own.ranks.begin(), own.ranks.end())) &&
          std::find_first_of(other.compiles.begin(), other.compiles.end(), own.compiles.begin(),
                             own.compiles.end()) != other.compiles.end());
}

bool IsCompile(const Finding& finding) {
  return finding.kind == FindingKind::kExtraCompile || finding.kind == FindingKind::kMissingCompile;
}

// Divergences that recompiles of the function can stand for, or follow from.
bool IsDivergence(const Finding& finding, bool has_several) {
  return IsCompile(finding) || finding.kind == FindingKind::kInputDivergence ||
         (has_several && finding.kind == FindingKind::kGraphDivergence);
}

// Another graph, as of a rank that evaluates where the others train, explains a few recompiles more.
bool IsExplainedByGraph(const Finding& other, const Finding& own) {
  return other.kind == FindingKind::kGraphDivergence && other.severity < own.severity;
}

void TakeAdvice(Finding& other, const Finding& own) {
  if (!other.place) other.place = own.place;
  if (!other.suggestion.empty()) return;
  other.suggestion = own.suggestion;
  other.changes = own.changes;
}

// `own` takes the place of `other`, whose evidence becomes its own.
void Replace(Finding& other, Finding own) {
  own.severity = std::min(own.severity, other.severity);
  if (other.since_us && (!own.since_us || *other.since_us < *own.since_us))
    own.since_us = other.since_us;
  std::vector<Finding> evidence = std::move(other.evidence);
  other.evidence.clear();
  // The limit says what follows from the recompiles that are one more divergence.
  if (!IsCompile(other) || own.kind == FindingKind::kRecompileLimit)
    own.evidence.push_back(std::move(other));
  for (Finding& one : evidence) {
    const bool is_said = IsCompile(one) && IsOfSame(one, own) && IsCompile(own);
    if (!is_said) own.evidence.push_back(std::move(one));
  }
  other = std::move(own);
}

// Another option or graph explains recompiles; what the function was given first, or another compile,
// does not, nor does anything explain that the limit was reached.
bool LeadsOver(const Finding& own, const Finding& other, RecompileExtent extent) {
  if (own.kind == FindingKind::kRecompileLimit) return IsDivergence(other, true);
  const bool is_beside =
      other.kind == FindingKind::kInputDivergence ||
      (other.kind == FindingKind::kGraphDivergence && extent == RecompileExtent::kRepeated);
  return IsCompile(other) || (is_beside && other.function == own.function);
}

}  // namespace

void AddRecompiles(FindingContext& context, Finding own, RecompileExtent extent) {
  const bool has_several = extent != RecompileExtent::kOne;
  const auto is_same = [&](const Finding& other) {
    return IsDivergence(other, has_several) && IsOfSame(other, own);
  };
  const bool is_odd = own.kind != FindingKind::kRecompiles;
  // While the job runs, compiles of some ranks only are not reported.
  if (context.live != nullptr) {
    context.findings.push_back(std::move(own));
    return;
  }
  for (Finding& other : context.findings) {
    if (is_same(other)) {
      const bool is_explained = has_several && IsExplainedByGraph(other, own);
      if (!is_explained) TakeAdvice(other, own);
      if (is_odd && has_several && !is_explained) {
        Replace(other, std::move(own));
      } else if (has_several) {
        other.evidence.push_back(std::move(own));
      }
      return;
    }
    const auto found = std::find_if(other.evidence.begin(), other.evidence.end(), is_same);
    if (found == other.evidence.end()) continue;
    TakeAdvice(*found, own);
    if (!has_several) return;
    if (!is_odd) {
      other.evidence.push_back(std::move(own));
      return;
    }
    Finding evidence = std::move(*found);
    other.evidence.erase(found);
    const bool is_first = LeadsOver(own, other, extent);
    Replace(evidence, std::move(own));
    if (is_first) {
      std::swap(other, evidence);
      other.severity = std::min(other.severity, evidence.severity);
      for (Finding& one : evidence.evidence) other.evidence.push_back(std::move(one));
      evidence.evidence.clear();
    }
    other.evidence.push_back(std::move(evidence));
    return;
  }
  // Another function that the same ranks recompiled.
  const auto same_ranks =
      std::find_if(context.findings.begin(), context.findings.end(), [&](const Finding& other) {
        return is_odd && other.severity != FindingSeverity::kNote && other.ranks == own.ranks &&
               !own.ranks.empty() &&
               (other.kind == FindingKind::kExtraCompile ||
                other.kind == FindingKind::kRecompileLimit);
      });
  (same_ranks == context.findings.end() ? context.findings : same_ranks->evidence)
      .push_back(std::move(own));
}

void SetAdvice(const std::vector<Recompile>& recompiles, const std::string& file,
               Finding& finding) {
  Advice advice = AdviceFor(recompiles);
  if (std::any_of(recompiles.begin(), recompiles.end(),
                  [](const Recompile& one) { return one.is_of_call; }))
    finding.detail +=
        " Its calls differ in the number of arguments or the type of the first: perhaps a "
        "library wraps several functions in this code, or calls it in several ways.";
  // The variables of a library's function are not the user's.
  if (!IsUserFile(file) && advice.is_of_local) return;
  if (!advice.remark.empty()) finding.detail += ' ' + advice.remark;
  if (std::any_of(recompiles.begin(), recompiles.end(),
                  [](const Recompile& one) { return one.is_of_module; }))
    finding.detail +=
        " Parameters differ in size between these compiles: several modules run this code.";
  finding.suggestion = std::move(advice.text);
  for (Change& change : advice.changes) {
    if (change.kind == ChangeKind::kMarkDynamic) {
      change.function = finding.function;
      change.file = file;
    }
    finding.changes.push_back(std::move(change));
  }
}

namespace {

constexpr std::string_view kWas = " was recompiled";

// " once (GLOBAL_STATE changed: grad_mode)" of the title of a function's recompiles.
std::string_view WhatWas(std::string_view title) {
  const std::size_t at = title.find(kWas);
  return at == std::string_view::npos ? std::string_view() : title.substr(at + kWas.size());
}

bool IsFolded(const Finding& one) {
  return one.kind == FindingKind::kRecompiles && one.severity == FindingSeverity::kNote &&
         !one.cause.empty();
}

// Moves the findings after `first` for which `belongs` into its evidence; returns how many.
template <typename Belongs>
std::size_t TakeEvidence(std::vector<Finding>& findings, std::size_t first,
                         const Belongs& belongs) {
  std::size_t count = 0;
  for (std::size_t i = first + 1; i < findings.size();) {
    if (!belongs(findings[i])) {
      ++i;
      continue;
    }
    Finding& kept = findings[first];
    if (kept.is_of_caller && !findings[i].is_of_caller) std::swap(kept, findings[i]);
    if (findings[i].since_us && kept.since_us)
      kept.since_us = std::min(kept.since_us, findings[i].since_us);
    std::vector<Finding> earlier = std::move(findings[i].evidence);
    findings[i].evidence.clear();
    std::move(earlier.begin(), earlier.end(), std::back_inserter(kept.evidence));
    kept.evidence.push_back(std::move(findings[i]));
    findings.erase(findings.begin() + static_cast<std::ptrdiff_t>(i));
    ++count;
  }
  return count;
}

// A mode that changes recompiles all functions below the one that is compiled: one note, of the
// function whose own place is known.
void FoldOfCause(std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (!IsFolded(findings[i])) continue;
    bool are_alike = true;
    const std::size_t count = TakeEvidence(findings, i, [&](const Finding& other) {
      const Finding& kept = findings[i];
      if (!IsFolded(other) || other.cause != kept.cause || other.ranks != kept.ranks) return false;
      are_alike = are_alike && WhatWas(kept.title) == WhatWas(other.title);
      return true;
    });
    const std::string_view what = WhatWas(findings[i].title);
    if (count == 0 || what.empty()) continue;
    // How often is said of each where it differs.
    const std::size_t cause = are_alike ? 0 : std::min(what.find(" ("), what.size());
    findings[i].title = fmt::format(
        "{} and {} other function{} were recompiled{}",
        findings[i].title.substr(0, findings[i].title.size() - what.size() - kWas.size()), count,
        PluralS(count), what.substr(cause));
  }
}

// A line of the user that runs a model of a library: what it recompiles there is one note.
void FoldOfCaller(std::vector<Finding>& findings, bool has_several) {
  constexpr std::size_t kFew = 2;  // so few are reported one by one
  const auto belongs = [](const Finding& other, const Finding& kept) {
    return IsFolded(other) && other.is_of_caller && other.place && kept.place &&
           other.place->file == kept.place->file && other.place->line == kept.place->line &&
           other.ranks == kept.ranks;
  };
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const auto of_kept = [&](const Finding& other) { return belongs(other, findings[i]); };
    if (!of_kept(findings[i]) ||
        std::count_if(findings.begin() + static_cast<std::ptrdiff_t>(i), findings.end(), of_kept) <=
            static_cast<std::ptrdiff_t>(kFew))
      continue;
    TakeEvidence(findings, i, of_kept);
    Finding& kept = findings[i];
    Finding one = kept;
    one.evidence.clear();
    kept.evidence.insert(kept.evidence.begin(), std::move(one));
    std::vector<std::string> causes;
    for (const Finding& other : kept.evidence) {
      if (std::find(causes.begin(), causes.end(), other.cause) == causes.end())
        causes.push_back(other.cause);
    }
    constexpr std::size_t kMostCauses = 3;
    kept.cause.clear();
    for (std::size_t j = 0; j < causes.size() && j < kMostCauses; ++j)
      kept.cause += (j == 0 ? "" : "; ") + causes[j];
    if (causes.size() > kMostCauses)
      kept.cause += fmt::format("; and {} more", causes.size() - kMostCauses);
    // Values of one rank are not said of others.
    const std::string what =
        kept.ranks.size() > 1 ? std::string() : fmt::format(" ({})", kept.cause);
    kept.title =
        fmt::format("{} functions of libraries were recompiled below {}{}{}", kept.evidence.size(),
                    PlaceText(*kept.place),
                    has_several && !kept.ranks.empty() ? " on " + RanksText(kept.ranks) : "", what);
    kept.detail = "The place named is the line of the user's code that ran them.";
    kept.suggestion.clear();
    kept.changes.clear();
    kept.function.clear();
  }
}

}  // namespace

void FoldRecompiles(FindingContext& context) {
  FoldOfCause(context.findings);
  FoldOfCaller(context.findings, context.job.HasSeveral());
}

}  // namespace tlparse

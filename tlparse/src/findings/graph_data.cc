// Graphs of ranks that differ since the ranks got other data: no rank is the odd one.
#include "queries/findings/graph_data.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/ascii.h"
#include "facts/job/graph_forms.h"
#include "facts/text/compile_label.h"
#include "findings/divergences.h"
#include "queries/facts/job/job_variants.h"

namespace tlparse {
namespace {

// What a rank compiled of a function.
struct CompiledForms {
  std::set<std::int64_t> forms;
  std::vector<std::int64_t> ids;  // of the compiles
};

CompiledForms FormsOf(const Job& job, const GraphForms& forms, RankIndex rank,
                      const JobCompile& of) {
  CompiledForms found;
  for (const JobCompile& one : job.compiles()) {
    const bool is_of_function = one.participant == rank && one.graph_content != 0 &&
                                one.function_id == of.function_id && one.file_id == of.file_id &&
                                one.line == of.line;
    if (!is_of_function) continue;
    found.forms.insert(forms.FormOf(one.graph_content));
    found.ids.push_back(one.id);
  }
  return found;
}

bool IsOfSize(std::string_view guard) {
  for (const std::string_view part :
       {"size mismatch at index", "stride mismatch at index", ".size()[", ".stride()["}) {
    if (guard.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// Whether some of these are recompiles, and all of them for other sizes.
bool AreForSizes(Database& database, const std::vector<std::int64_t>& compiles) {
  std::size_t count = 0, of_sizes = 0;
  const auto look = [&]() -> Result<void> {
    FOR_EACH_ROW(
        const GuardOfRecompile& row,
        Query<GuardOfRecompile>(database, {.of_compiles = "m.compile_id IN " + IdList(compiles)})) {
      ++count;
      of_sizes += IsOfSize(row.guard);
    }
    return {};
  };
  return look() && count > 0 && of_sizes == count;
}

// The text with numbers and symbols of sizes (s52) as "#", and how many symbols there are.
std::pair<std::string, int> WithoutSizes(std::string_view text) {
  std::string result;
  int symbols = 0;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_begin = at == 0 || !IsWordCharacter(text[at - 1]);
    std::size_t end = at + (is_begin && text[at] == 's' ? 1 : 0);
    while (end < text.size() && IsDigit(text[end])) ++end;
    const bool is_symbol = is_begin && text[at] == 's' && end > at + 1;
    if (!is_symbol && (!is_begin || end == at || !IsDigit(text[at]))) {
      result += text[at++];
      continue;
    }
    result += '#';
    symbols += is_symbol;
    at = end;
  }
  return {std::move(result), symbols};
}

}  // namespace

bool IsOfDynamicSize(std::string_view change) {
  constexpr std::string_view kArrow = " → ";
  const std::size_t at = change.find(kArrow);
  if (at == std::string_view::npos) return false;
  const std::string_view old_text = change.substr(0, at);
  const std::string_view new_text = change.substr(at + kArrow.size());
  const auto [before, old_symbols] = WithoutSizes(old_text);
  const auto [after, new_symbols] = WithoutSizes(new_text);
  // What both have is in the text once, or twice.
  if (before.ends_with('#') && after.starts_with('#')) {
    std::size_t begin = old_text.size();
    while (begin > 0 && IsWordCharacter(old_text[begin - 1])) --begin;
    return (old_text.substr(begin, 1) == "s") != new_text.starts_with('s');
  }
  return old_symbols != new_symbols && before.ends_with(after);
}

bool IsOfModel(std::string_view text) {
  return text.find("L_self_") != std::string_view::npos ||
         text.find("_parameters_") != std::string_view::npos ||
         text.find("weight") != std::string_view::npos;
}

// Whether each side compiled both graphs, and recompiled only for sizes: the data came in another order.
bool DivergenceFinder::HaveBothGraphs(const RankClass& one, std::int32_t slot) const {
  const Result<const GraphForms*> forms = GraphForms::Load(context_.database, job_);
  const RankIndex usual = Reference().front(), odd = one.ranks.front();
  const std::int32_t at = job_.CompileOf(usual, slot), odd_at = job_.CompileOf(odd, slot);
  if (!forms || at < 0 || odd_at < 0) return false;
  const JobCompile& a = job_.compiles()[static_cast<std::size_t>(at)];
  const JobCompile& b = job_.compiles()[static_cast<std::size_t>(odd_at)];
  if (a.graph_content == 0 || b.graph_content == 0) return false;
  const std::int64_t usual_form = (*forms)->FormOf(a.graph_content);
  const std::int64_t odd_form = (*forms)->FormOf(b.graph_content);
  if (usual_form == odd_form) return false;
  const CompiledForms of_usual = FormsOf(job_, **forms, usual, a);
  const CompiledForms of_odd = FormsOf(job_, **forms, odd, b);
  return of_odd.forms.contains(usual_form) && of_usual.forms.contains(odd_form) &&
         AreForSizes(context_.database, of_usual.ids) && AreForSizes(context_.database, of_odd.ids);
}

// Both sides compiled the function of a slot again, and always for other sizes: which came first says
// nothing.
bool DivergenceFinder::WereForSizes(const RankClass& one, std::int32_t slot) const {
  const JobSlot& of = job_.slots()[static_cast<std::size_t>(slot)];
  for (const RankIndex rank : {Reference().front(), one.ranks.front()}) {
    std::vector<std::int64_t> ids;
    for (const JobCompile& compile : job_.compiles()) {
      if (compile.participant == rank && job_.IsOfFunction(compile, of)) ids.push_back(compile.id);
    }
    if (!AreForSizes(context_.database, ids)) return false;
  }
  return true;
}

// Both sides compiled some function again for other sizes: their data have several, and those of a function
// that was compiled once may be different ones.
bool DivergenceFinder::HaveSeveralSizes(const RankClass& one) const {
  for (const RankIndex rank : {Reference().front(), one.ranks.front()}) {
    std::vector<std::int64_t> ids;
    for (const JobCompile& compile : job_.compiles()) {
      if (compile.participant == rank && IsOfRecompile(job_.string(compile.label_id)))
        ids.push_back(compile.id);
    }
    bool has_size = false;
    const auto look = [&]() -> Result<void> {
      FOR_EACH_ROW(const GuardOfRecompile& row,
                   Query<GuardOfRecompile>(context_.database,
                                           {.of_compiles = "m.compile_id IN " + IdList(ids)}))
        has_size |= IsOfSize(row.guard);
      return {};
    };
    if (ids.empty() || !look() || !has_size) return false;
  }
  return true;
}

// Whether a side compiled it for data whose results need no gradients, as what a rank plays, serves or
// evaluates: it has no part in the backward of the others.
bool DivergenceFinder::IsForInference(const RankClass& one, std::int32_t slot) const {
  std::vector<std::int64_t> ids;
  for (const RankIndex rank : {Reference().front(), one.ranks.front()}) {
    const std::int32_t index = job_.CompileOf(rank, slot);
    if (index >= 0) ids.push_back(job_.compiles()[static_cast<std::size_t>(index)].id);
  }
  std::size_t without = 0;
  const auto count = [&]() -> Result<void> {
    FOR_EACH_ROW(
        const GradientsOfCompile& row,
        Query<GradientsOfCompile>(context_.database, {.in_logs = "t.compile_id IN " + IdList(ids)}))
      without += !row.are_needed;
    return {};
  };
  return ids.size() == 2 && count() && without > 0;
}

}  // namespace tlparse

#include "facts/ranks/rank_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "artifacts/common/text/normalize.h"
#include "facts/compiles/exceptions.h"
#include "facts/contents/code_difference.h"
#include "facts/contents/graph_difference.h"
#include "facts/ranks/aspect_text.h"
#include "facts/ranks/other_functions.h"
#include "facts/text/guard_text.h"
#include "facts/text/shorten.h"
#include "facts/text/text_diff.h"
#include "queries/facts/ranks/rank_facts.h"

namespace tlparse {
namespace {

std::string MostFrequent(const std::map<std::string, std::size_t>& counts) {
  std::string best;
  std::size_t most = 0;
  for (const auto& [text, count] : counts) {
    if (!text.empty() && count > most) best = text, most = count;
  }
  return best;
}

Result<std::string> CodeOf(Database& database, std::int64_t record_id) {
  ASSIGN_OR_RETURN(const FirstRow<CodeOfRecord> row,
                   First(KeptQuery<CodeOfRecord>(database, {.record_id = record_id})));
  std::string buffer;
  return row ? std::string(NormalizeCode(row->content, buffer)) : std::string();
}

// "size 0 of x" of L['x'].size()[0]
std::string NameOfSize(std::string_view source) {
  constexpr std::string_view kSize = ".size()[";
  const std::size_t at = source.rfind(kSize);
  if (at == std::string_view::npos || !source.ends_with("]")) return ReadableSource(source);
  const std::string_view index = source.substr(at + kSize.size());
  return fmt::format("size {} of {}", index.substr(0, index.size() - 1),
                     ReadableSource(source.substr(0, at)));
}

Result<std::vector<std::pair<std::string, std::string>>> HintsOf(Database& database,
                                                                 const JobCompile& compile) {
  std::vector<std::pair<std::string, std::string>> hints;
  FOR_EACH_ROW(const HintOfSymbol& row, Query<HintOfSymbol>(database, {.compile_id = compile.id}))
    hints.emplace_back(row.source, row.value);
  return hints;
}

// "size 0 of x: 9 → 12", of dynamic sizes that had other values when two compiles began, by which the
// compiler chooses; empty: there are none.
Result<std::string> OtherHints(Database& database, const JobCompile& a, const JobCompile& b) {
  ASSIGN_OR_RETURN(const auto old_hints, HintsOf(database, a));
  ASSIGN_OR_RETURN(const auto new_hints, HintsOf(database, b));
  constexpr std::size_t kMost = 3;
  std::size_t count = 0;
  std::string text;
  for (const auto& hint : old_hints) {
    const auto other = std::find_if(new_hints.begin(), new_hints.end(),
                                    [&](const auto& one) { return one.first == hint.first; });
    if (other == new_hints.end() || other->second == hint.second || ++count > kMost) continue;
    text += fmt::format("{}{}: {} → {}", text.empty() ? "" : "; ", NameOfSize(hint.first),
                        hint.second, other->second);
  }
  return text;
}

RankAspect OfOtherFunction(std::int32_t slot, const std::string& label, const std::string& a,
                           const std::string& b, bool is_state) {
  return {.area = AspectArea::kCompiles,
          .text = fmt::format("{}{}function {} → {}", label, label.empty() ? "" : ": ", a, b),
          .slots = {slot},
          .is_state = is_state,
          .reason = a + '\n' + b};
}

}  // namespace

void SetPlace(RankAspect& aspect, std::string_view source) {
  source = source.substr(0, source.find(" in "));
  const std::size_t colon = source.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == source.size() ||
      source.find_first_not_of("0123456789", colon + 1) != std::string_view::npos ||
      source.size() - colon > 10)
    return;
  aspect.file = source.substr(0, colon);
  aspect.line = std::stoll(std::string(source.substr(colon + 1)));
}

Result<RankFacts> RankFacts::Load(Database& database, const Job& job, const JobGraphs& graphs) {
  RankFacts facts(job, graphs);
  const std::size_t count = job.participants().size();
  facts.codes_.resize(count);
  facts.events_.resize(count);
  facts.compile_s_.resize(count);
  RETURN_IF_ERROR(facts.LoadCodes(database));
  RETURN_IF_ERROR(facts.LoadBackends(database));
  RETURN_IF_ERROR(facts.LoadEvents(database));
  facts.lacks_time_.resize(count);
  for (const JobCompile& compile : job.compiles()) {
    const auto rank = static_cast<std::size_t>(compile.participant);
    facts.compile_s_[rank] += compile.Seconds().value_or(0);
    if (compile.LacksTime()) facts.lacks_time_[rank] = 1;
  }
  facts.FindCommonGraphs();
  std::map<std::string, std::size_t> torch, python;
  for (const JobParticipant& participant : job.participants()) {
    ++torch[participant.torch_version];
    ++python[participant.python_version];
  }
  facts.common_torch_ = MostFrequent(torch);
  facts.common_python_ = MostFrequent(python);
  return facts;
}

void RankFacts::FindCommonGraphs() {
  std::vector<std::map<std::int64_t, std::size_t>> counts(job_->slots().size());
  for (const JobCompile& compile : job_->compiles()) {
    if (compile.slot >= 0 && compile.graph_content != 0)
      ++counts[static_cast<std::size_t>(compile.slot)][compile.graph_content];
  }
  common_graph_.resize(counts.size());
  for (std::size_t slot = 0; slot < counts.size(); ++slot) {
    std::size_t most = 0;
    for (const auto& [content, count] : counts[slot]) {
      if (count > most) most = count, common_graph_[slot] = content;
    }
  }
}

Result<void> RankFacts::LoadCodes(Database& database) {
  ASSIGN_OR_RETURN(const std::vector<CodeOfGraph>* const rows,
                   job_->RowsOfWhole<CodeOfGraph>([&](const JobRecords& whole) {
                     return Query<CodeOfGraph>(
                         database, {.in_whole_records = whole.InWholeRecords("record_id")});
                   }));
  for (const CodeOfGraph& row : *rows) {
    const JobGraph* graph = graphs_->Find(row.graph_id);
    if (graph == nullptr) continue;
    const RankIndex rank = job_->compiles()[static_cast<std::size_t>(graph->compile)].participant;
    codes_[static_cast<std::size_t>(rank)].push_back(
        {graph->graph_slot, row.content_id, row.record_id});
  }
  for (std::vector<Code>& codes : codes_) {
    std::stable_sort(codes.begin(), codes.end(),
                     [](const Code& a, const Code& b) { return a.graph_slot < b.graph_slot; });
  }
  return {};
}

Result<void> RankFacts::LoadBackends(Database& database) {
  for (const std::vector<Code>& codes : codes_) has_inductor_.push_back(!codes.empty());
  if (std::count(has_inductor_.begin(), has_inductor_.end(), 0) == 0) return {};
  ASSIGN_OR_RETURN(const std::vector<CompileWithLookup>* const rows,
                   job_->RowsOfWhole<CompileWithLookup>([&](const JobRecords& whole) {
                     return Query<CompileWithLookup>(database,
                                                     {.in_logs = whole.InLogs("record_id")});
                   }));
  for (const CompileWithLookup& row : *rows) {
    if (const JobCompile* compile = job_->FindCompile(row.compile_id))
      has_inductor_[static_cast<std::size_t>(compile->participant)] = 1;
  }
  return {};
}

// A rank that compiled the same graph and has nothing of Inductor in its log.
std::optional<RankAspect> RankFacts::CompareBackends(RankIndex reference, RankIndex rank) const {
  const bool there = has_inductor_[static_cast<std::size_t>(reference)] != 0,
             here = has_inductor_[static_cast<std::size_t>(rank)] != 0;
  if (there == here) return std::nullopt;
  for (const std::int32_t slot : job_->slot_order()) {
    const std::int32_t a = job_->CompileOf(reference, slot), b = job_->CompileOf(rank, slot);
    if (a < 0 || b < 0) continue;
    const JobCompile& old_one = job_->compiles()[static_cast<std::size_t>(a)];
    const JobCompile& new_one = job_->compiles()[static_cast<std::size_t>(b)];
    if (old_one.status != CompileStatus::kOk || new_one.status != CompileStatus::kOk ||
        old_one.graph_content == 0 || new_one.graph_content == 0)
      continue;
    const std::string change = fmt::format("{} ({} has neither generated code nor a cache lookup)",
                                           here ? "another → Inductor" : "Inductor → another",
                                           here ? "the other log" : "the log");
    const std::string text = "backend: " + change;
    RankAspect aspect{.area = AspectArea::kOptions, .text = text, .slots = {slot}, .reason = text};
    aspect.options.push_back({"backend", change, {}});
    return aspect;
  }
  return std::nullopt;
}

Result<void> RankFacts::LoadEvents(Database& database) {
  ASSIGN_OR_RETURN(const std::vector<FailureOrBreak>* const rows,
                   job_->RowsOfWhole<FailureOrBreak>([&](const JobRecords& whole) {
                     return Query<FailureOrBreak>(database, {.in_logs = whole.InLogs("record_id")});
                   }));
  for (const FailureOrBreak& row : *rows) {
    if (const JobCompile* compile = job_->FindCompile(row.compile_id))
      events_[static_cast<std::size_t>(compile->participant)].push_back(
          {compile->slot, row.is_break, row.kind_id, row.type_id, row.user_line, row.reason_id,
           row.stack_id});
  }
  return {};
}

Hash128 RankFacts::Signature(RankIndex rank) const {
  SequenceHash hash;
  for (std::size_t slot = 0; slot < job_->slots().size(); ++slot) {
    const std::int32_t index = job_->CompileOf(rank, static_cast<std::int32_t>(slot));
    if (index < 0) {
      hash.Add(std::int64_t{-1});
      continue;
    }
    const JobCompile& compile = job_->compiles()[static_cast<std::size_t>(index)];
    // A compile that was served from a cache may log no graph: its graph is then unknown.
    hash.Add(compile.graph_content == 0 ? common_graph_[slot] : compile.graph_content);
    hash.Add(IsFinished(compile.status) ? std::int64_t{-1}
                                        : static_cast<std::int64_t>(compile.status));
    hash.Add(compile.function_id);
  }
  for (const Code& code : codes_[static_cast<std::size_t>(rank)]) {
    // A compile that did not end well already differs by that; its code is not compared.
    const std::int32_t slot =
        graphs_->graph_slots()[static_cast<std::size_t>(code.graph_slot)].slot;
    const std::int32_t index = job_->CompileOf(rank, slot);
    if (index >= 0 && !IsFinished(job_->compiles()[static_cast<std::size_t>(index)].status))
      continue;
    hash.Add(code.graph_slot);
    hash.Add(code.content_id);
  }
  for (const Event& event : events_[static_cast<std::size_t>(rank)]) {
    for (const std::int64_t value : {std::int64_t{event.slot}, std::int64_t{event.is_break},
                                     event.kind_id, event.type_id, event.line})
      hash.Add(value);
  }
  return hash.Digest();
}

Result<std::vector<RankAspect>> RankFacts::Compare(Database& database, RankIndex reference,
                                                   RankIndex rank) const {
  std::vector<RankAspect> aspects;
  if (std::optional<RankAspect> backend = CompareBackends(reference, rank))
    aspects.push_back(*std::move(backend));
  for (const std::int32_t slot : job_->slot_order()) {
    const std::int32_t a = job_->CompileOf(reference, slot), b = job_->CompileOf(rank, slot);
    if (a < 0 || b < 0) continue;
    const JobCompile& old_one = job_->compiles()[static_cast<std::size_t>(a)];
    const JobCompile& new_one = job_->compiles()[static_cast<std::size_t>(b)];
    const JobSlot of = job_->SlotOf(slot, {reference, rank});
    const bool is_state = !IsFinished(old_one.status) || !IsFinished(new_one.status);
    if (is_state && old_one.status != new_one.status) {
      aspects.push_back({.area = AspectArea::kFailures,
                         .text = fmt::format("{}: {} → {}", of.Title(), Name(old_one.status),
                                             Name(new_one.status)),
                         .slots = {slot},
                         .is_state = true});
      aspects.back().is_absence = old_one.status == CompileStatus::kUnfinished ||
                                  new_one.status == CompileStatus::kUnfinished;
    }
    const bool has_other_graph = old_one.graph_content != new_one.graph_content &&
                                 old_one.graph_content != 0 && new_one.graph_content != 0;
    std::optional<GraphDifference> difference;
    if (has_other_graph) {
      ASSIGN_OR_RETURN(difference, CompareGraphs(database, old_one.graph_content, database,
                                                 new_one.graph_content));
    }
    const bool is_other = AreOfOtherFunctions(database, *job_, old_one, new_one) &&
                          (old_one.function_id != new_one.function_id || difference->differs);
    if (is_other) {
      aspects.push_back(OfOtherFunction(slot, of.label, NameBeside(*job_, old_one, new_one),
                                        NameBeside(*job_, new_one, old_one), is_state));
      // Graphs of two functions are not compared: only the place in its own is taken.
      if (difference) SetPlace(aspects.back(), difference->b_source);
    } else if (difference) {
      aspects.push_back(OfOtherGraph(slot, of.Title(), *difference, is_state));
      SetPlace(aspects.back(), difference->Source());
    }
  }
  const std::vector<Event>& old_events = events_[static_cast<std::size_t>(reference)];
  const std::vector<Event>& new_events = events_[static_cast<std::size_t>(rank)];
  for (const bool here : {true, false}) {
    for (const Event& event : here ? new_events : old_events) {
      const std::vector<Event>& others = here ? old_events : new_events;
      if (std::count(others.begin(), others.end(), event) != 0) continue;
      // That the other side has no such compile is said already.
      if (job_->CompileOf(here ? reference : rank, event.slot) < 0) continue;
      ASSIGN_OR_RETURN(const std::string reason, TextOf(database, event.reason_id));
      std::string what = reason;
      if (!event.is_break) {
        ASSIGN_OR_RETURN(const std::string type, TextOf(database, event.type_id));
        what = CauseOfException(type, reason);
      }
      std::string text =
          fmt::format("{}: {}{}", job_->SlotOf(event.slot, {reference, rank}).Title(),
                      here ? "" : "not here: ", Shorten(what, 200));
      // Several records may report one exception.
      if (!event.is_break && std::any_of(aspects.begin(), aspects.end(),
                                         [&](const auto& known) { return known.text == text; }))
        continue;
      aspects.push_back({.area = event.is_break ? AspectArea::kGraphBreaks : AspectArea::kFailures,
                         .text = std::move(text),
                         .slots = {event.slot},
                         .is_on_others = !here,
                         .is_state = !event.is_break,
                         .reason = reason});
      ASSIGN_OR_RETURN(aspects.back().file, TextOf(database, event.is_break ? event.kind_id : 0));
      aspects.back().line = event.line;
      if (event.is_break) {
        ASSIGN_OR_RETURN(aspects.back().stack, TextOf(database, event.stack_id));
      }
    }
  }
  const std::vector<Code>& old_codes = codes_[static_cast<std::size_t>(reference)];
  const std::vector<Code>& new_codes = codes_[static_cast<std::size_t>(rank)];
  std::int32_t graph_slot = -1;
  std::ptrdiff_t position = 0;  // among the codes of a graph: wrapper and kernels may be apart
  for (const Code& code : old_codes) {
    position = code.graph_slot == graph_slot ? position + 1 : 0;
    graph_slot = code.graph_slot;
    const std::int32_t slot = graphs_->graph_slots()[static_cast<std::size_t>(graph_slot)].slot;
    if (OfOneFunction(database, *job_, reference, rank, {slot}).empty()) continue;
    auto other = std::find_if(new_codes.begin(), new_codes.end(),
                              [&](const Code& c) { return c.graph_slot == graph_slot; });
    if (new_codes.end() - other <= position) continue;
    other += position;
    if (other->graph_slot != graph_slot || other->content_id == code.content_id) continue;
    ASSIGN_OR_RETURN(const std::string a, CodeOf(database, code.record_id));
    ASSIGN_OR_RETURN(const std::string b, CodeOf(database, other->record_id));
    const std::optional<FirstDifference> first = FindFirstDifference(a, b);
    std::string text = graphs_->Title(*job_, code.graph_slot) + ": the generated code differs";
    if (first)
      text += fmt::format(" in line {}: {}", first->a_line, ChangeText(first->a, first->b, 80));
    if (const std::string target = TargetChange(a, b); !target.empty())
      text = fmt::format("{}: code {}", graphs_->Title(*job_, code.graph_slot), target);
    aspects.push_back({AspectArea::kCode, std::move(text), {slot}});
    if (WithoutGroups(a) == WithoutGroups(b)) {
      aspects.back().cause = CauseKind::kProcessGroup;
      continue;
    }
    const auto of = [&](RankIndex one) -> const JobCompile& {
      return job_->compiles()[static_cast<std::size_t>(job_->CompileOf(one, slot))];
    };
    ASSIGN_OR_RETURN(const std::string hints, OtherHints(database, of(reference), of(rank)));
    aspects.back().is_of_sizes =
        std::any_of(aspects.begin(), aspects.end(), [slot](const RankAspect& aspect) {
          return aspect.area == AspectArea::kGraphs && aspect.is_of_sizes &&
                 aspect.slots.front() == slot;
        });
    if (hints.empty()) break;
    aspects.back().text =
        fmt::format("{} for other sizes: {}", graphs_->Title(*job_, code.graph_slot), hints);
    aspects.back().is_of_sizes = true;
    break;
  }
  return aspects;
}

}  // namespace tlparse

#include "analysis/ranks/rank_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/diff/graph_difference.h"
#include "analysis/diff/text_diff.h"
#include "analysis/findings/advice.h"
#include "artifacts/common/text/normalize.h"

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

// The lower median: half of the values are not above it. If half of the ranks are slow, they are
// compared with the others.
double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Result<std::string> CodeOf(Database& database, std::int64_t record_id) {
  ASSIGN_OR_RETURN(
      const std::string text,
      database.QueryText(fmt::format(
          "SELECT p.content FROM record_row r JOIN payload_row p ON p.id = r.payload_id "
          "WHERE r.id = {}",
          record_id)));
  std::string buffer;
  return std::string(NormalizeCode(text, buffer));
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
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare("SELECT graph_id, content_id, record_id FROM output_code_row "
                       "WHERE graph_id IS NOT NULL AND content_id IS NOT NULL ORDER BY record_id"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    const JobGraph* graph = graphs_->Find(rows.Int(0));
    if (graph == nullptr) continue;
    const RankIndex rank = job_->compiles()[static_cast<std::size_t>(graph->compile)].participant;
    codes_[static_cast<std::size_t>(rank)].push_back({graph->graph_slot, rows.Int(1), rows.Int(2)});
  }
  for (std::vector<Code>& codes : codes_) {
    std::stable_sort(codes.begin(), codes.end(),
                     [](const Code& a, const Code& b) { return a.graph_slot < b.graph_slot; });
  }
  return {};
}

Result<void> RankFacts::LoadEvents(Database& database) {
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare("SELECT compile_id, 0, kind_id, type_id, user_line, reason_id, "
                                    "record_id, NULL FROM failure_row UNION ALL "
                                    "SELECT compile_id, 1, user_file_id, NULL, user_line, "
                                    "reason_id, record_id, user_stack_id FROM graph_break_row "
                                    "ORDER BY 7"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    const JobCompile* compile = job_->FindCompile(rows.Int(0));
    if (compile == nullptr) continue;
    events_[static_cast<std::size_t>(compile->participant)].push_back(
        {compile->slot, rows.Int(1) != 0, rows.Int(2), rows.Int(3), rows.Int(4), rows.Int(5),
         rows.Int(7)});
  }
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
    hash.Add(job_->IsFinished(compile) ? std::int32_t{-1} : compile.status_id);
    hash.Add(compile.function_id);
  }
  for (const Code& code : codes_[static_cast<std::size_t>(rank)]) {
    // A compile that did not end well already differs by that; its code is not compared.
    const std::int32_t slot =
        graphs_->graph_slots()[static_cast<std::size_t>(code.graph_slot)].slot;
    const std::int32_t index = job_->CompileOf(rank, slot);
    if (index >= 0 && !job_->IsFinished(job_->compiles()[static_cast<std::size_t>(index)]))
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
  for (const std::int32_t slot : job_->slot_order()) {
    const std::int32_t a = job_->CompileOf(reference, slot), b = job_->CompileOf(rank, slot);
    if (a < 0 || b < 0) continue;
    const JobCompile& old_one = job_->compiles()[static_cast<std::size_t>(a)];
    const JobCompile& new_one = job_->compiles()[static_cast<std::size_t>(b)];
    const std::string title = job_->slots()[static_cast<std::size_t>(slot)].Title();
    const bool is_state = !job_->IsFinished(old_one) || !job_->IsFinished(new_one);
    if (is_state && old_one.status_id != new_one.status_id) {
      aspects.push_back(
          {"failures",
           fmt::format("{}: {} → {}", title, StatusInWords(job_->string(old_one.status_id)),
                       StatusInWords(job_->string(new_one.status_id))),
           {slot},
           std::nullopt,
           false,
           true});
      aspects.back().is_absence = job_->string(old_one.status_id) == "unfinished" ||
                                  job_->string(new_one.status_id) == "unfinished";
    }
    if (old_one.function_id != new_one.function_id && old_one.function_id >= 0 &&
        new_one.function_id >= 0) {
      aspects.push_back(
          {"compiles",
           fmt::format("{}: function {} → {}", title, job_->string(old_one.function_id),
                       job_->string(new_one.function_id)),
           {slot},
           std::nullopt,
           false,
           is_state});
    }
    if (old_one.graph_content != new_one.graph_content && old_one.graph_content != 0 &&
        new_one.graph_content != 0) {
      ASSIGN_OR_RETURN(
          const GraphDifference difference,
          CompareGraphs(database, old_one.graph_content, database, new_one.graph_content));
      std::string text = title + ": the Dynamo graph differs";
      if (difference.differs) {
        text += fmt::format(": {} → {}", difference.a_node.empty() ? "(end)" : difference.a_node,
                            difference.b_node.empty() ? "(end)" : difference.b_node);
        if (!difference.b_source.empty()) text += " at " + difference.b_source;
      }
      aspects.push_back({"graphs", std::move(text), {slot}, std::nullopt, false, is_state});
      SetPlace(aspects.back(),
               difference.b_source.empty() ? difference.a_source : difference.b_source);
    }
  }
  const std::vector<Event>& old_events = events_[static_cast<std::size_t>(reference)];
  const std::vector<Event>& new_events = events_[static_cast<std::size_t>(rank)];
  for (const bool here : {true, false}) {
    for (const Event& event : here ? new_events : old_events) {
      const std::vector<Event>& others = here ? old_events : new_events;
      if (std::count(others.begin(), others.end(), event) != 0) continue;
      ASSIGN_OR_RETURN(const std::string reason, TextOf(database, event.reason_id));
      std::string what = reason;
      if (!event.is_break) {
        ASSIGN_OR_RETURN(const std::string type, TextOf(database, event.type_id));
        what = CauseOfException(type, reason);
      }
      std::string text =
          fmt::format("{}: {}{}", job_->slots()[static_cast<std::size_t>(event.slot)].Title(),
                      here ? "" : "not here: ", Shorten(what, 200));
      // Several records may report one exception.
      if (!event.is_break && std::any_of(aspects.begin(), aspects.end(),
                                         [&](const auto& known) { return known.text == text; }))
        continue;
      aspects.push_back({event.is_break ? "graph_breaks" : "failures",
                         std::move(text),
                         {event.slot},
                         std::nullopt,
                         !here,
                         !event.is_break,
                         reason});
      ASSIGN_OR_RETURN(aspects.back().file, TextOf(database, event.is_break ? event.kind_id : 0));
      aspects.back().line = event.line;
      if (event.is_break) {
        ASSIGN_OR_RETURN(aspects.back().stack, TextOf(database, event.stack_id));
      }
    }
  }
  const std::vector<Code>& new_codes = codes_[static_cast<std::size_t>(rank)];
  for (const Code& code : codes_[static_cast<std::size_t>(reference)]) {
    const auto other = std::find_if(new_codes.begin(), new_codes.end(),
                                    [&](const Code& c) { return c.graph_slot == code.graph_slot; });
    if (other == new_codes.end() || other->content_id == code.content_id) continue;
    ASSIGN_OR_RETURN(const std::string a, CodeOf(database, code.record_id));
    ASSIGN_OR_RETURN(const std::string b, CodeOf(database, other->record_id));
    const std::optional<FirstDifference> first = FindFirstDifference(a, b);
    aspects.push_back(
        {"code",
         fmt::format("{}: the generated code differs{}", graphs_->Title(*job_, code.graph_slot),
                     first ? fmt::format(" in line {}: {} → {}", first->a_line,
                                         Shorten(first->a, 80), Shorten(first->b, 80))
                           : "")});
    break;
  }
  return aspects;
}

void RankFacts::SetCompileTime(RankClass& one) const {
  std::vector<double> complete, partial;
  for (const RankIndex rank : one.ranks) {
    const auto index = static_cast<std::size_t>(rank);
    (lacks_time_[index] == 0 ? complete : partial).push_back(compile_s_[index]);
  }
  one.is_at_least = complete.empty();
  one.median_compile_s = Median(one.is_at_least ? std::move(partial) : std::move(complete));
}

// A rank with a compile of unknown time has no total to compare with, unless every rank has one.
void RankFacts::SetMedian(SlowestRank& slowest) const {
  std::vector<double> values;
  for (std::size_t rank = 0; rank < compile_s_.size(); ++rank)
    if (lacks_time_[rank] == 0) values.push_back(compile_s_[rank]);
  slowest.is_median_at_least = values.empty();
  slowest.is_of_complete = values.size() < compile_s_.size();
  slowest.median_s = Median(values.empty() ? compile_s_ : std::move(values));
}

// The cache first: a miss among hits alone makes a rank slow.
std::string RankFacts::ReasonOfSlowness(const CacheAnswer& cache, RankIndex rank,
                                        std::int32_t slot) const {
  for (const CacheLookupAnswer& lookup : cache.lookup_answers) {
    const LookupSlot& place = cache.lookups.slots()[static_cast<std::size_t>(lookup.lookup_slot)];
    if (place.slot != slot) continue;
    const CacheClass* own = nullptr;
    std::size_t hits = 0;
    for (const CacheClass& one : lookup.classes) {
      if (std::find(one.ranks.begin(), one.ranks.end(), rank) != one.ranks.end()) own = &one;
      if (one.state == CacheState::kHit) hits += one.ranks.size();
    }
    if (own != nullptr && own->state != CacheState::kHit && hits > 0) {
      return fmt::format("{} {} where {} other{} hit", cache.lookups.LayerName(place.layer_id),
                         Name(own->state), hits, hits == 1 ? "" : "s");
    }
  }
  return {};
}

Result<std::optional<SlowestRank>> RankFacts::FindSlowest(Database& database,
                                                          const CacheAnswer& cache) const {
  const auto slowest = std::max_element(compile_s_.begin(), compile_s_.end());
  if (compile_s_.size() < 2 || *slowest <= 0) return std::optional<SlowestRank>();
  SlowestRank result;
  result.rank = static_cast<RankIndex>(slowest - compile_s_.begin());
  result.compile_s = *slowest;
  result.is_at_least = lacks_time_[static_cast<std::size_t>(result.rank)] != 0;
  SetMedian(result);
  std::int32_t worst_slot = -1, typical = -1;
  for (std::size_t i = 0; i < job_->slots().size(); ++i) {
    const auto slot = static_cast<std::int32_t>(i);
    const std::int32_t own = job_->CompileOf(result.rank, slot);
    const std::optional<double> own_s =
        own < 0 ? std::nullopt : job_->compiles()[static_cast<std::size_t>(own)].Seconds();
    if (!own_s) continue;
    std::vector<std::pair<double, std::int32_t>> others;
    for (std::size_t rank = 0; rank < compile_s_.size(); ++rank) {
      const std::int32_t other = job_->CompileOf(static_cast<RankIndex>(rank), slot);
      if (other < 0) {
        others.emplace_back(0, other);
      } else if (const auto s = job_->compiles()[static_cast<std::size_t>(other)].Seconds()) {
        others.emplace_back(*s, other);
      }
    }
    const std::size_t middle = (others.size() - 1) / 2;
    std::nth_element(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(middle),
                     others.end());
    const auto& [median, median_compile] = others[middle];
    const double excess = *own_s - median;
    if (excess > result.compile_excess_s)
      result.compile_excess_s = excess, worst_slot = slot, typical = median_compile;
  }
  if (worst_slot < 0) return std::optional(result);
  result.compile = job_->slots()[static_cast<std::size_t>(worst_slot)].Title();
  result.reason = ReasonOfSlowness(cache, result.rank, worst_slot);
  if (!result.reason.empty()) return std::optional(result);
  if (typical < 0) {
    result.reason = "most ranks do not compile it";
    return std::optional(result);
  }
  const std::int64_t own_id =
      job_->compiles()[static_cast<std::size_t>(job_->CompileOf(result.rank, worst_slot))].id;
  const std::int64_t typical_id = job_->compiles()[static_cast<std::size_t>(typical)].id;
  ASSIGN_OR_RETURN(Statement phases,
                   database.Prepare("SELECT total(dynamo_us), total(inductor_us), "
                                    "total(backward_us), total(before_restart_us), total(gc_us) "
                                    "FROM compilation_metric_row WHERE compile_id = ?"));
  std::vector<double> own_phases, typical_phases;
  for (const auto& [id, values] :
       {std::pair(own_id, &own_phases), std::pair(typical_id, &typical_phases)}) {
    phases.Bind(1, id);
    ASSIGN_OR_RETURN(const bool has_row, phases.Step());
    for (int i = 0; has_row && i < 5; ++i) values->push_back(phases.Real(i));
    phases.Reset();
  }
  static constexpr const char* kPhases[] = {"Dynamo with what it calls", "Inductor", "the backward",
                                            "attempts that were thrown away", "garbage collection"};
  double most = 0;
  for (std::size_t i = 1; i < own_phases.size() && i < typical_phases.size(); ++i) {
    const double excess = own_phases[i] - typical_phases[i];
    if (excess > most)
      most = excess, result.reason = fmt::format("{:.2f} s more in {}", excess / 1e6, kPhases[i]);
  }
  if (const double rest_s = most / 1e6 - result.compile_excess_s; rest_s >= 0.01)
    result.reason += fmt::format(", {:.2f} s less in the rest", rest_s);
  if (result.reason.empty() && !own_phases.empty())
    result.reason =
        "more in Dynamo; neither Inductor, backward, restarts nor garbage collection took longer";
  return std::optional(result);
}

}  // namespace tlparse

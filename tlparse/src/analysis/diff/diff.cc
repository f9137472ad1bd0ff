#include "analysis/diff/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "analysis/diff/graph_difference.h"
#include "analysis/diff/text_diff.h"
#include "analysis/ranks/job.h"
#include "analysis/read_transaction.h"
#include "artifacts/common/text/device_text.h"
#include "artifacts/common/text/normalize.h"

namespace tlparse {
namespace {

using Texts = std::vector<std::string>;

// Elements of `b` beyond those of `a`, counting repetitions.
Texts MultisetDifference(const Texts& a, const Texts& b) {
  std::map<std::string, int> count;
  for (const std::string& text : a) ++count[text];
  Texts result;
  for (const std::string& text : b) {
    if (count[text]-- <= 0) result.push_back(text);
  }
  return result;
}

std::vector<PhaseChange> ComparePhases(const std::map<std::string, std::int64_t>& a,
                                       const std::map<std::string, std::int64_t>& b) {
  std::vector<PhaseChange> changes;
  for (const char* phase :
       {"total", "dynamo", "aot_autograd", "inductor", "code_gen", "triton", "backward"}) {
    const auto old_one = a.find(phase), new_one = b.find(phase);
    // No compile takes no time: a total of 0 is one that the log does not have.
    const auto value = [](const auto& found, const auto& end) {
      return found == end || (found->first == "total" && found->second == 0)
                 ? std::nullopt
                 : std::optional(found->second);
    };
    const std::optional<std::int64_t> before = value(old_one, a.end());
    const std::optional<std::int64_t> after = value(new_one, b.end());
    if (before || after) changes.push_back({phase, before, after});
  }
  return changes;
}

struct SetMember {
  std::string name, hash, value;
};

Result<std::vector<SetMember>> LoadSet(Database& database, const KeySet& set) {
  std::vector<SetMember> members;
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT m.name, coalesce(m.hash, h.hash), m.value, m.hash IS NULL "
          "FROM component_set_member m LEFT JOIN component_hash_row h ON m.hash IS NULL "
          "AND h.component_id = m.component_id AND h.device_index = ?2 "
          "WHERE m.component_set_id = ?1 ORDER BY m.ordinal"));
  rows.Bind(1, set.set_id);
  rows.Bind(2, set.device_index);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return members;
    std::string value(rows.Text(2));
    if (rows.Int(3) != 0 && set.device_index) value = PutDeviceIndex(value, *set.device_index);
    members.push_back({std::string(rows.Text(0)), std::string(rows.Text(1)), std::move(value)});
  }
}

std::vector<ComponentDifference> CompareMembers(const std::vector<SetMember>& a,
                                                const std::vector<SetMember>& b) {
  std::vector<ComponentDifference> differences;
  std::unordered_map<std::string, const SetMember*> by_name;
  for (const SetMember& member : b) by_name.emplace(member.name, &member);
  for (const SetMember& member : a) {
    ComponentDifference difference;
    difference.name = member.name;
    difference.a_hash = member.hash;
    difference.a_value = member.value;
    const auto other = by_name.find(member.name);
    if (other != by_name.end()) {
      if (other->second->hash == member.hash) {
        by_name.erase(other);
        continue;
      }
      difference.b_hash = other->second->hash;
      difference.b_value = other->second->value;
      by_name.erase(other);
    }
    differences.push_back(std::move(difference));
  }
  for (const SetMember& member : b) {
    const auto left = by_name.find(member.name);
    if (left == by_name.end() || left->second != &member) continue;
    ComponentDifference difference;
    difference.name = member.name;
    difference.b_hash = member.hash;
    difference.b_value = member.value;
    differences.push_back(std::move(difference));
  }
  return differences;
}

class Differ {
 public:
  Differ(Database& a, Database& b, const ParticipantFacts& a_facts, const ParticipantFacts& b_facts,
         const DiffOptions& options)
      : a_(a), b_(b), a_facts_(a_facts), b_facts_(b_facts), options_(options) {}
  Result<DiffAnswer> Run();

 private:
  std::vector<std::pair<int, int>> Match() const;
  Result<CompileChange> Compare(const CompileFacts& a, const CompileFacts& b);
  Result<void> CompareLookups(const CompileFacts& a, const CompileFacts& b, CompileChange& change);
  Result<void> ExplainKeys(const CompileFacts& a, const CompileFacts& b, const FactLookup& a_lookup,
                           const FactLookup& b_lookup, CacheChange& cache);
  Result<void> CompareCodes(const CompileFacts& a, const CompileFacts& b, CompileChange& change);
  Result<void> CompareDynamoGraphs(const CompileFacts& a, const CompileFacts& b,
                                   CompileChange& change);
  static Result<std::string> Payload(Database& database, std::int64_t payload_id) {
    return database.QueryText(
        fmt::format("SELECT content FROM payload_row WHERE id = {}", payload_id));
  }

  Database& a_;
  Database& b_;
  const ParticipantFacts& a_facts_;
  const ParticipantFacts& b_facts_;
  const DiffOptions& options_;
};

std::vector<std::pair<int, int>> Differ::Match() const {
  std::vector<int> partner_of_b(b_facts_.compiles.size(), -1);
  std::vector<char> is_taken(a_facts_.compiles.size());
  const auto pass = [&](auto&& key_of) {
    std::map<Texts, std::vector<int>> free_ones;  // in order
    for (std::size_t i = 0; i < a_facts_.compiles.size(); ++i) {
      if (is_taken[i] == 0) free_ones[key_of(a_facts_.compiles[i])].push_back(static_cast<int>(i));
    }
    for (std::size_t i = 0; i < b_facts_.compiles.size(); ++i) {
      if (partner_of_b[i] >= 0) continue;
      const auto found = free_ones.find(key_of(b_facts_.compiles[i]));
      if (found == free_ones.end() || found->second.empty()) continue;
      partner_of_b[i] = found->second.front();
      found->second.erase(found->second.begin());
      is_taken[static_cast<std::size_t>(partner_of_b[i])] = 1;
    }
  };
  pass([](const CompileFacts& c) { return Texts{c.function, c.graph_hash, c.label}; });
  pass([](const CompileFacts& c) { return Texts{c.function, c.graph_hash}; });
  pass([](const CompileFacts& c) { return Texts{c.function, c.label}; });
  // Frame ids move where more or fewer functions were compiled; a function's compiles keep their
  // order. Without a name nothing shows that two compiles are the same.
  pass([](const CompileFacts& c) {
    const bool has_name = !c.function.empty();
    return Texts{c.function, has_name ? c.label.substr(c.label.rfind('/') + 1) : c.label};
  });
  pass([](const CompileFacts& c) {
    return Texts{c.function, c.function.empty() ? c.label : std::string()};
  });
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < partner_of_b.size(); ++i) {
    if (partner_of_b[i] >= 0) pairs.emplace_back(partner_of_b[i], static_cast<int>(i));
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

Result<void> Differ::ExplainKeys(const CompileFacts& a, const CompileFacts& b,
                                 const FactLookup& a_lookup, const FactLookup& b_lookup,
                                 CacheChange& cache) {
  std::vector<ComponentDifference> differences;
  const auto set_of = [](const CompileFacts& facts) {
    for (const FactLookup& lookup : facts.lookups) {
      if (lookup.set.set_id != 0) return lookup.set;
    }
    return KeySet();
  };
  const bool has_components = a_lookup.set.set_id != 0 && b_lookup.set.set_id != 0;
  const KeySet a_set = has_components ? a_lookup.set : set_of(a);
  const KeySet b_set = has_components ? b_lookup.set : set_of(b);
  if (a_set.set_id != 0 && b_set.set_id != 0) {
    ASSIGN_OR_RETURN(const std::vector<SetMember> a_members, LoadSet(a_, a_set));
    ASSIGN_OR_RETURN(const std::vector<SetMember> b_members, LoadSet(b_, b_set));
    differences = CompareMembers(a_members, b_members);
  }
  if (!has_components) {
    cache.fallback = fmt::format(
        "{}: components are not in the log; compared instead: {}torch._functorch.config",
        b_lookup.layer,
        a_set.set_id != 0 && b_set.set_id != 0 ? "the components of another lookup of the compile, "
                                               : "");
    if (a.functorch_config_payload != 0 && b.functorch_config_payload != 0) {
      ASSIGN_OR_RETURN(const std::string a_text, Payload(a_, a.functorch_config_payload));
      ASSIGN_OR_RETURN(const std::string b_text, Payload(b_, b.functorch_config_payload));
      if (a_text != b_text) {
        ComponentDifference difference = DescribeConfigChange(a_text, b_text);
        differences.push_back(std::move(difference));
      }
    }
  }
  cache.causes =
      FindCauses(std::move(differences), {a_facts_.torch_version, b_facts_.torch_version,
                                          a_facts_.python_version, b_facts_.python_version});
  return {};
}

Result<void> Differ::CompareLookups(const CompileFacts& a, const CompileFacts& b,
                                    CompileChange& change) {
  using Place = std::tuple<std::string, std::string, int>;
  std::map<Place, std::pair<const FactLookup*, const FactLookup*>> places;
  for (const bool is_a : {true, false}) {
    std::map<std::pair<std::string, std::string>, int> count;
    for (const FactLookup& lookup : is_a ? a.lookups : b.lookups) {
      auto& sides =
          places[{lookup.layer, lookup.direction, count[{lookup.layer, lookup.direction}]++}];
      (is_a ? sides.first : sides.second) = &lookup;
    }
  }
  for (const auto& [place, sides] : places) {
    const auto& [old_one, new_one] = sides;
    const bool has_both = old_one != nullptr && new_one != nullptr;
    CacheChange cache;
    cache.has_same_key = has_both && old_one->key == new_one->key;
    if (has_both && cache.has_same_key && old_one->state == new_one->state &&
        old_one->bypass_reason == new_one->bypass_reason)
      continue;
    const auto& [layer, direction, ordinal] = place;
    cache.title = layer + (direction.empty() ? "" : " " + direction) +
                  (ordinal > 0 ? fmt::format(" {}", ordinal + 1) : "");
    if (old_one != nullptr) cache.a_state = old_one->state;
    if (new_one != nullptr) cache.b_state = new_one->state;
    if (has_both && !cache.has_same_key && !old_one->key.empty() && !new_one->key.empty()) {
      RETURN_IF_ERROR(ExplainKeys(a, b, *old_one, *new_one, cache));
    } else if (new_one != nullptr && new_one->state == "bypass") {
      cache.causes.push_back({CauseKind::kBypass, Shorten(new_one->bypass_reason, 300), {}, {}});
    } else if (new_one != nullptr && new_one->state == "guard_miss") {
      cache.causes.push_back({CauseKind::kGuardMiss, Shorten(new_one->guard, 300), {}, {}});
    } else if (new_one != nullptr && new_one->state == "remote_error") {
      cache.causes.push_back(
          {CauseKind::kRemoteError, Shorten(new_one->remote_error, 300), {}, {}});
    }
    change.caches.push_back(std::move(cache));
  }
  return {};
}

Result<void> Differ::CompareCodes(const CompileFacts& a, const CompileFacts& b,
                                  CompileChange& change) {
  for (const FactCode& code : b.codes) {
    const auto other = std::find_if(a.codes.begin(), a.codes.end(),
                                    [&](const FactCode& c) { return c.title == code.title; });
    if (other == a.codes.end() || other->content_hash == code.content_hash) continue;
    CodeChange one{code.title, {}};
    if (options_.with_code) {
      const auto load = [](Database& database, std::int64_t record_id) -> Result<std::string> {
        ASSIGN_OR_RETURN(
            const std::string text,
            database.QueryText(fmt::format("SELECT p.content FROM record_row r JOIN payload_row p "
                                           "ON p.id = r.payload_id WHERE r.id = {}",
                                           record_id)));
        std::string buffer;
        return std::string(NormalizeCode(text, buffer));
      };
      ASSIGN_OR_RETURN(const std::string a_text, load(a_, other->record_id));
      ASSIGN_OR_RETURN(const std::string b_text, load(b_, code.record_id));
      one.diff = UnifiedDiff(a_text, b_text, "a/" + code.title, "b/" + code.title);
    }
    change.codes.push_back(std::move(one));
  }
  return {};
}

Result<void> Differ::CompareDynamoGraphs(const CompileFacts& a, const CompileFacts& b,
                                         CompileChange& change) {
  change.has_same_graph = a.graph_hash == b.graph_hash;
  if (change.has_same_graph || a.graph_content == 0 || b.graph_content == 0) return {};
  ASSIGN_OR_RETURN(const GraphDifference difference,
                   CompareGraphs(a_, a.graph_content, b_, b.graph_content));
  if (!difference.differs) return {};
  change.graph_difference =
      fmt::format("{} → {}", difference.a_node.empty() ? "(end)" : difference.a_node,
                  difference.b_node.empty() ? "(end)" : difference.b_node);
  if (!difference.b_source.empty()) change.graph_difference += " at " + difference.b_source;
  return {};
}

Result<CompileChange> Differ::Compare(const CompileFacts& a, const CompileFacts& b) {
  CompileChange change;
  change.a_label = a.label;
  change.b_label = b.label;
  change.function = b.function;
  change.a_status = a.status;
  change.b_status = b.status;
  change.phases = ComparePhases(a.phases_us, b.phases_us);
  change.new_recompiles = MultisetDifference(a.recompile_reasons, b.recompile_reasons);
  change.vanished_recompiles = MultisetDifference(b.recompile_reasons, a.recompile_reasons);
  change.new_graph_breaks = MultisetDifference(a.graph_breaks, b.graph_breaks);
  change.vanished_graph_breaks = MultisetDifference(b.graph_breaks, a.graph_breaks);
  change.new_guards = MultisetDifference(a.guards, b.guards);
  change.vanished_guards = MultisetDifference(b.guards, a.guards);
  change.new_kernels = MultisetDifference(a.kernels, b.kernels);
  change.vanished_kernels = MultisetDifference(b.kernels, a.kernels);
  RETURN_IF_ERROR(CompareDynamoGraphs(a, b, change));
  RETURN_IF_ERROR(CompareLookups(a, b, change));
  RETURN_IF_ERROR(CompareCodes(a, b, change));
  return change;
}

Result<DiffAnswer> Differ::Run() {
  DiffAnswer answer;
  answer.a_title = a_facts_.title;
  answer.b_title = b_facts_.title;
  answer.a_torch_version = a_facts_.torch_version;
  answer.b_torch_version = b_facts_.torch_version;
  answer.a_python_version = a_facts_.python_version;
  answer.b_python_version = b_facts_.python_version;
  const auto sum = [](const ParticipantFacts& facts) {
    std::map<std::string, std::int64_t> phases;
    for (const CompileFacts& compile : facts.compiles) {
      for (const auto& [phase, us] : compile.phases_us) phases[phase] += us;
    }
    return phases;
  };
  answer.phases = ComparePhases(sum(a_facts_), sum(b_facts_));
  std::vector<char> a_matched(a_facts_.compiles.size()), b_matched(b_facts_.compiles.size());
  for (const auto& [a, b] : Match()) {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    a_matched[i] = b_matched[j] = 1;
    ASSIGN_OR_RETURN(CompileChange change, Compare(a_facts_.compiles[i], b_facts_.compiles[j]));
    answer.compiles.push_back(std::move(change));
  }
  const auto unmatched = [](const ParticipantFacts& facts, const std::vector<char>& matched,
                            std::vector<UnmatchedCompile>& out) {
    for (std::size_t i = 0; i < matched.size(); ++i) {
      const CompileFacts& compile = facts.compiles[i];
      if (matched[i] == 0)
        out.push_back({compile.label, compile.function, compile.status, compile.recompile_reasons,
                       compile.phases_us.at("total")});
    }
  };
  unmatched(a_facts_, a_matched, answer.only_a);
  unmatched(b_facts_, b_matched, answer.only_b);
  return answer;
}

Result<RankIndex> FindRank(const Job& job, const std::optional<std::string>& rank) {
  if (!rank) return RankIndex{0};
  for (std::size_t i = 0; i < job.participants().size(); ++i) {
    if (job.participants()[i].name == *rank) return static_cast<RankIndex>(i);
  }
  return Fail(ErrorCode::kNotFound,
              fmt::format("run '{}' has no rank '{}'", job.run_name(), *rank));
}

}  // namespace

bool CompileChange::IsEqual() const {
  return has_same_graph && a_status == b_status && new_recompiles.empty() &&
         vanished_recompiles.empty() && new_graph_breaks.empty() && vanished_graph_breaks.empty() &&
         new_guards.empty() && vanished_guards.empty() && new_kernels.empty() &&
         vanished_kernels.empty() && caches.empty() && codes.empty();
}

bool DiffAnswer::IsEqual() const {
  // A version that a log does not tell is no difference.
  const auto is_same = [](const std::string& a, const std::string& b) {
    return a.empty() || b.empty() || a == b;
  };
  return only_a.empty() && only_b.empty() && is_same(a_torch_version, b_torch_version) &&
         is_same(a_python_version, b_python_version) &&
         std::all_of(compiles.begin(), compiles.end(),
                     [](const CompileChange& change) { return change.IsEqual(); });
}

namespace {

bool HasOtherCode(const DiffAnswer& answer, const MeasuredChange& kernel) {
  return std::any_of(
      answer.compiles.begin(), answer.compiles.end(), [&](const CompileChange& compile) {
        return compile.b_label == kernel.label &&
               std::any_of(compile.codes.begin(), compile.codes.end(), [&](const CodeChange& code) {
                 return code.title.empty() ||
                        code.title.find(kernel.direction) != std::string::npos;
               });
      });
}

}  // namespace

Result<DiffAnswer> AnalyzeDiff(const DiffSide& a, const DiffSide& b, const DiffOptions& options) {
  ASSIGN_OR_RETURN(const ReadTransaction a_transaction, ReadTransaction::Begin(*a.database));
  ASSIGN_OR_RETURN(const ReadTransaction b_transaction, ReadTransaction::Begin(*b.database));
  ASSIGN_OR_RETURN(const Job a_job, Job::Load(*a.database, a.run, a.launch));
  ASSIGN_OR_RETURN(const Job b_job, Job::Load(*b.database, b.run, b.launch));
  ASSIGN_OR_RETURN(const RankIndex a_rank, FindRank(a_job, a.rank));
  ASSIGN_OR_RETURN(const RankIndex b_rank, FindRank(b_job, b.rank));
  ASSIGN_OR_RETURN(const ParticipantFacts a_facts,
                   LoadParticipantFacts(*a.database, a_job, a_rank));
  ASSIGN_OR_RETURN(const ParticipantFacts b_facts,
                   LoadParticipantFacts(*b.database, b_job, b_rank));
  ASSIGN_OR_RETURN(DiffAnswer answer,
                   Differ(*a.database, *b.database, a_facts, b_facts, options).Run());
  ASSIGN_OR_RETURN(answer.measured,
                   CompareMeasured({a.database, a_job.run_id(),
                                    a_job.participants()[static_cast<std::size_t>(a_rank)].rank},
                                   {b.database, b_job.run_id(),
                                    b_job.participants()[static_cast<std::size_t>(b_rank)].rank}));
  if (answer.measured) {
    for (MeasuredChange& change : answer.measured->changes)
      change.has_other_code = change.is_kernel && HasOtherCode(answer, change);
  }
  answer.a_rank = a_job.participants()[static_cast<std::size_t>(a_rank)].name;
  answer.b_rank = b_job.participants()[static_cast<std::size_t>(b_rank)].name;
  return answer;
}

}  // namespace tlparse

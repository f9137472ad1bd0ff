#include "facts/cache/key_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "facts/contents/graph_difference.h"
#include "queries/facts/cache/key_difference.h"

namespace tlparse {
namespace {

// a name, and which of that name: names may repeat
using Occurrence = std::pair<std::int64_t, int>;

std::map<Occurrence, std::int64_t> ByName(std::span<const KeyComponent> components) {
  std::map<Occurrence, std::int64_t> result;
  std::map<std::int64_t, int> count;
  for (const KeyComponent& component : components)
    result.emplace(Occurrence{component.name_id, count[component.name_id]++}, component.id);
  return result;
}

Result<std::string> HashOfContent(Database& database, std::int64_t content_id) {
  return database.QueryText("SELECT hash FROM content_row WHERE id = ?", content_id);
}

struct IdPair {
  std::int64_t a, b;  // 0: not on that side
};

// Pairs the components of two sets by name: in the order of set a, then what only b has. Most sets
// have the same names in the same order at both ends, so only those between are looked up; names
// may repeat, and are paired in order there.
std::vector<IdPair> PairByName(const std::vector<KeyComponent>& a,
                               const std::vector<KeyComponent>& b) {
  std::size_t head = 0, tail = 0;
  const std::size_t shorter = std::min(a.size(), b.size());
  while (head < shorter && a[head].name_id == b[head].name_id) ++head;
  while (tail < shorter - head && a[a.size() - 1 - tail].name_id == b[b.size() - 1 - tail].name_id)
    ++tail;
  std::vector<IdPair> pairs;
  pairs.reserve(a.size());
  for (std::size_t i = 0; i < head; ++i) pairs.push_back({a[i].id, b[i].id});
  const std::span a_middle(a.data() + head, a.size() - head - tail),
      b_middle(b.data() + head, b.size() - head - tail);
  const std::map<Occurrence, std::int64_t> a_by_name = ByName(a_middle),
                                           b_by_name = ByName(b_middle);
  std::map<std::int64_t, int> count;
  for (const KeyComponent& component : a_middle) {
    const auto other = b_by_name.find({component.name_id, count[component.name_id]++});
    pairs.push_back({component.id, other == b_by_name.end() ? 0 : other->second});
  }
  for (std::size_t i = tail; i > 0; --i) pairs.push_back({a[a.size() - i].id, b[b.size() - i].id});
  count.clear();
  for (const KeyComponent& component : b_middle) {
    if (a_by_name.count({component.name_id, count[component.name_id]++}) == 0)
      pairs.push_back({0, component.id});
  }
  return pairs;
}

}  // namespace

Result<std::vector<ComponentDifference>> CompareSets(ComponentIndex& index, const KeySet& a_set,
                                                     const KeySet& b_set) {
  std::vector<ComponentDifference> differences;
  if (a_set == b_set) return differences;
  ASSIGN_OR_RETURN(const std::vector<KeyComponent> a, index.Expand(a_set.set_id));
  ASSIGN_OR_RETURN(const std::vector<KeyComponent> b, index.Expand(b_set.set_id));
  for (const IdPair& pair : PairByName(a, b)) {
    const ComponentOfKey a_component = pair.a == 0 ? ComponentOfKey() : index.In(a_set, pair.a);
    const ComponentOfKey b_component = pair.b == 0 ? ComponentOfKey() : index.In(b_set, pair.b);
    if (a_component == b_component) continue;
    ComponentDifference difference;
    if (pair.a != 0) {
      ASSIGN_OR_RETURN(const ComponentIndex::Text* text, index.Fetch(a_component));
      difference.name = text->name;
      difference.a_hash = text->hash;
      difference.a_value = text->value;
    }
    if (pair.b != 0) {
      ASSIGN_OR_RETURN(const ComponentIndex::Text* text, index.Fetch(b_component));
      difference.name = text->name;
      difference.b_hash = text->hash;
      difference.b_value = text->value;
    }
    if (difference.a_hash != difference.b_hash) differences.push_back(std::move(difference));
  }
  return differences;
}

std::size_t CountDifferences(const std::vector<KeyComponent>& a,
                             const std::vector<KeyComponent>& b) {
  const std::vector<IdPair> pairs = PairByName(a, b);
  return static_cast<std::size_t>(std::count_if(
      pairs.begin(), pairs.end(), [](const IdPair& pair) { return pair.a != pair.b; }));
}

Result<KeyComparer> KeyComparer::Make(Database& database, const Job& job,
                                      const LookupIndex& lookups) {
  ASSIGN_OR_RETURN(ComponentIndex index, ComponentIndex::Load(database));
  KeyComparer comparer(database, job, lookups, std::move(index));
  for (std::size_t i = 0; i < lookups.lookups().size(); ++i) {
    const JobLookup& lookup = lookups.lookups()[i];
    if (lookup.set.set_id != 0)
      comparer.sibling_of_compile_.try_emplace(lookup.compile, static_cast<std::int32_t>(i));
  }
  return comparer;
}

const JobLookup* KeyComparer::Sibling(const JobLookup& lookup) const {
  const auto found = sibling_of_compile_.find(lookup.compile);
  return found == sibling_of_compile_.end()
             ? nullptr
             : &lookups_->lookups()[static_cast<std::size_t>(found->second)];
}

Result<std::int64_t> KeyComparer::FunctorchConfig(const JobLookup& lookup) {
  if (!config_of_compile_) {
    config_of_compile_.emplace();
    ASSIGN_OR_RETURN(const std::vector<ConfigOfCompile>* const rows,
                     job_->RowsOfWhole<ConfigOfCompile>([&](const JobRecords& whole) {
                       return Query<ConfigOfCompile>(
                           *database_, {.in_whole_records = whole.InWholeRecords("id")});
                     }));
    for (const ConfigOfCompile& row : *rows)
      config_of_compile_->try_emplace(row.compile_id, row.payload_id);
  }
  const auto found =
      config_of_compile_->find(job_->compiles()[static_cast<std::size_t>(lookup.compile)].id);
  return found == config_of_compile_->end() ? 0 : found->second;
}

Result<Hash128> KeyComparer::Evidence(const JobLookup& lookup) {
  SequenceHash hash;
  if (lookup.state == CacheState::kBypass || lookup.state == CacheState::kDisabled) {
    hash.Add(lookup.bypass_id);
    return hash.Digest();
  }
  if (lookup.set.set_id != 0) return index_.NeutralHash(lookup.set.set_id);
  const JobCompile& compile = job_->compiles()[static_cast<std::size_t>(lookup.compile)];
  const JobParticipant& participant =
      job_->participants()[static_cast<std::size_t>(lookup.participant)];
  if (const JobLookup* sibling = Sibling(lookup)) {
    const Hash128 neutral = index_.NeutralHash(sibling->set.set_id);
    hash.Add(static_cast<std::int64_t>(neutral.low));
    hash.Add(static_cast<std::int64_t>(neutral.high));
  }
  hash.Add(compile.graph_content);
  hash.Add(participant.torch_version);
  hash.Add(participant.python_version);
  ASSIGN_OR_RETURN(const std::int64_t config, FunctorchConfig(lookup));
  hash.Add(config);
  return hash.Digest();
}

CauseContext KeyComparer::Context(RankIndex a, RankIndex b) const {
  const JobParticipant& old_side = job_->participants()[static_cast<std::size_t>(a)];
  const JobParticipant& new_side = job_->participants()[static_cast<std::size_t>(b)];
  return {old_side.torch_version, new_side.torch_version, old_side.python_version,
          new_side.python_version};
}

Result<KeyDifference> KeyComparer::Compare(const JobLookup& a, const JobLookup& b) {
  KeyDifference result;
  if (a.set.set_id != 0 && b.set.set_id != 0) {
    ASSIGN_OR_RETURN(result.differences, CompareSets(index_, a.set, b.set));
    return result;
  }
  const JobLookup* a_sibling = Sibling(a);
  const JobLookup* b_sibling = Sibling(b);
  std::string compared;
  if (a_sibling != nullptr && b_sibling != nullptr) {
    ASSIGN_OR_RETURN(result.differences, CompareSets(index_, a_sibling->set, b_sibling->set));
    compared = "the FX components of the same compile";
  }
  ASSIGN_OR_RETURN(const std::int64_t a_config, FunctorchConfig(a));
  ASSIGN_OR_RETURN(const std::int64_t b_config, FunctorchConfig(b));
  if (a_config != 0 && b_config != 0) {
    compared += compared.empty() ? "torch._functorch.config" : ", torch._functorch.config";
    if (a_config != b_config) {
      ASSIGN_OR_RETURN(
          const std::string a_text,
          database_->QueryText("SELECT content FROM payload_row WHERE id = ?", a_config));
      ASSIGN_OR_RETURN(
          const std::string b_text,
          database_->QueryText("SELECT content FROM payload_row WHERE id = ?", b_config));
      result.differences.push_back(DescribeConfigChange(a_text, b_text));
    }
  }
  const JobCompile& a_compile = job_->compiles()[static_cast<std::size_t>(a.compile)];
  const JobCompile& b_compile = job_->compiles()[static_cast<std::size_t>(b.compile)];
  if (a_compile.graph_content != 0 && b_compile.graph_content != 0) {
    compared += compared.empty() ? "the Dynamo graphs" : ", the Dynamo graphs";
    const bool is_listed = std::any_of(
        result.differences.begin(), result.differences.end(), [](const ComponentDifference& d) {
          return d.name == "gm" || d.name.starts_with("example_inputs");
        });
    if (a_compile.graph_content != b_compile.graph_content && !is_listed) {
      ASSIGN_OR_RETURN(
          const GraphDifference graphs,
          CompareGraphs(*database_, a_compile.graph_content, *database_, b_compile.graph_content));
      ComponentDifference difference;
      difference.name = "dynamo_output_graph";
      ASSIGN_OR_RETURN(difference.a_hash, HashOfContent(*database_, a_compile.graph_content));
      ASSIGN_OR_RETURN(difference.b_hash, HashOfContent(*database_, b_compile.graph_content));
      difference.a_value = graphs.a_node.empty() ? "(end)" : graphs.a_node;
      difference.b_value = graphs.b_node.empty() ? "(end)" : graphs.b_node;
      result.differences.push_back(std::move(difference));
    }
  }
  const std::string& layer =
      lookups_->LayerName(lookups_->slots()[static_cast<std::size_t>(b.lookup_slot)].layer_id);
  result.has_evidence = !compared.empty();
  result.fallback =
      result.has_evidence
          ? fmt::format("{}: components are not in the log; compared instead: {}", layer, compared)
          : fmt::format(
                "{}: components are not in the log, nor anything that could stand in for them",
                layer);
  return result;
}

}  // namespace tlparse

#include "analysis/key_difference.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>


namespace tlparse {
namespace {

using Occurrence = std::pair<std::int64_t, int>;  // a name, and which of that name: names may repeat

std::map<Occurrence, std::int64_t> ByName(const std::vector<KeyComponent>& components) {
  std::map<Occurrence, std::int64_t> result;
  std::map<std::int64_t, int> count;
  for (const KeyComponent& component : components) result.emplace(Occurrence{component.name_id, count[component.name_id]++}, component.id);
  return result;
}

ComponentDifference TextDifference(std::string name, std::string a, std::string b) {
  ComponentDifference difference;
  difference.name = std::move(name);
  difference.a_hash = ToHex(HashBytes(a));
  difference.b_hash = ToHex(HashBytes(b));
  difference.a_value = std::move(a);
  difference.b_value = std::move(b);
  return difference;
}

}  // namespace

Result<std::vector<ComponentDifference>> CompareSets(ComponentIndex& index, std::int64_t a_set, std::int64_t b_set) {
  std::vector<ComponentDifference> differences;
  if (a_set == b_set) return differences;
  ASSIGN_OR_RETURN(const std::vector<KeyComponent> a, index.Expand(a_set));
  ASSIGN_OR_RETURN(const std::vector<KeyComponent> b, index.Expand(b_set));
  const std::map<Occurrence, std::int64_t> b_by_name = ByName(b), a_by_name = ByName(a);
  std::map<std::int64_t, int> count;
  const auto add = [&](std::int64_t a_id, std::int64_t b_id) -> Result<void> {
    ComponentDifference difference;
    if (a_id != 0) {
      ASSIGN_OR_RETURN(ComponentIndex::Text text, index.Fetch(a_id));
      difference.name = text.name;
      difference.a_hash = std::move(text.hash);
      difference.a_value = std::move(text.value);
    }
    if (b_id != 0) {
      ASSIGN_OR_RETURN(ComponentIndex::Text text, index.Fetch(b_id));
      difference.name = text.name;
      difference.b_hash = std::move(text.hash);
      difference.b_value = std::move(text.value);
    }
    if (difference.a_hash != difference.b_hash) differences.push_back(std::move(difference));
    return {};
  };
  for (const KeyComponent& component : a) {
    const auto other = b_by_name.find({component.name_id, count[component.name_id]++});
    if (other != b_by_name.end() && other->second == component.id) continue;
    RETURN_IF_ERROR(add(component.id, other == b_by_name.end() ? 0 : other->second));
  }
  count.clear();
  for (const KeyComponent& component : b) {
    if (a_by_name.count({component.name_id, count[component.name_id]++}) == 0) RETURN_IF_ERROR(add(0, component.id));
  }
  return differences;
}

std::size_t CountDifferences(const std::vector<KeyComponent>& a, const std::vector<KeyComponent>& b) {
  const std::map<Occurrence, std::int64_t> b_by_name = ByName(b);
  std::map<std::int64_t, int> count;
  std::size_t same = 0, named = 0;
  for (const KeyComponent& component : a) {
    const auto other = b_by_name.find({component.name_id, count[component.name_id]++});
    if (other == b_by_name.end()) continue;
    ++named;
    if (other->second == component.id) ++same;
  }
  return a.size() + b.size() - named - same;
}

Result<KeyComparer> KeyComparer::Make(Database& database, const Job& job, const LookupIndex& lookups) {
  ASSIGN_OR_RETURN(ComponentIndex index, ComponentIndex::Load(database));
  ASSIGN_OR_RETURN(const std::int64_t name, database.QueryInt("SELECT id FROM text WHERE text = 'torch._functorch.config'"));
  ASSIGN_OR_RETURN(Statement config, database.Prepare(fmt::format("SELECT r.payload_id FROM compile_record_row m "
                                                                  "JOIN record_row r ON r.id = m.record_id WHERE m.compile_id = ? "
                                                                  "AND r.name_id = {} ORDER BY r.id LIMIT 1", name)));
  KeyComparer comparer(database, job, lookups, std::move(index), std::move(config));
  for (std::size_t i = 0; i < lookups.lookups().size(); ++i) {
    const JobLookup& lookup = lookups.lookups()[i];
    if (lookup.set_id != 0) comparer.sibling_of_compile_.try_emplace(lookup.compile, static_cast<std::int32_t>(i));
  }
  return comparer;
}

const JobLookup* KeyComparer::Sibling(const JobLookup& lookup) const {
  const auto found = sibling_of_compile_.find(lookup.compile);
  return found == sibling_of_compile_.end() ? nullptr : &lookups_->lookups()[static_cast<std::size_t>(found->second)];
}

Result<std::int64_t> KeyComparer::FunctorchConfig(const JobLookup& lookup) {
  const std::int64_t compile_id = job_->compiles()[static_cast<std::size_t>(lookup.compile)].id;
  if (const auto known = config_of_compile_.find(compile_id); known != config_of_compile_.end()) return known->second;
  config_.Bind(1, compile_id);
  ASSIGN_OR_RETURN(const bool has_row, config_.Step());
  const std::int64_t payload = has_row ? config_.Int(0) : 0;
  config_.Reset();
  config_of_compile_.emplace(compile_id, payload);
  return payload;
}

Result<Hash128> KeyComparer::Evidence(const JobLookup& lookup) {
  SequenceHash hash;
  if (lookup.state == LookupState::kBypass || lookup.state == LookupState::kDisabled) {
    hash.Add(lookup.bypass_id);
    return hash.Digest();
  }
  if (lookup.set_id != 0) return index_.NeutralHash(lookup.set_id);
  const JobCompile& compile = job_->compiles()[static_cast<std::size_t>(lookup.compile)];
  const JobParticipant& participant = job_->participants()[static_cast<std::size_t>(lookup.participant)];
  if (const JobLookup* sibling = Sibling(lookup)) {
    const Hash128 neutral = index_.NeutralHash(sibling->set_id);
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
  return {old_side.torch_version, new_side.torch_version, old_side.python_version, new_side.python_version};
}

Result<KeyDifference> KeyComparer::Compare(const JobLookup& a, const JobLookup& b) {
  KeyDifference result;
  if (a.set_id != 0 && b.set_id != 0) {
    ASSIGN_OR_RETURN(result.differences, CompareSets(index_, a.set_id, b.set_id));
    return result;
  }
  const JobLookup* a_sibling = Sibling(a);
  const JobLookup* b_sibling = Sibling(b);
  std::string compared;
  if (a_sibling != nullptr && b_sibling != nullptr) {
    ASSIGN_OR_RETURN(result.differences, CompareSets(index_, a_sibling->set_id, b_sibling->set_id));
    compared = "the FX components of the same compile";
  }
  ASSIGN_OR_RETURN(const std::int64_t a_config, FunctorchConfig(a));
  ASSIGN_OR_RETURN(const std::int64_t b_config, FunctorchConfig(b));
  if (a_config != 0 && b_config != 0) {
    compared += compared.empty() ? "torch._functorch.config" : ", torch._functorch.config";
    if (a_config != b_config) {
      ASSIGN_OR_RETURN(const std::string a_text, database_->QueryText(fmt::format("SELECT content FROM payload_row WHERE id = {}", a_config)));
      ASSIGN_OR_RETURN(const std::string b_text, database_->QueryText(fmt::format("SELECT content FROM payload_row WHERE id = {}", b_config)));
      result.differences.push_back(DescribeConfigChange(a_text, b_text));
    }
  }
  const JobCompile& a_compile = job_->compiles()[static_cast<std::size_t>(a.compile)];
  const JobCompile& b_compile = job_->compiles()[static_cast<std::size_t>(b.compile)];
  if (a_compile.graph_content != 0 && b_compile.graph_content != 0) {
    compared += compared.empty() ? "the Dynamo graphs" : ", the Dynamo graphs";
    const bool told = std::any_of(result.differences.begin(), result.differences.end(), [](const ComponentDifference& d) {
      return d.name == "gm" || d.name.starts_with("example_inputs");
    });
    if (a_compile.graph_content != b_compile.graph_content && !told) {
      result.differences.push_back(TextDifference("dynamo_output_graph", fmt::format("graph {}", a_compile.graph_content),
                                                  fmt::format("graph {}", b_compile.graph_content)));
    }
  }
  const std::string& layer = lookups_->LayerName(lookups_->slots()[static_cast<std::size_t>(b.lookup_slot)].layer_id);
  result.has_evidence = !compared.empty();
  result.fallback = result.has_evidence
                        ? fmt::format("{}: components are not in the log; compared instead: {}", layer, compared)
                        : fmt::format("{}: components are not in the log, nor anything that could stand in for them", layer);
  return result;
}

}  // namespace tlparse

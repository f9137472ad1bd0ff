#include "fleet/fleet_changes.h"

#include <fmt/format.h>

#include <map>

#include "facts/text/shorten.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

// More differ only where nothing is comparable any more.
constexpr std::size_t kMostComponents = 2000;

struct Text {
  std::optional<std::string> hash;
  std::string value;
};

Result<std::map<std::string, Text>> ReadTexts(FleetReader& reader,
                                              const std::vector<OneSided>& components) {
  std::map<std::string, Text> texts;
  if (components.empty()) return texts;
  std::string keys;
  for (const OneSided& component : components) {
    if (!keys.empty()) keys += ',';
    keys += QuoteHash(component.key);
  }
  ASSIGN_OR_RETURN(const auto rows,
                   reader.Rows(fmt::format("SELECT lower(hex(key)) AS k, min(ifNull(hash, '')), "
                                           "min(value) FROM {} WHERE key IN ({}) GROUP BY key",
                                           reader.From("component"), keys),
                               3));
  for (const auto& row : rows)
    texts[row[0]] = {row[1].empty() ? std::nullopt : std::optional(row[1]), row[2]};
  return texts;
}

struct RunVersions {
  std::string torch, python;
};

Result<RunVersions> ReadVersions(FleetReader& reader, const std::string& run) {
  ASSIGN_OR_RETURN(const auto rows,
                   reader.Rows(fmt::format("SELECT min(ifNull(torch_version, '')), "
                                           "min(ifNull(python_version, '')) FROM {} WHERE {}",
                                           reader.From("process"), reader.LiveRun(run)),
                               2));
  if (rows.empty()) return RunVersions{};
  return RunVersions{rows[0][0], rows[0][1]};
}

std::string Described(const Cause& cause) {
  std::string text = cause.text;
  if (text.empty() && !cause.differences.empty()) text = DescribeChange(cause.differences.front());
  return text;
}

}  // namespace

FleetSection ChangesSection() {
  return {"changes",
          {{"run_before"}, {"run_id"}, {"kind"}, {"text"}, {"component"}, {"before"}, {"after"}},
          {}};
}

Result<std::vector<ComponentDifference>> ToDifferences(FleetReader& reader,
                                                       const std::vector<OneSided>& components) {
  ASSIGN_OR_RETURN(const auto texts, ReadTexts(reader, components));
  std::map<std::string, std::pair<std::vector<const OneSided*>, std::vector<const OneSided*>>>
      by_name;
  for (const OneSided& component : components)
    (component.is_after ? by_name[component.name].second : by_name[component.name].first)
        .push_back(&component);
  std::vector<ComponentDifference> differences;
  for (const auto& [name, sides] : by_name) {
    // In order of their keys: which belongs to which is known only where there is one on each side.
    for (std::size_t i = 0; i < std::max(sides.first.size(), sides.second.size()); ++i) {
      ComponentDifference difference;
      difference.name = name;
      const auto fill = [&](const std::vector<const OneSided*>& side,
                            std::optional<std::string>& hash, std::optional<std::string>& value) {
        if (i >= side.size()) return;
        const std::string key = ToHex(side[i]->key);
        const auto text = texts.find(key);
        // A component without a hash in the log is identified by its key.
        hash = text != texts.end() && text->second.hash ? text->second.hash : key;
        value = text == texts.end() ? std::string() : text->second.value;
      };
      fill(sides.first, difference.a_hash, difference.a_value);
      fill(sides.second, difference.b_hash, difference.b_value);
      differences.push_back(std::move(difference));
    }
  }
  return differences;
}

Result<std::size_t> AddChanges(FleetReader& reader, const std::string& run_before,
                               const std::string& run_after, const std::string& function,
                               FleetSection& section) {
  const std::size_t before = section.rows.size();
  const auto of_runs = [&](const std::string& run) {
    return fmt::format("SELECT DISTINCT name, component FROM {} WHERE {}",
                       reader.From("run_component"), reader.LiveRun(run));
  };
  ASSIGN_OR_RETURN(
      const auto rows,
      reader.Rows(
          fmt::format("SELECT name, lower(hex(component)) AS k, max(side) AS s "
                      "FROM (SELECT name, component, toUInt8(0) AS side FROM ({}) AS a "
                      "UNION ALL SELECT name, component, toUInt8(1) AS side FROM ({}) AS b) AS q "
                      "GROUP BY name, component HAVING count() = 1 ORDER BY name, k LIMIT {}",
                      of_runs(run_before), of_runs(run_after), kMostComponents),
          3));
  std::vector<OneSided> components;
  for (const auto& row : rows)
    components.push_back({row[0], FromHex(row[1]).value_or(Hash128{}), row[2] == "1"});
  ASSIGN_OR_RETURN(std::vector<ComponentDifference> differences, ToDifferences(reader, components));
  ASSIGN_OR_RETURN(const RunVersions a, ReadVersions(reader, run_before));
  ASSIGN_OR_RETURN(const RunVersions b, ReadVersions(reader, run_after));
  const std::vector<Cause> causes =
      FindCauses(std::move(differences), {a.torch, b.torch, a.python, b.python});
  for (const Cause& cause : causes) {
    const ComponentDifference* first =
        cause.differences.empty() ? nullptr : &cause.differences.front();
    section.rows.push_back(
        {run_before, run_after, std::string(Name(cause.kind)), Described(cause),
         first == nullptr ? std::nullopt : std::optional(first->name),
         first == nullptr || !first->a_value ? std::nullopt
                                             : std::optional(Shorten(*first->a_value, 120)),
         first == nullptr || !first->b_value ? std::nullopt
                                             : std::optional(Shorten(*first->b_value, 120))});
  }
  // Versions without a key that names them.
  if (a.torch != b.torch && !a.torch.empty() && !b.torch.empty() &&
      std::none_of(causes.begin(), causes.end(),
                   [](const Cause& cause) { return cause.kind == CauseKind::kBuild; }))
    section.rows.push_back({run_before, run_after, "build",
                            "another torch: " + a.torch + " → " + b.torch, "torch_version", a.torch,
                            b.torch});
  const auto codes = [&](const std::string& run) {
    return reader.Rows(
        fmt::format("SELECT DISTINCT lower(hex(content_hash)) AS h "
                    "FROM {} WHERE {} AND function = {} ORDER BY h",
                    reader.From("output_code"), reader.LiveRun(run), QuoteText(function)),
        1);
  };
  ASSIGN_OR_RETURN(const auto a_codes, codes(run_before));
  ASSIGN_OR_RETURN(const auto b_codes, codes(run_after));
  if (a_codes != b_codes)
    section.rows.push_back(
        {run_before, run_after, "code",
         fmt::format("the generated code of {} is not the same: {} and {} distinct "
                     "codes",
                     function, a_codes.size(), b_codes.size()),
         std::nullopt, a_codes.empty() ? std::nullopt : std::optional(a_codes[0][0]),
         b_codes.empty() ? std::nullopt : std::optional(b_codes[0][0])});
  return section.rows.size() - before;
}

}  // namespace tlparse

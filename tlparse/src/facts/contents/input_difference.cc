#include "facts/contents/input_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "facts/text/guard_text.h"

namespace tlparse {
namespace {

struct Property {
  const char* name;
  const char* sql;  // of the metadata m
};
// A flag that is false is not in the log.
constexpr std::array<Property, 6> kProperties = {{
    {"dtype", "m ->> '$.dtype'"},
    {"size", "replace(replace(m -> '$.size', ' ', ''), ',', ', ')"},
    {"stride", "replace(replace(m -> '$.stride', ' ', ''), ',', ', ')"},
    {"requires_grad", "iif(m ->> '$.requires_grad', 'True', 'False')"},
    {"is_parameter", "iif(m ->> '$.is_parameter', 'True', 'False')"},
    {"layout", "m ->> '$.layout'"},
}};
using Values = std::array<std::string, kProperties.size()>;

// The tensors of a compile by their source, in the order of the log.
struct Tensors {
  std::vector<std::string> sources;
  std::map<std::string, Values> of_source;
};

Result<Tensors> LoadTensors(Database& database, std::int64_t compile_id) {
  std::string columns;
  for (const Property& property : kProperties)
    columns += fmt::format(", coalesce({}, '')", property.sql);
  ASSIGN_OR_RETURN(Statement* const kept,
                   database.PrepareKept(
                       "SELECT m ->> '$.describer_id', coalesce(m ->> '$.source', ''), "
                       "coalesce(m ->> '$.id', '')" +
                       columns +
                       " FROM (SELECT r.id, coalesce(r.metadata, "
                       "r.envelope -> ('$.\"' || k.text || '\"')) AS m FROM compile c "
                       "JOIN record_row r ON r.id BETWEEN c.first_record_id AND c.last_record_id "
                       "AND r.compile_id = c.id JOIN text_row k ON k.id = r.kind_id WHERE c.id = ? "
                       "AND k.text IN ('describe_tensor', 'describe_source')) ORDER BY id"));
  Statement& rows = *kept;
  rows.Bind(1, compile_id);
  std::map<std::pair<std::string, std::string>, Values> of_id;
  Tensors tensors;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return tensors;
    const std::pair<std::string, std::string> id(rows.Text(0), rows.Text(2));
    const std::string source(rows.Text(1));
    if (source.empty()) {
      Values& values = of_id[id];
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = rows.Text(static_cast<int>(i) + 3);
      continue;
    }
    const auto described = of_id.find(id);
    if (described == of_id.end()) continue;
    const auto [found, is_new] = tensors.of_source.insert_or_assign(source, described->second);
    if (is_new) tensors.sources.push_back(source);
  }
}

}  // namespace

Result<std::vector<InputDifference>> CompareInputs(Database& database, std::int64_t a_compile_id,
                                                   std::int64_t b_compile_id) {
  ASSIGN_OR_RETURN(const Tensors a, LoadTensors(database, a_compile_id));
  ASSIGN_OR_RETURN(const Tensors b, LoadTensors(database, b_compile_id));
  std::vector<InputDifference> differences;
  for (const std::string& source : a.sources) {
    const auto other = b.of_source.find(source);
    if (other == b.of_source.end()) continue;
    const Values& old_values = a.of_source.at(source);
    const Values& new_values = other->second;
    bool has_size = false;
    for (std::size_t i = 0; i < kProperties.size(); ++i) {
      const std::string_view property = kProperties[i].name;
      if (old_values[i] == new_values[i]) continue;
      // Strides follow from sizes.
      if (property == "stride" && has_size) continue;
      has_size = has_size || property == "size";
      differences.push_back(
          {ReadableSource(source), std::string(property), old_values[i], new_values[i]});
    }
  }
  return differences;
}

std::string InputChanges(const std::vector<InputDifference>& differences) {
  constexpr std::size_t kMostNamed = 3;
  std::string text;
  for (std::size_t i = 0; i < differences.size() && i < kMostNamed; ++i) {
    const InputDifference& one = differences[i];
    text +=
        fmt::format("{}{}: {} {} → {}", i == 0 ? "" : "; ", one.name, one.property, one.a, one.b);
  }
  if (differences.size() > kMostNamed)
    text += fmt::format("; and {} more", differences.size() - kMostNamed);
  return text;
}

}  // namespace tlparse

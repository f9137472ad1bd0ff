#include "facts/contents/input_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "facts/contents/compile_inputs.h"
#include "facts/text/guard_text.h"
#include "queries/facts/contents/input_difference.h"

namespace tlparse {
namespace {

constexpr std::array<std::string_view, 6> kProperties = {"dtype",         "size",         "stride",
                                                         "requires_grad", "is_parameter", "layout"};
constexpr std::size_t kIsParameter = 4;
using Values = std::array<std::string, kProperties.size()>;

// The tensors of a compile by their source, in the order of the log.
struct Tensors {
  std::vector<std::string> sources;
  std::map<std::string, Values> of_source;
};

Result<Tensors> LoadTensors(Database& database, std::int64_t compile_id) {
  std::map<std::pair<std::string, std::string>, Values> of_id;
  Tensors tensors;
  FOR_EACH_ROW(const DescribedTensor& row,
               KeptQuery<DescribedTensor>(database, {.compile_id = compile_id})) {
    const std::pair<std::string, std::string> id(row.describer_id, row.id);
    const std::string source(row.source);
    if (source.empty()) {
      of_id[id] = {std::string(row.dtype),        std::string(row.size),
                   std::string(row.stride),       std::string(row.requires_grad),
                   std::string(row.is_parameter), std::string(row.layout)};
      continue;
    }
    const auto described = of_id.find(id);
    if (described == of_id.end()) continue;
    const auto [found, is_new] = tensors.of_source.insert_or_assign(source, described->second);
    if (is_new) tensors.sources.push_back(source);
  }
  return tensors;
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
      const std::string_view property = kProperties[i];
      if (old_values[i] == new_values[i]) continue;
      // Strides follow from sizes.
      if (property == "stride" && has_size) continue;
      has_size = has_size || property == "size";
      differences.push_back(
          {ReadableSource(source), std::string(property), old_values[i], new_values[i],
           old_values[kIsParameter] == "True" || new_values[kIsParameter] == "True"});
    }
  }
  return differences;
}

bool AreWithoutGradient(const std::vector<InputDifference>& inputs, bool is_of_b) {
  return std::all_of(inputs.begin(), inputs.end(), [&](const InputDifference& one) {
    return one.property == "requires_grad" && !one.is_parameter &&
           (is_of_b ? one.b : one.a) == "False";
  });
}

Result<bool> DifferAmong(Database& database, const std::vector<InputDifference>& inputs,
                         const std::vector<std::int64_t>& compile_ids) {
  constexpr std::size_t kMost = 9;
  const auto is_one = [&](const InputDifference& among) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const InputDifference& one) {
      return one.name == among.name && one.property == among.property;
    });
  };
  for (std::size_t i = 1; i < std::min(compile_ids.size(), kMost); ++i) {
    ASSIGN_OR_RETURN(const std::vector<InputDifference> among,
                     CompareInputs(database, compile_ids.front(), compile_ids[i]));
    if (std::any_of(among.begin(), among.end(), is_one)) return true;
  }
  return false;
}

Result<std::vector<InputTensor>> LoadInputs(Database& database, std::int64_t compile_id) {
  ASSIGN_OR_RETURN(const Tensors tensors, LoadTensors(database, compile_id));
  std::vector<InputTensor> inputs;
  for (const std::string& source : tensors.sources) {
    const Values& values = tensors.of_source.at(source);
    inputs.push_back(
        {ReadableSource(source), values[0], values[1], values[kIsParameter] == "True"});
  }
  return inputs;
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

#include "findings/recompile_sizes.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "facts/compiles/changed_sizes.h"
#include "facts/ranks/compile_options.h"

namespace tlparse {
namespace {

// The compile of this label in the process of another one; nullptr: none.
const JobCompile* EarlierOf(const Job& job, const JobCompile& now, std::string_view label) {
  const auto found =
      std::find_if(job.compiles().begin(), job.compiles().end(), [&](const JobCompile& one) {
        const std::string_view own = job.string(one.label_id);
        return one.participant == now.participant && one.generation == now.generation &&
               own.substr(0, own.find('#')) == label;
      });
  return found == job.compiles().end() ? nullptr : &*found;
}

}  // namespace

Result<void> SetSizes(FindingContext& context, const std::vector<std::int64_t>& ids,
                      std::vector<Recompile>& recompiles) {
  constexpr std::size_t kMostCompared = 20;
  for (std::size_t i = 0; i < recompiles.size(); ++i) {
    Recompile& one = recompiles[i];
    if (one.entries.empty() || !one.entries.front().reason.subject.starts_with("size ")) continue;
    one.is_of_module = one.entries.front().reason.is_of_parameter;
    // torch.compile(dynamic=False) switches it off for its compiles.
    ASSIGN_OR_RETURN(const auto options, OptionsOfCompile(context.database, ids[i]));
    const auto found = options.find("dynamo_config[automatic_dynamic_shapes]");
    one.is_of_fixed_size = found != options.end() && found->second == "False";
    const JobCompile* const before =
        EarlierOf(context.job, *context.job.FindCompile(ids[i]), one.entries.front().label);
    if (before == nullptr || i >= kMostCompared) continue;
    ASSIGN_OR_RETURN(SizeChanges changes, FindSizeChanges(context.database, before->id, ids[i]));
    one.is_of_module = one.is_of_module || changes.are_of_modules;
    one.changed_sizes = std::move(changes.sizes);
  }
  return {};
}

}  // namespace tlparse

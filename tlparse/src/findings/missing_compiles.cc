#include "findings/missing_compiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "queries/findings/missing_compiles.h"

namespace tlparse {
namespace {

// "torch.ops._c10d_functional.all_reduce_.default" → "all_reduce"
std::string NameOfCollective(std::string_view op) {
  if (op.ends_with(".default")) op.remove_suffix(8);
  op.remove_prefix(op.rfind('.') + 1);
  while (op.ends_with('_')) op.remove_suffix(1);
  return std::string(op);
}

}  // namespace

std::string WithCollectives(const FindingContext& context, std::int32_t slot, RankIndex with,
                            const std::vector<RankIndex>& lacking) {
  const Job& job = context.job;
  const std::int32_t index = job.CompileOf(with, slot);
  if (index < 0) return {};
  std::string ops;
  const auto load = [&]() -> Result<void> {
    FOR_EACH_ROW(
        const CollectiveOfCompile& row,
        Query<CollectiveOfCompile>(
            context.database, {.compile_id = job.compiles()[static_cast<std::size_t>(index)].id})) {
      const std::string name = NameOfCollective(row.op);
      if (ops.find(name) == std::string::npos) ops += (ops.empty() ? "" : ", ") + name;
    }
    return {};
  };
  if (!load() || ops.empty()) return {};
  for (const std::int32_t next : job.slot_order()) {
    const bool is_later = job.SlotPosition(next) > job.SlotPosition(slot) &&
                          std::all_of(lacking.begin(), lacking.end(),
                                      [&](RankIndex one) { return job.CompileOf(one, next) >= 0; });
    if (is_later)
      return fmt::format(": it holds {}; {} went on to {}", ops, context.WhoInside(lacking),
                         job.slots()[static_cast<std::size_t>(next)].Title());
  }
  return {};
}

}  // namespace tlparse

#include "inputs/join/kernel_match.h"

#include <algorithm>
#include <map>

#include "inputs/common/generated_code.h"
#include "log/inductor_texts.h"

namespace tlparse {
namespace {

std::string_view WithoutTrailing(std::string_view text, char c) {
  while (text.ends_with(c)) text.remove_suffix(1);
  return text;
}

// "addmm" of "extern_kernels.addmm", "f" of "torch.ops.aten.f.default" and "aten.f.out".
std::optional<std::string_view> ExternName(std::string_view kernel) {
  for (const std::string_view prefix :
       {inductor::kExternKernels, inductor::kTorchOps, inductor::kAten}) {
    if (!kernel.starts_with(prefix)) continue;
    kernel.remove_prefix(prefix.size());
    if (prefix == inductor::kTorchOps) {
      const std::size_t dot = kernel.find('.');
      if (dot == kernel.npos) return std::nullopt;
      kernel.remove_prefix(dot + 1);
    }
    return WithoutTrailing(kernel.substr(0, kernel.find('.')), '_');
  }
  return std::nullopt;
}

std::string_view OpName(std::string_view slice) {
  const std::size_t colons = slice.rfind("::");
  return WithoutTrailing(colons == slice.npos ? slice : slice.substr(colons + 2), '_');
}

bool IsKernelSlice(std::string_view slice) {
  return CpuKernelName(slice).has_value() || slice.starts_with(inductor::kTritonKernel);
}

// "low_out" of aten.randint.low_out runs as aten::randint.
bool IsSameExtern(std::string_view op, std::string_view name) {
  return op == name || (name.ends_with("_out") && op == name.substr(0, name.size() - 4)) ||
         (op.ends_with("_out") && op.substr(0, op.size() - 4) == name);
}

}  // namespace

bool IsRunOf(std::string_view slice, std::string_view kernel) {
  if (slice == kernel) return true;
  if (const auto name = CpuKernelName(slice)) return *name == kernel;
  const auto name = ExternName(kernel);
  return name && slice.find("::") != slice.npos && IsSameExtern(OpName(slice), *name);
}

std::optional<std::vector<std::optional<std::size_t>>> MatchInOrder(
    const std::vector<std::string_view>& slices, const std::vector<std::string_view>& kernels) {
  std::vector<std::optional<std::size_t>> matched(slices.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (next < kernels.size() && IsRunOf(slices[i], kernels[next])) {
      matched[i] = next++;
    } else if (IsKernelSlice(slices[i])) {
      return std::nullopt;
    }
  }
  if (next != kernels.size() || kernels.empty()) return std::nullopt;
  return matched;
}

std::vector<bool> AreRuns(const std::vector<std::string_view>& slices,
                          const std::vector<std::string_view>& kernels) {
  std::map<std::string_view, bool> is_run;
  std::vector<bool> are_runs;
  for (const std::string_view slice : slices) {
    const auto [known, is_new] = is_run.try_emplace(slice);
    if (is_new)
      known->second = std::any_of(kernels.begin(), kernels.end(),
                                  [&](std::string_view kernel) { return IsRunOf(slice, kernel); });
    are_runs.push_back(known->second);
  }
  return are_runs;
}

std::optional<std::vector<std::optional<std::size_t>>> MatchWithGaps(
    const std::vector<std::string_view>& slices, const std::vector<std::string_view>& kernels) {
  const std::vector<bool> are_runs = AreRuns(slices, kernels);
  // Each run as early in the code as it can be, then as late: where both agree nothing else fits.
  std::vector<std::optional<std::size_t>> matched(slices.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (!are_runs[i] && IsKernelSlice(slices[i])) return std::nullopt;
    if (!are_runs[i]) continue;
    while (next < kernels.size() && !IsRunOf(slices[i], kernels[next])) ++next;
    if (next == kernels.size()) return std::nullopt;
    matched[i] = next++;
  }
  std::size_t last = kernels.size();
  for (std::size_t i = slices.size(); i-- > 0;) {
    if (!are_runs[i]) continue;
    while (!IsRunOf(slices[i], kernels[last - 1])) --last;
    if (matched[i] != --last) matched[i].reset();
  }
  return matched;
}

std::vector<std::optional<std::size_t>> MatchByName(const std::vector<std::string_view>& slices,
                                                    const std::vector<std::string_view>& kernels) {
  std::map<std::string_view, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> by_name;
  for (std::size_t i = 0; i < kernels.size(); ++i) by_name[kernels[i]].second.push_back(i);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (!IsKernelSlice(slices[i])) continue;
    const auto found = by_name.find(CpuKernelName(slices[i]).value_or(slices[i]));
    if (found != by_name.end()) found->second.first.push_back(i);
  }
  std::vector<std::optional<std::size_t>> matched(slices.size());
  for (const auto& [name, runs_and_calls] : by_name) {
    const auto& [runs, calls] = runs_and_calls;
    if (runs.size() != calls.size()) continue;
    for (std::size_t i = 0; i < runs.size(); ++i) matched[runs[i]] = calls[i];
  }
  return matched;
}

std::vector<std::optional<std::size_t>> MatchByPath(const std::vector<std::string_view>& slices,
                                                    const std::vector<std::string_view>& kernels) {
  std::map<std::string_view, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> by_name;
  for (std::size_t i = 0; i < kernels.size(); ++i) by_name[kernels[i]].second.push_back(i);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const auto found = slices[i].empty() ? by_name.end() : by_name.find(slices[i]);
    if (found != by_name.end()) found->second.first.push_back(i);
  }
  std::vector<std::optional<std::size_t>> matched(slices.size());
  for (const auto& [name, runs_and_calls] : by_name) {
    const auto& [runs, calls] = runs_and_calls;
    if (calls.size() != 1 && runs.size() != calls.size()) continue;
    for (std::size_t i = 0; i < runs.size(); ++i)
      matched[runs[i]] = calls[calls.size() == 1 ? 0 : i];
  }
  return matched;
}

std::vector<std::optional<std::size_t>> MatchReplay(const std::vector<std::string_view>& runs,
                                                    const std::vector<std::string_view>& kernels) {
  std::vector<std::optional<std::size_t>> matched(runs.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::size_t at = next;
    while (at < kernels.size() && kernels[at] != runs[i]) ++at;
    if (at == kernels.size()) continue;
    matched[i] = at;
    next = at + 1;
  }
  return matched;
}

}  // namespace tlparse

#include "facts/compiles/autotune.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "queries/facts/compiles/autotune.h"

namespace tlparse {
namespace {

std::int32_t SlotOf(const Job& job, std::optional<std::int64_t> compile_id) {
  const JobCompile* const compile = compile_id ? job.FindCompile(*compile_id) : nullptr;
  return compile == nullptr ? -1 : compile->slot;
}

// Two ranks' kernels are one if their compiles, names, inputs, and places among such are equal.
using KernelKey = std::tuple<std::int32_t, bool, std::string, std::string, std::string, std::string,
                             std::int64_t>;

TunedChoice ChoiceOf(const TunedKernelOfJob& row, RankIndex rank) {
  TunedChoice choice;
  choice.rank = rank;
  choice.choices = row.choices;
  choice.triton_choices = row.triton_choices;
  choice.best = row.best;
  choice.best_description = row.best_description;
  choice.best_ms = row.best_ms;
  choice.triton_place = row.triton_place;
  choice.triton = row.best_triton;
  choice.triton_description = row.best_triton_description;
  choice.triton_ms = row.best_triton_ms;
  choice.precompile_s = row.precompile_us.value_or(0) / 1e6;
  choice.benchmark_s = row.duration_us / 1e6;
  choice.record_id = row.record_id;
  choice.precompile_record_id = row.precompile_record_id;
  return choice;
}

Result<void> LoadKernels(Database& database, const Job& job, Autotuned& answer) {
  std::map<KernelKey, std::size_t> index;
  FOR_EACH_ROW(const TunedKernelOfJob& row,
               Query<TunedKernelOfJob>(database, {.in_logs = job.InLogs("record_id")})) {
    const RankIndex rank = job.ParticipantOfProcess(row.process_id);
    if (rank < 0) continue;
    KernelKey key(SlotOf(job, row.compile_id), row.is_at_run_time, row.kernel, row.shapes,
                  row.strides, row.dtypes, 0);
    const auto is_of_rank = [&](std::size_t kernel) {
      const std::vector<TunedChoice>& on_ranks = answer.kernels[kernel].on_ranks;
      return std::any_of(on_ranks.begin(), on_ranks.end(),
                         [&](const TunedChoice& one) { return one.rank == rank; });
    };
    auto found = index.find(key);
    for (; found != index.end() && is_of_rank(found->second); found = index.find(key))
      ++std::get<6>(key);
    if (found == index.end()) {
      found = index.try_emplace(key, answer.kernels.size()).first;
      answer.kernels.push_back({std::get<0>(key),
                                row.is_at_run_time,
                                std::string(row.kernel),
                                std::string(row.shapes),
                                std::string(row.strides),
                                std::string(row.dtypes),
                                {}});
    }
    answer.kernels[found->second].on_ranks.push_back(ChoiceOf(row, rank));
  }
  std::stable_sort(answer.kernels.begin(), answer.kernels.end(),
                   [&](const TunedKernel& a, const TunedKernel& b) {
                     const auto place = [&](const TunedKernel& of) {
                       return std::pair(of.slot < 0, of.slot < 0 ? 0 : job.SlotPosition(of.slot));
                     };
                     return place(a) < place(b);
                   });
  return {};
}

Result<void> LoadFailedChoices(Database& database, const Job& job, Autotuned& answer) {
  std::map<std::tuple<std::int32_t, std::string, std::string, std::string>, std::size_t> index;
  FOR_EACH_ROW(const FailedChoiceOfJob& row,
               Query<FailedChoiceOfJob>(database, {.in_logs = job.InLogs("record_id")})) {
    const RankIndex rank = job.ParticipantOfProcess(row.process_id);
    if (rank < 0) continue;
    const std::int32_t slot = SlotOf(job, row.compile_id);
    const auto [found, is_new] = index.try_emplace(
        {slot, std::string(row.kernel), std::string(row.choice), std::string(row.message)},
        answer.failed.size());
    if (is_new)
      answer.failed.push_back({slot,
                               std::string(row.kernel),
                               std::string(row.choice),
                               std::string(row.exception),
                               std::string(row.message),
                               row.is_out_of_memory,
                               {},
                               {}});
    FailedChoice& failed = answer.failed[found->second];
    if (failed.ranks.empty() || failed.ranks.back() != rank) failed.ranks.push_back(rank);
    failed.record_ids.push_back(row.record_id);
  }
  for (FailedChoice& one : answer.failed) std::sort(one.ranks.begin(), one.ranks.end());
  return {};
}

}  // namespace

std::string TunedChoice::Key() const {
  if (!best_description.empty()) return best_description;
  const std::size_t end = best.find_last_not_of("0123456789");
  return end != std::string::npos && end + 1 < best.size() && best[end] == '_' ? best.substr(0, end)
                                                                               : best;
}

double Autotuned::TuningSeconds(RankIndex rank) const {
  double seconds = 0;
  for (const TunedKernel& kernel : kernels) {
    for (const TunedChoice& choice : kernel.on_ranks)
      if (choice.rank == rank && !kernel.is_at_run_time)
        seconds += choice.precompile_s + choice.benchmark_s;
  }
  return seconds;
}

std::optional<double> CompileSeconds(const Job& job, RankIndex rank) {
  double seconds = 0;
  for (const JobCompile& compile : job.compiles()) {
    if (compile.participant != rank || compile.is_synthetic) continue;
    if (compile.LacksTime()) return std::nullopt;
    seconds += compile.Seconds().value_or(0);
  }
  return seconds;
}

std::string AutotuneAnswer::Title(std::int32_t slot) const {
  return slot < 0 ? "" : job.slots()[static_cast<std::size_t>(slot)].Title();
}

Result<Autotuned> LoadAutotuned(Database& database, const Job& job) {
  Autotuned tuned;
  RETURN_IF_ERROR(LoadKernels(database, job, tuned));
  RETURN_IF_ERROR(LoadFailedChoices(database, job, tuned));
  return tuned;
}

Result<AutotuneAnswer> AnalyzeAutotune(Database& database, const AutotuneOptions& options) {
  ASSIGN_OR_RETURN(Job job, Job::Load(database, options.run, options.launch));
  ASSIGN_OR_RETURN(Autotuned tuned, LoadAutotuned(database, job));
  return AutotuneAnswer{std::move(tuned), std::move(job)};
}

}  // namespace tlparse

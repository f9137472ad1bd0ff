#include "answers/compile/other_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "facts/cache/cache.h"
#include "facts/contents/input_difference.h"
#include "facts/job/role_members.h"
#include "facts/ranks/compile_options.h"

namespace tlparse {
namespace {

// More are not compared in what has to be read for each: inputs, options, keys.
constexpr std::size_t kMostCompared = 16;

struct OtherCompile {
  RankIndex rank = 0;
  const JobCompile* compile = nullptr;
};

// Ranks by what is said of them, in the order of the lowest rank.
class Grouped {
 public:
  void Add(std::string text, RankIndex rank) {
    const auto known = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const auto& one) { return one.first == text; });
    if (known != groups_.end()) {
      known->second.push_back(rank);
    } else {
      groups_.emplace_back(std::move(text), std::vector<RankIndex>{rank});
    }
  }
  // Those of which something is said.
  std::vector<OfOtherRanks> Take(const Job& job) {
    std::vector<OfOtherRanks> result;
    for (auto& [text, ranks] : groups_)
      if (!text.empty()) result.push_back({job.NameRanks(ranks), std::move(text)});
    return result;
  }

 private:
  std::vector<std::pair<std::string, std::vector<RankIndex>>> groups_;
};

class Comparison {
 public:
  Comparison(Database& database, const Job& job, const JobCompile& own, CompileAnswer& answer)
      : database_(database), job_(job), own_(own), answer_(answer) {}

  Result<void> FindOthers();
  void CompareEnds();
  Result<void> CompareLines();
  Result<void> CompareInputsAndOptions();
  Result<void> CompareLookups();

 private:
  Database& database_;
  const Job& job_;
  const JobCompile& own_;
  CompileAnswer& answer_;
  std::vector<OtherCompile> others_;
};

Result<void> Comparison::FindOthers() {
  ASSIGN_OR_RETURN(const LogDamage damage, FindLogDamage(database_, job_));
  ASSIGN_OR_RETURN(const std::vector<Role>* const roles, LoadRoles(database_, job_, damage));
  std::vector<RankIndex> without;
  for (const Role& role : *roles) {
    if (std::find(role.members.begin(), role.members.end(), own_.participant) == role.members.end())
      continue;
    if (roles->size() > 1) answer_.role = role.name;
    for (const RankIndex rank : role.members) {
      if (rank == own_.participant) continue;
      const std::int32_t index = own_.slot < 0 ? -1 : job_.CompileOf(rank, own_.slot);
      if (index < 0) {
        without.push_back(rank);
      } else {
        others_.push_back({rank, &job_.compiles()[static_cast<std::size_t>(index)]});
      }
    }
  }
  if (!without.empty()) answer_.without = job_.NameRanks(without);
  return {};
}

void Comparison::CompareEnds() {
  Grouped statuses;
  for (const OtherCompile& one : others_) {
    statuses.Add(std::string(Name(one.compile->status)), one.rank);
    const std::optional<double> seconds = one.compile->Seconds();
    if (!seconds || !IsFinished(one.compile->status)) continue;
    answer_.least_other_s = std::min(answer_.least_other_s.value_or(*seconds), *seconds);
    answer_.most_other_s = std::max(answer_.most_other_s.value_or(*seconds), *seconds);
  }
  answer_.statuses = statuses.Take(job_);
}

Result<void> Comparison::CompareLines() {
  ASSIGN_OR_RETURN(const std::string own_key, KeyOfTracedLines(database_, own_.id));
  std::map<std::string, std::size_t> known;  // by key: index of the class
  std::vector<std::pair<TracedLines, std::vector<RankIndex>>> classes;
  std::size_t without_key = 0;
  for (const OtherCompile& one : others_) {
    ASSIGN_OR_RETURN(const std::string key, KeyOfTracedLines(database_, one.compile->id));
    if (!key.empty() && key == own_key) continue;
    if (key.empty() && ++without_key > kMostCompared) continue;
    const auto [found, is_new] =
        known.try_emplace(key.empty() ? fmt::format("compile {}", one.compile->id) : key, 0);
    if (is_new) {
      if (known.size() > 4 * kMostCompared) {
        without_key = SIZE_MAX;
        break;
      }
      ASSIGN_OR_RETURN(TracedLines traced,
                       LoadTracedLines(database_, one.compile->id, answer_.function.file));
      const auto same = std::find_if(classes.begin(), classes.end(), [&](const auto& other) {
        return other.first.has_graph == traced.has_graph &&
               LinesWithout(other.first, traced).empty() &&
               LinesWithout(traced, other.first).empty();
      });
      found->second = static_cast<std::size_t>(same - classes.begin());
      if (same == classes.end()) classes.push_back({std::move(traced), {}});
    }
    classes[found->second].second.push_back(one.rank);
  }
  answer_.has_equal_lines = !others_.empty() && without_key <= kMostCompared;
  for (auto& [traced, ranks] : classes) {
    LinesOfOtherRanks lines{job_.NameRanks(ranks),
                            {},
                            LinesWithout(answer_.traced, traced),
                            LinesWithout(traced, answer_.traced)};
    lines.traced = std::move(traced);
    if (!lines.only_here.empty() || !lines.only_there.empty())
      answer_.other_lines.push_back(std::move(lines));
  }
  answer_.has_equal_lines = answer_.has_equal_lines && answer_.other_lines.empty();
  return {};
}

// "recompile_limit 8 → 64" of what differs.
std::string OptionChanges(const std::map<std::string, std::string>& from,
                          const std::map<std::string, std::string>& to) {
  std::string text;
  for (const auto& [name, value] : to) {
    const auto other = from.find(name);
    if (other == from.end() || other->second == value) continue;
    text += fmt::format("{}{}: {} → {}", text.empty() ? "" : "; ", name, other->second, value);
  }
  return text;
}

Result<void> Comparison::CompareInputsAndOptions() {
  Grouped inputs, options;
  std::vector<RankIndex> unknown;
  const bool are_all = !others_.empty() && others_.size() <= kMostCompared;
  answer_.has_equal_inputs = answer_.has_equal_options = are_all;
  for (std::size_t i = 0; i < others_.size() && i < kMostCompared; ++i) {
    const OtherCompile& one = others_[i];
    ASSIGN_OR_RETURN(const std::vector<InputDifference> changes,
                     CompareInputs(database_, one.compile->id, own_.id));
    inputs.Add(InputChanges(changes), one.rank);
    ASSIGN_OR_RETURN(const std::vector<InputTensor> described,
                     LoadInputs(database_, one.compile->id));
    if (!changes.empty() || described.size() != answer_.inputs.size())
      answer_.has_equal_inputs = false;
    ASSIGN_OR_RETURN(const auto theirs, OptionsOfCompile(database_, one.compile->id));
    if (theirs.empty() || theirs != answer_.options) answer_.has_equal_options = false;
    if (theirs.empty()) {
      unknown.push_back(one.rank);
    } else if (!answer_.options.empty()) {
      options.Add(OptionChanges(theirs, answer_.options), one.rank);
    }
  }
  answer_.input_changes = inputs.Take(job_);
  answer_.option_changes = options.Take(job_);
  if (!unknown.empty()) answer_.options_unknown_of = job_.NameRanks(unknown);
  return {};
}

// Why lookups of this compile ended otherwise, by what `tlparse cache` finds of this rank and a few
// others.
Result<void> Comparison::CompareLookups() {
  const bool is_told = std::any_of(answer_.lookups.begin(), answer_.lookups.end(),
                                   [](const CompileLookup& one) { return one.state != "hit"; });
  if (!is_told) return {};
  CacheOptions of_cache;
  of_cache.with_code_check = false;
  std::vector<RankIndex> compared = {own_.participant};
  const JobParticipant& who = job_.participants()[static_cast<std::size_t>(own_.participant)];
  of_cache.rank = who.name;
  for (std::size_t i = 0; i < others_.size() && i < kMostCompared; ++i)
    compared.push_back(others_[i].rank);
  std::sort(compared.begin(), compared.end());
  ASSIGN_OR_RETURN(const CacheAnswer cache,
                   AnalyzeCacheOf(database_, job_.Part(compared), of_cache));
  const RankIndex self = cache.job.ParticipantOfProcess(answer_.process_id);
  const JobCompile* const compile = cache.job.FindCompile(own_.id);
  if (self < 0 || compile == nullptr) return {};
  for (const CacheFinding& one : cache.findings) {
    if (IsExpected(one.cause.kind) ||
        std::find(one.ranks.begin(), one.ranks.end(), self) == one.ranks.end() ||
        std::find(one.compile_slots.begin(), one.compile_slots.end(), compile->slot) ==
            one.compile_slots.end())
      continue;
    answer_.cache_causes.push_back({cache.job.NameRanks(one.against),
                                    fmt::format("{}: {}", Title(one.cause.kind), one.cause.text)});
  }
  for (const ClosestKey& one : cache.closest_keys) {
    const JobLookup& lookup = cache.lookups.lookups()[static_cast<std::size_t>(one.lookup)];
    if (cache.job.compiles()[static_cast<std::size_t>(lookup.compile)].id != own_.id) continue;
    const LookupSlot& slot = cache.lookups.slots()[static_cast<std::size_t>(lookup.lookup_slot)];
    std::string text = cache.lookups.LayerName(slot.layer_id);
    if (one.earlier_title.empty()) continue;
    text += fmt::format(" against {}: {}", one.earlier_title,
                        one.causes.empty() ? "the same key" : one.causes.front().text);
    answer_.missed_because.push_back(std::move(text));
  }
  return {};
}

std::string NameOfProcess(const CompileAnswer& answer) {
  if (answer.rank) return fmt::format("rank {}", *answer.rank);
  return fmt::format("process {}", answer.pid);
}

}  // namespace

Result<void> CompareWithOthers(Database& database, CompileAnswer& answer) {
  ASSIGN_OR_RETURN(const Job job, Job::Load(database, answer.run, answer.launch));
  const JobCompile* const own = job.FindCompile(answer.id);
  // A child is no participant.
  if (own == nullptr) {
    answer.who = NameOfProcess(answer);
    return {};
  }
  const JobParticipant& who = job.participants()[static_cast<std::size_t>(own->participant)];
  answer.who = job.participants().size() == 1 && !answer.rank ? NameOfProcess(answer)
                                                              : job.NameRanks({own->participant});
  answer.torch_version = who.torch_version;
  answer.python_version = who.python_version;
  Comparison comparison(database, job, *own, answer);
  RETURN_IF_ERROR(comparison.FindOthers());
  comparison.CompareEnds();
  RETURN_IF_ERROR(comparison.CompareLines());
  RETURN_IF_ERROR(comparison.CompareInputsAndOptions());
  return comparison.CompareLookups();
}

}  // namespace tlparse

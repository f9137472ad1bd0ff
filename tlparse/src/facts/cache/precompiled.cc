#include "facts/cache/precompiled.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "facts/cache/guard_contents.h"
#include "queries/facts/cache/precompiled.h"

namespace tlparse {
namespace {

Result<void> LoadEntries(Database& database, const Job& job, PrecompiledCode& code) {
  std::map<std::pair<std::string, RankIndex>, std::string> errors;
  FOR_EACH_ROW(const ExceptionOfEntry& row,
               Query<ExceptionOfEntry>(database, {.in_logs = job.InLogs("e.record_id")}))
    errors[{std::string(row.key), job.ParticipantOfProcess(row.process_id)}] = row.error;
  FOR_EACH_ROW(const EntryOfProcess& row,
               Query<EntryOfProcess>(database, {.in_logs = job.InLogs("e.record_id")})) {
    const RankIndex rank = job.ParticipantOfProcess(row.process_id);
    if (rank < 0) continue;
    SavedEntry entry{.key = std::string(row.key),
                     .function = std::string(row.function),
                     .device_type = std::string(row.device_type),
                     .line = row.line,
                     .codes = row.codes,
                     .backends = row.backends,
                     .missing_backends = row.missing_backends,
                     .error = {},
                     .ranks = {rank},
                     .record_id = row.record_id};
    if (const auto error = errors.find({entry.key, rank}); error != errors.end())
      entry.error = error->second;
    const auto values = [](const SavedEntry& one) {
      return std::tie(one.key, one.function, one.device_type, one.line, one.codes, one.backends,
                      one.missing_backends, one.error);
    };
    const auto alike =
        std::find_if(code.entries.begin(), code.entries.end(),
                     [&](const SavedEntry& one) { return values(one) == values(entry); });
    if (alike == code.entries.end()) {
      code.entries.push_back(std::move(entry));
    } else if (std::find(alike->ranks.begin(), alike->ranks.end(), rank) == alike->ranks.end()) {
      alike->ranks.push_back(rank);
    }
  }
  for (SavedEntry& entry : code.entries) std::sort(entry.ranks.begin(), entry.ranks.end());
  return {};
}

// "forward" of "Net.forward": a code object has the last part of the qualified name alone.
std::string_view LastPart(std::string_view qualified) {
  return qualified.substr(qualified.rfind('.') + 1);
}

// What a rank saved of a key: classes of guards, with a content of each.
using GuardsOfEntry = std::map<std::int64_t, std::int64_t>;

Result<GuardsOfEntry> GuardsOf(const Job& job, const GuardContents& contents, RankIndex rank,
                               const SavedEntry& entry, GuardSets& sets) {
  GuardsOfEntry guards;
  for (const JobCompile& compile : job.compiles()) {
    if (compile.participant != rank || compile.line != entry.line || compile.function_id < 0 ||
        job.string(compile.function_id) != LastPart(entry.function))
      continue;
    const auto own = contents.find(compile.id);
    if (own == contents.end()) continue;
    for (const std::int64_t content : own->second) {
      ASSIGN_OR_RETURN(const std::int64_t number, sets.ClassOf(content));
      guards.try_emplace(number, content);
    }
  }
  return guards;
}

struct RanksWithGuards {
  GuardsOfEntry guards;
  std::vector<RankIndex> ranks;
  std::int64_t record_id = 0;
};

Result<void> FindDifferentEntries(const Job& job, const GuardContents& contents, GuardSets& sets,
                                  PrecompiledCode& code) {
  std::map<std::string, std::vector<RanksWithGuards>> by_key;
  std::map<std::string, const SavedEntry*> example;
  for (const SavedEntry& entry : code.entries) {
    if (!entry.error.empty()) continue;
    example.try_emplace(entry.key, &entry);
    for (const RankIndex rank : entry.ranks) {
      ASSIGN_OR_RETURN(GuardsOfEntry guards, GuardsOf(job, contents, rank, entry, sets));
      if (guards.empty()) continue;
      std::vector<RanksWithGuards>& all = by_key[entry.key];
      const auto alike = std::find_if(all.begin(), all.end(), [&](const RanksWithGuards& one) {
        return std::equal(one.guards.begin(), one.guards.end(), guards.begin(), guards.end(),
                          [](const auto& a, const auto& b) { return a.first == b.first; });
      });
      if (alike == all.end()) {
        all.push_back({std::move(guards), {rank}, entry.record_id});
      } else {
        alike->ranks.push_back(rank);
      }
    }
  }
  for (auto& [key, all] : by_key) {
    if (all.size() < 2) continue;
    for (RanksWithGuards& one : all) std::sort(one.ranks.begin(), one.ranks.end());
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return std::make_pair(-std::ssize(a.ranks), a.ranks.front()) <
             std::make_pair(-std::ssize(b.ranks), b.ranks.front());
    });
    const SavedEntry& entry = *example[key];
    DifferentEntry different{.key = key,
                             .function = entry.function,
                             .line = entry.line,
                             .ranks = all[0].ranks,
                             .other_ranks = all[1].ranks,
                             .record_id = all[0].record_id,
                             .other_record_id = all[1].record_id};
    ASSIGN_OR_RETURN(different.changes,
                     sets.Changes(all[0].guards.begin()->second, all[1].guards.begin()->second));
    code.different.push_back(std::move(different));
  }
  return {};
}

// The loaded code whose guards differ least from those of the new one.
Result<std::vector<GuardChange>> LeastChanges(const std::vector<std::int64_t>& loaded,
                                              std::int64_t compiled, GuardSets& sets) {
  std::optional<std::vector<GuardChange>> least;
  for (const std::int64_t content : loaded) {
    ASSIGN_OR_RETURN(std::vector<GuardChange> changes, sets.Changes(content, compiled));
    if (!least || changes.size() < least->size()) least = std::move(changes);
  }
  return std::move(least).value_or(std::vector<GuardChange>());
}

using FunctionOfRank = std::tuple<RankIndex, std::int32_t, std::int32_t, std::int64_t>;

FunctionOfRank FunctionOf(const JobCompile& compile) {
  return {compile.participant, compile.function_id, compile.file_id, compile.line};
}

class AgainFinder {
 public:
  AgainFinder(const Job& job, const GuardContents& contents, GuardSets& sets)
      : job_(job), contents_(contents), sets_(sets) {}

  // In the order of the log. A compile after torch._dynamo.reset() replaces nothing that is loaded.
  Result<void> Take(const JobCompile& compile, bool has_reason) {
    if (compile.generation > 0) reset_.insert(compile.participant);
    if (compile.function_id < 0 || reset_.contains(compile.participant)) return {};
    if (compile.status == CompileStatus::kLoaded) {
      loaded_[FunctionOf(compile)].push_back(&compile);
      return {};
    }
    const auto found = loaded_.find(FunctionOf(compile));
    const auto own = contents_.find(compile.id);
    if (has_reason || found == loaded_.end() || own == contents_.end()) return {};
    std::vector<std::int64_t> before;
    for (const JobCompile* one : found->second) {
      if (const auto guards = contents_.find(one->id); guards != contents_.end())
        before.insert(before.end(), guards->second.begin(), guards->second.end());
    }
    ASSIGN_OR_RETURN(std::vector<GuardChange> changes,
                     LeastChanges(before, own->second.back(), sets_));
    Add(*found->second.front(), compile, std::move(changes));
    return {};
  }

  std::vector<CompiledAgain> Take() { return std::move(again_); }

 private:
  void Add(const JobCompile& loaded, const JobCompile& compile, std::vector<GuardChange> changes) {
    const std::string file = compile.file_id < 0 ? std::string() : job_.string(compile.file_id);
    const std::string& function = job_.string(compile.function_id);
    const auto alike = std::find_if(again_.begin(), again_.end(), [&](const CompiledAgain& one) {
      return one.function == function && one.file == file && one.line == compile.line &&
             one.changes == changes;
    });
    const std::optional<double> seconds = compile.Seconds();
    if (alike != again_.end()) {
      if (alike->ranks.back() != compile.participant) alike->ranks.push_back(compile.participant);
      if (seconds && *seconds > alike->seconds.value_or(0)) alike->seconds = seconds;
      return;
    }
    again_.push_back({.function = function,
                      .file = file,
                      .loaded = job_.string(loaded.label_id),
                      .compiled = job_.string(compile.label_id),
                      .line = compile.line,
                      .ranks = {compile.participant},
                      .loaded_id = loaded.id,
                      .compiled_id = compile.id,
                      .changes = std::move(changes),
                      .seconds = seconds});
  }

  const Job& job_;
  const GuardContents& contents_;
  GuardSets& sets_;
  std::map<FunctionOfRank, std::vector<const JobCompile*>> loaded_;
  std::set<RankIndex> reset_;
  std::vector<CompiledAgain> again_;
};

}  // namespace

Result<PrecompiledCode> FindPrecompiledCode(Database& database, const Job& job) {
  PrecompiledCode code;
  for (const JobCompile& one : job.compiles())
    if (one.status == CompileStatus::kLoaded) code.loaded_on.push_back(one.participant);
  code.loaded = code.loaded_on.size();
  RETURN_IF_ERROR(LoadEntries(database, job, code));
  if (code.empty()) return code;
  ASSIGN_OR_RETURN(const GuardContents contents, LoadGuardContents(database, job));
  GuardSets sets(database);
  RETURN_IF_ERROR(FindDifferentEntries(job, contents, sets, code));
  if (code.loaded == 0) return code;
  std::set<std::int64_t> with_reason;
  FOR_EACH_ROW(const CompileWithReason& row,
               Query<CompileWithReason>(database, {.in_logs = job.InLogs("m.record_id")}))
    with_reason.insert(row.compile_id);
  std::vector<const JobCompile*> compiles;
  for (const JobCompile& one : job.compiles()) compiles.push_back(&one);
  std::sort(compiles.begin(), compiles.end(), [](const JobCompile* a, const JobCompile* b) {
    return std::make_pair(a->participant, a->id) < std::make_pair(b->participant, b->id);
  });
  AgainFinder finder(job, contents, sets);
  for (const JobCompile* one : compiles)
    RETURN_IF_ERROR(finder.Take(*one, with_reason.contains(one->id)));
  code.again = finder.Take();
  return code;
}

}  // namespace tlparse

#include "inputs/join/phase_join.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/json_writer.h"
#include "queries/inputs/join/phase_join.h"

namespace tlparse {
namespace {

struct Phase {
  std::int64_t id = 0, start_ns = 0, end_ns = 0;
};
struct Named {
  std::string phase, label;
  std::int64_t thread_id = 0, start_ns = 0;
};

// "entire_frame_compile_data: fn_name=f, compile_id=0/1, is_forward=True" → its phase and "0/1".
bool Parse(std::string_view text, Named& named) {
  constexpr std::string_view kData = "_data: ";
  constexpr std::string_view kId = "compile_id=";
  const std::size_t data = text.find(kData);
  const std::size_t id = text.rfind(kId);
  if (data == text.npos || id == text.npos || id < data) return false;
  named.phase = text.substr(0, data);
  std::string_view label = text.substr(id + kId.size());
  label = label.substr(0, label.find_first_of(", "));
  // "0/1_2": the attempt is no part of the label.
  named.label = label.substr(0, label.find('_'));
  return !named.phase.empty() && named.label.find('/') != std::string::npos;
}

Result<std::vector<Named>> LoadNames(Database& database, std::int64_t profile_id) {
  std::vector<Named> names;
  FOR_EACH_ROW(const PhaseAnnotation& row,
               Query<PhaseAnnotation>(database, {.profile_id = profile_id})) {
    Named named;
    named.thread_id = row.thread_id;
    named.start_ns = row.start_ns;
    if (Parse(row.name, named)) names.push_back(std::move(named));
  }
  return names;
}

}  // namespace

Result<void> JoinPhases(Database& database, const CompiledCode& code, std::int64_t profile_id,
                        std::optional<std::int64_t> process_id) {
  if (!process_id) return {};
  ASSIGN_OR_RETURN(const std::vector<Named> names, LoadNames(database, profile_id));
  if (names.empty()) return {};
  std::map<std::pair<std::string, std::int64_t>, std::vector<Phase>> phases;  // by name and thread
  std::set<std::string_view> phase_names;
  for (const Named& named : names) {
    phases.try_emplace({named.phase, named.thread_id});
    phase_names.insert(named.phase);
  }
  JsonWriter list;
  list.BeginArray();
  for (const std::string_view name : phase_names) list.String(name);
  const std::string asked = list.EndArray().Take();
  // A profile may have millions of other ops, and what is sorted is in memory.
  FOR_EACH_ROW(const OpOfNames& row,
               Query<OpOfNames>(database, {.profile_id = profile_id, .names = asked})) {
    const auto found = phases.find({std::string(row.name), row.thread_id});
    if (found != phases.end()) found->second.push_back({row.id, row.start_ns, row.end_ns});
  }
  ASSIGN_OR_RETURN(Statement set,
                   database.Prepare("UPDATE op_run_link_row "
                                    "SET compile_id = ?2, join_key = 'K7' WHERE op_run_id = ?1"));
  for (const Named& named : names) {
    const std::vector<Phase>& all = phases.at({named.phase, named.thread_id});
    // The annotation is right after the start: the latest phase that is open there.
    auto phase = std::upper_bound(
        all.begin(), all.end(), named.start_ns,
        [](std::int64_t time_ns, const Phase& one) { return time_ns < one.start_ns; });
    while (phase != all.begin() && std::prev(phase)->end_ns < named.start_ns) --phase;
    const auto* const compiles = code.WithLabel(*process_id, named.label);
    if (phase == all.begin() || compiles == nullptr) continue;
    --phase;
    // Labels come again after a reset: the newest that had begun when the phase ended.
    std::int64_t compile_id = 0;
    for (const CompiledCode::Compile& compile : *compiles) {
      if (compile_id == 0 || compile.start_us * 1000 <= phase->end_ns) compile_id = compile.id;
    }
    set.Bind(1, phase->id);
    set.Bind(2, compile_id);
    RETURN_IF_ERROR(set.Run());
  }
  return {};
}

}  // namespace tlparse

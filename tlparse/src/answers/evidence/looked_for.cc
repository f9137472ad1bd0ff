#include "answers/evidence/looked_for.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "facts/job/participants.h"
#include "facts/text/shorten.h"
#include "inputs/recorder/name.h"
#include "log/find_logs.h"
#include "queries/answers/evidence/looked_for.h"

namespace tlparse {
namespace {

constexpr std::string_view kJob = "job";

// By its name, or by the profile_kind of the files that are such an input.
std::optional<std::size_t> InputOf(std::string_view name) {
  for (std::size_t i = 0; i < kLookedInputCount; ++i) {
    const auto input = static_cast<LookedInput>(i);
    if (Name(input) == name || ProfileKindOf(input) == name) return i;
  }
  return std::nullopt;
}

}  // namespace

std::string LookedForInputs::People::Text() const {
  std::string text = FormatRankRanges({ranks.begin(), ranks.end()});
  for (const std::string& log : logs) text += (text.empty() ? "" : ",") + log;
  return text;
}

Result<void> LookedForInputs::LoadThere(Database& database, std::int64_t run_id,
                                        std::int64_t launch,
                                        const std::map<std::int64_t, std::string>& names) {
  FOR_EACH_ROW(const InputThere& row,
               Query<InputThere>(database, {.run_id = run_id, .launch = launch})) {
    const std::optional<std::size_t> index = InputOf(row.input);
    if (!index) continue;
    Input& input = inputs_[*index];
    const auto add = [&](const auto& who) {
      input.there.Add(who);
      if (row.is_damaged) input.damaged.Add(who);
    };
    const auto name = row.process_id ? names.find(*row.process_id) : names.end();
    if (row.rank) {
      add(*row.rank);
    } else if (name != names.end()) {
      add(name->second);
    } else if (!row.process_id) {
      input.there.are_any = true;
      if (row.is_damaged) input.damaged.are_any = true;
    }
  }
  return {};
}

// What a file would have held is known by its name at most.
Result<void> LookedForInputs::LoadLeftOut(Database& database, std::int64_t run_id) {
  FOR_EACH_ROW(const InputLeftOut& row, Query<InputLeftOut>(database, {.run_id = run_id})) {
    const auto is_damaged = [&](LookedInput input, std::optional<std::int64_t> rank) {
      People& damaged = inputs_[static_cast<std::size_t>(input)].damaged;
      rank ? damaged.Add(*rank) : void(damaged.are_any = true);
    };
    if (IsTraceFileName(row.path)) {
      const std::optional<int> rank = RankFromFileName(row.path);
      is_damaged(LookedInput::kTrace, rank ? std::optional<std::int64_t>(*rank) : std::nullopt);
    } else if (IsDumpName(row.path)) {
      is_damaged(LookedInput::kRecorderDump, RankFromDumpName(row.path));
    } else if (row.is_damage) {
      for (std::size_t i = 0; i < kLookedInputCount; ++i) inputs_[i].damaged.are_any = true;
    }
  }
  return {};
}

Result<LookedForInputs> LookedForInputs::Load(Database& database, std::int64_t run_id,
                                              std::int64_t launch) {
  LookedForInputs inputs;
  ASSIGN_OR_RETURN(const std::vector<RunParticipant> participants,
                   LoadParticipants(database, run_id));
  std::map<std::int64_t, std::string> names;  // of logs without rank, by process
  for (const RunParticipant& one : participants) {
    if (one.launch != launch || one.is_child) continue;
    if (one.rank) {
      inputs.all_.Add(*one.rank);
      continue;
    }
    inputs.all_.Add(one.name);
    for (const ParticipantProcess& process : one.processes) names.emplace(process.id, one.name);
  }
  RETURN_IF_ERROR(inputs.LoadThere(database, run_id, launch, names));
  RETURN_IF_ERROR(inputs.LoadLeftOut(database, run_id));
  ASSIGN_OR_RETURN(const FirstRow<CallsOfGloo> calls,
                   First(Query<CallsOfGloo>(database, {.run_id = run_id})));
  inputs.is_gloo_alone_ = calls->has_gloo && !calls->has_others;
  for (const Input& input : inputs.inputs_)
    inputs.all_.ranks.insert(input.there.ranks.begin(), input.there.ranks.end());
  return inputs;
}

LookedFor LookedForInputs::Of(const Look& look, const People& whom) const {
  LookedFor result;
  result.input = look.input;
  const Input& input = Of(look.input);
  const Input& trace = Of(LookedInput::kTrace);
  if (!IsOfRanks(look.input) || whom.IsEmpty()) {
    std::string& said = input.damaged.are_any || !input.damaged.IsEmpty() ? result.not_known
                        : input.there.are_any || !input.there.IsEmpty()   ? result.found
                                                                          : result.not_found;
    said = kJob;
    result.is_of_all = true;
    return result;
  }
  People found, not_found, not_known;
  const auto add = [&](const auto& who) {
    const bool is_there = input.there.Has(who);
    const bool is_damaged =
        input.damaged.Has(who) || (IsOfTrace(look.input) && !is_there && trace.damaged.Has(who));
    (is_damaged ? not_known : is_there ? found : not_found).Add(who);
  };
  for (const std::int64_t rank : whom.ranks) add(rank);
  for (const std::string& log : whom.logs) add(log);
  result.found = found.Text();
  result.not_found = not_found.Text();
  result.not_known = not_known.Text();
  result.is_of_all = not_found.ranks == all_.ranks && not_found.logs == all_.logs;
  return result;
}

std::vector<LookedFor> LookedForInputs::Of(const Finding& finding) const {
  People all = all_, own;
  own.ranks.insert(finding.ranks.begin(), finding.ranks.end());
  own.logs.insert(finding.logs.begin(), finding.logs.end());
  all.ranks.insert(own.ranks.begin(), own.ranks.end());
  if (own.IsEmpty()) own = all;
  std::vector<LookedFor> looked_for;
  for (const Look& look : LooksOf(finding.kind)) {
    if (is_gloo_alone_ && IsOfNccl(look.input)) continue;
    looked_for.push_back(Of(look, look.is_of_all ? all : own));
  }
  return looked_for;
}

std::string NotFoundText(const std::vector<LookedFor>& looked_for) {
  constexpr std::size_t kMostWho = 60;
  std::string not_found, not_known;
  const auto add = [](std::string& list, const LookedFor& one, const std::string& who) {
    if (who.empty()) return;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", WordsOf(one.input));
    const bool are_several = who.find_first_of(",-") != who.npos;
    if (who == kJob) return;
    if (one.is_of_all && &who == &one.not_found) {
      if (are_several) list += " of any rank";
      return;
    }
    const bool are_ranks = who.find("log:") == who.npos;
    list += fmt::format(" of {}{}",
                        !are_ranks    ? ""
                        : are_several ? "ranks "
                                      : "rank ",
                        Shorten(who, kMostWho));
  };
  for (const LookedFor& one : looked_for) {
    add(not_found, one, one.not_found);
    add(not_known, one, one.not_known);
  }
  if (!not_found.empty()) not_found = "not among the inputs: " + not_found;
  if (!not_known.empty())
    not_found += fmt::format("{}not known, as files are damaged or cannot be read: {}",
                             not_found.empty() ? "" : "; ", not_known);
  return not_found;
}

}  // namespace tlparse

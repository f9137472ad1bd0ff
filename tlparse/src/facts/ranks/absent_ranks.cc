#include "facts/ranks/absent_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "facts/job/exits.h"
#include "facts/job/role_members.h"
#include "facts/ranks/unread_inputs.h"
#include "queries/facts/ranks/absent_ranks.h"

namespace tlparse {
namespace {

// A rank out of range (a damaged or hostile input) does not count for the size of the job.
constexpr std::int64_t kMostMissing = 100'000;

void ListParticipants(RanksAnswer& answer) {
  const Job& job = answer.job();
  std::vector<char> has_compile(job.participants().size());
  for (const JobCompile& compile : job.compiles())
    has_compile[static_cast<std::size_t>(compile.participant)] = 1;
  for (std::size_t i = 0; i < has_compile.size(); ++i) {
    if (has_compile[i] == 0) answer.without_compiles.push_back(static_cast<RankIndex>(i));
    if (job.participants()[i].is_extra_log) answer.extra_logs.push_back(static_cast<RankIndex>(i));
  }
}

std::set<std::int64_t> RanksWithLogs(const Job& job) {
  std::set<std::int64_t> ranks(job.ranks_without_records().begin(),
                               job.ranks_without_records().end());
  for (const JobParticipant& participant : job.participants()) {
    if (participant.rank) ranks.insert(*participant.rank);
  }
  return ranks;
}

// The number that a text begins with; nothing: none, or no number of ranks.
std::optional<std::int64_t> CountIn(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() || number < 0) return std::nullopt;
  return number;
}

struct KnownSize {
  std::int64_t size = 0;
  std::string source;  // a sentence; empty: the highest rank with a log

  // What a source shows counts if nothing else shows more.
  void Take(std::int64_t shown, std::int64_t most, std::string sentence) {
    if (shown < size || shown > most || (shown == size && !source.empty())) return;
    size = shown;
    source = std::move(sentence);
  }
};

// The largest group of ranks that a collective of the generated code names: all_gather_into_tensor
// has the size of its group as an argument.
Result<void> TakeGroupsOfCode(Database& database, const Job& job, std::int64_t most,
                              KnownSize& known) {
  const auto take = [&](std::string_view arguments) {
    const std::string_view size = arguments.substr(0, arguments.find(','));
    if (size.empty() || size.find_first_not_of("0123456789") != std::string_view::npos) return;
    if (const std::optional<std::int64_t> count = CountIn(size))
      known.Take(
          *count, most,
          fmt::format("A collective in the generated code names a group of {} ranks.", *count));
  };
  ASSIGN_OR_RETURN(const std::vector<CollectivesOfGraph>* const uses,
                   LoadCollectives(database, job));
  std::unordered_set<std::int64_t> used;
  for (const CollectivesOfGraph& use : *uses)
    if (use.compile_id && job.FindCompile(*use.compile_id) != nullptr) used.insert(use.content_id);
  // Lists that only logs use which are no participants are looked for one by one.
  bool has_others = false;
  FOR_EACH_ROW(const GatherOfContent& row, Query<GatherOfContent>(database)) {
    if (used.contains(row.content_id))
      take(row.arguments);
    else
      has_others = true;
  }
  if (!has_others) return {};
  FOR_EACH_ROW(const GatherArguments& row,
               Query<GatherArguments>(database, {.run_id = job.run_id(), .launch = job.launch()}))
    take(row.arguments);
  return {};
}

Result<void> TakeFiles(Database& database, const Job& job, std::int64_t most, KnownSize& known) {
  FOR_EACH_ROW(const RanksShownByFiles& row,
               Query<RanksShownByFiles>(database, {.run_id = job.run_id(),
                                                   .launch = job.launch(),
                                                   .launch_count = job.launch_count()})) {
    if (!row.ranks) continue;
    known.Take(
        *row.ranks, most,
        fmt::format("{} {}.", row.kind == "kineto" ? "A profile" : "A recorder's dump", row.what));
  }
  return {};
}

Result<void> TakeProcesses(Database& database, const Job& job, std::int64_t most,
                           KnownSize& known) {
  ASSIGN_OR_RETURN(const std::vector<ProcessExit> exits, LoadExits(database, job.run_id()));
  std::int64_t last = -1;
  for (const ProcessExit& one : ExitsBeside(exits, ProcessesOf(job)))
    last = std::max(last, one.rank.value_or(-1));
  if (last >= 0)
    known.Take(last + 1, most,
               fmt::format("By run.json the command had a process of rank {}.", last));
  return {};
}

}  // namespace

Result<void> FindAbsent(Database& database, const RanksOptions& options, RanksAnswer& answer) {
  ListParticipants(answer);
  const std::set<std::int64_t> present = RanksWithLogs(answer.job());
  if (present.empty()) return {};
  const std::int64_t most = kMostMissing + static_cast<std::int64_t>(present.size());
  KnownSize known;
  if (options.world_size) {
    known = {*options.world_size, "The number of ranks is as given with --world-size."};
  } else {
    if (*present.rbegin() >= most) return {};
    known.size = *present.rbegin() + 1;
    RETURN_IF_ERROR(TakeGroupsOfCode(database, answer.job(), most, known));
    RETURN_IF_ERROR(TakeFiles(database, answer.job(), most, known));
    RETURN_IF_ERROR(TakeProcesses(database, answer.job(), most, known));
  }
  // What may not be opened is not missing: it has a finding of its own.
  std::set<std::int64_t> unread;
  ASSIGN_OR_RETURN(const std::vector<UnreadInput> inputs,
                   UnreadInputs(database, answer.job().run_id()));
  for (const UnreadInput& input : inputs) {
    if (input.is_log && input.rank) unread.insert(*input.rank);
  }
  answer.world_size = known.size;
  answer.world_size_source = std::move(known.source);
  for (std::int64_t rank = 0; rank < answer.world_size; ++rank) {
    if (present.count(rank) == 0 && unread.count(rank) == 0) answer.missing_ranks.push_back(rank);
    if (static_cast<std::int64_t>(answer.missing_ranks.size()) >= kMostMissing) break;
  }
  return {};
}

}  // namespace tlparse

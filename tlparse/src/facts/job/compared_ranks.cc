#include "facts/job/compared_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/ascii.h"
#include "facts/text/message_lines.h"

namespace tlparse {
namespace {

using SideKey = std::tuple<std::string, std::string, std::string>;  // op, what, sequence

std::string_view UpTo(std::string_view text, std::string_view ends) {
  return text.substr(0, text.find_first_of(ends));
}

// As torch.distributed names the call.
std::string NameOfOpType(std::string_view type) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"ALLREDUCE", "all_reduce"},
      {"ALLGATHER", "all_gather"},
      {"_ALLGATHER_BASE", "all_gather_into_tensor"},
      {"_REDUCE_SCATTER_BASE", "reduce_scatter_tensor"},
      {"ALLTOALL", "all_to_all"},
      {"ALLTOALL_BASE", "all_to_all_single"},
  };
  for (const auto& [known, name] : kNames) {
    if (type == known) return std::string(name);
  }
  return InLowerCase(type);
}

// "CollectiveFingerPrint(SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[8, 8], TensorDtypes=Float, …".
SideKey KeyOfCall(std::string_view call) {
  const auto part = [&](std::string_view name) {
    const std::size_t at = call.find(name);
    return at == call.npos ? std::string_view() : call.substr(at + name.size());
  };
  const std::string_view shape = Between(call, "TensorShape=", ", TensorDtypes=");
  const std::string_view type = Between(call, "TensorDtypes=", ", TensorDeviceTypes=");
  std::string what(shape);
  if (!type.empty()) what += (what.empty() ? "" : " ") + std::string(type);
  std::string_view digits = part("SequenceNumber=");
  const std::optional<std::int64_t> sequence = TakeNumber(digits);
  return {NameOfOpType(UpTo(part("OpType="), ",)")), what,
          sequence ? fmt::format("{}", *sequence) : std::string()};
}

// "ank 0 is running collective: CollectiveFingerPrint(…", "ank 0 has 4 params",
// "ank 1 has inconsistent 6 params": without the first letter, which is small in the middle of a sentence.
void ReadMessage(std::string_view message, std::map<std::int64_t, SideKey>& calls) {
  constexpr std::string_view kRank = "ank ", kCall = " is running collective: ", kHas = " has ",
                             kOther = "inconsistent ", kModel = " params";
  while (true) {
    const std::size_t at = message.find(kRank);
    if (at == message.npos) return;
    message.remove_prefix(at + kRank.size());
    std::string_view rest = message;
    const std::optional<std::int64_t> rank = TakeNumber(rest);
    if (!rank) continue;
    if (rest.starts_with(kCall)) {
      calls.insert({*rank, KeyOfCall(rest.substr(0, rest.find(kRank)))});
    } else if (rest.starts_with(kHas)) {
      rest.remove_prefix(kHas.size());
      if (rest.starts_with(kOther)) rest.remove_prefix(kOther.size());
      const std::optional<std::int64_t> count = TakeNumber(rest);
      if (count && rest.starts_with(kModel))
        calls.insert({*rank, SideKey("", fmt::format("{}", *count), "")});
    }
  }
}

}  // namespace

bool ComparedRanks::HasMajority() const {
  std::size_t others = 0;
  for (const ComparedSide& side : sides) others += side.ranks.size();
  return 2 * sides.back().ranks.size() > others;
}

std::optional<ComparedRanks> CompareByMessages(const Exceptions& raised) {
  std::map<std::int64_t, SideKey> calls;
  std::set<std::int64_t> raisers;
  for (const FatalException* const one : raised) {
    if (one->message.find("Detected mismatch between collectives") == std::string::npos &&
        one->message.find("DDP expects same model across all ranks") == std::string::npos)
      continue;
    // Numbers are those of the group: each message names the rank that raised it first.
    std::string_view own(one->message);
    own.remove_prefix(std::min(own.size(), own.find("Rank ") + 5));
    if (!one->rank || TakeNumber(own) != one->rank) return std::nullopt;
    raisers.insert(*one->rank);
    ReadMessage(one->message, calls);
  }
  for (const auto& entry : calls) {
    if (!raisers.contains(entry.first)) return std::nullopt;
  }
  std::map<SideKey, std::vector<std::int64_t>> by_key;
  for (const auto& [rank, key] : calls) by_key[key].push_back(rank);
  if (by_key.size() < 2) return std::nullopt;
  ComparedRanks comparison;
  for (auto& [key, ranks] : by_key) {
    const auto& [op, what, sequence] = key;
    comparison.sides.push_back({std::move(ranks), op, what, sequence});
  }
  std::stable_sort(
      comparison.sides.begin(), comparison.sides.end(),
      [](const ComparedSide& a, const ComparedSide& b) { return a.ranks.size() < b.ranks.size(); });
  return comparison;
}

std::optional<MonitoredBarrier> MissingAtBarrier(std::string_view message) {
  constexpr std::string_view kFailed = " failed to pass monitoredBarrier in ";
  const std::size_t at = message.find(kFailed);
  if (at == message.npos) return std::nullopt;
  std::string_view before = message.substr(0, at), after = message.substr(at + kFailed.size());
  const std::size_t named = before.rfind("ank");  // "[Rank 0]: Ranks 1, 2"
  const std::optional<std::int64_t> waited_ms = TakeNumber(after);
  if (named == before.npos || !waited_ms) return std::nullopt;
  MonitoredBarrier barrier{{}, *waited_ms};
  before.remove_prefix(named);
  while (!before.empty()) {
    if (const std::optional<std::int64_t> rank = TakeNumber(before))
      barrier.missing.push_back(*rank);
    else
      before.remove_prefix(1);
  }
  std::sort(barrier.missing.begin(), barrier.missing.end());
  return barrier.missing.empty() ? std::nullopt : std::optional(barrier);
}

bool IsOfAllRanks(const MonitoredBarrier& barrier, const FatalException& raised,
                  const Exceptions& all) {
  constexpr std::string_view kCall = "monitored_barrier(", kReached = "Rank ";
  const std::size_t call = raised.lines.code.find(kCall);
  if (call != std::string::npos) {
    const std::string_view arguments =
        std::string_view(raised.lines.code).substr(call + kCall.size());
    // The group is the first argument.
    if (arguments.starts_with(")") || arguments.starts_with("timeout=") ||
        arguments.starts_with("wait_all_ranks="))
      return arguments.find("group") == std::string_view::npos && arguments.ends_with(')');
  }
  // Groups are sorted by rank: below one that has its own number there is no rank that they lack.
  return std::any_of(all.begin(), all.end(), [&](const FatalException* one) {
    std::string_view own(one->message);
    if (!own.starts_with(kReached) ||
        own.find(" successfully reached monitoredBarrier") == std::string_view::npos)
      return false;
    own.remove_prefix(kReached.size());
    return one->rank && TakeNumber(own) == one->rank && *one->rank > barrier.missing.back();
  });
}

std::optional<std::int64_t> MissingInStore(std::string_view message) {
  constexpr std::string_view kDevice = "//cpu//";
  const std::size_t at = message.find(kDevice, message.find("wait timeout after "));
  if (at == message.npos || message.find("wait timeout after ") == message.npos)
    return std::nullopt;
  // Numbers of other groups are not ranks of the job.
  if (message.find("/default_pg/") == message.npos) return std::nullopt;
  std::string_view key = message.substr(at + kDevice.size());
  const std::size_t slash = key.find('/');
  if (slash == key.npos) return std::nullopt;
  key.remove_prefix(slash + 1);
  return TakeNumber(key);
}

bool SaysMismatch(std::string_view text) {
  for (const std::string_view part :
       {"collective mismatch", "mismatch between collectives", "op.preamble.length <= op.nbytes"}) {
    if (text.find(part) != text.npos) return true;
  }
  return false;
}

}  // namespace tlparse

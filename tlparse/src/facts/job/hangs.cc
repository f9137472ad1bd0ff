#include "facts/job/hangs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "facts/job/participants.h"
#include "queries/facts/job/hangs.h"

namespace tlparse {
namespace {

constexpr std::string_view kCalled = ", which called ";

// Whether a main thread is in a function in which it waits for what another thread, or process, does.
bool WaitsForWork(std::string_view where) {
  const std::size_t called = where.find(kCalled);
  if (called == where.npos) return false;
  for (const std::string_view name :
       {"join", "result", "wait", "get", "as_completed", "result_iterator", "shutdown", "__exit__"})
    if (where.substr(called + kCalled.size()) == name) return true;
  return false;
}

// "3 other threads of rank 2 (pid 5088) are at /app/serve.py:9 in handle"; in the past. The sentence on
// their main thread came before.
void AddThreads(std::string_view sentence, std::size_t main, Hang& hang) {
  for (const auto& [is, was] :
       {std::pair(" is at ", " was at "), std::pair(" are at ", " were at ")}) {
    const std::size_t at = sentence.find(is);
    if (at == sentence.npos || sentence.find(" other thread") > at) continue;
    const std::string where(sentence.substr(at + std::string_view(is).size()));
    hang.threads.push_back(fmt::format("{}{}{}", sentence.substr(0, at), was, where));
    if (main >= hang.places.size() || !WaitsForWork(hang.places[main].where)) return;
    std::vector<std::string>& threads = hang.places[main].threads;
    if (std::find(threads.begin(), threads.end(), where) == threads.end()) threads.push_back(where);
    return;
  }
}

// "rank 2 (pid 5088) is at /app/train.py:27 in <module>, which called backward". Its index in `places`.
std::size_t AddPlace(std::string_view sentence, Hang& hang) {
  std::vector<HangPlace>& places = hang.places;
  constexpr std::string_view kIsAt = " is at ", kRank = "rank ", kPid = "pid ", kTag = " with tag ";
  const std::size_t at = sentence.find(kIsAt);
  if (at == sentence.npos) return places.size();
  const std::string_view who = sentence.substr(0, at);
  std::string_view where = sentence.substr(at + kIsAt.size());
  std::int64_t rank = -1;
  if (who.starts_with(kRank))
    std::from_chars(who.data() + kRank.size(), who.data() + who.size(), rank);
  for (const std::string_view call : {" from rank ", " to rank "}) {
    const std::size_t end = where.rfind(call);
    std::int64_t peer = -1;
    if (end == where.npos || rank < 0) continue;
    std::from_chars(where.data() + end + call.size(), where.data() + where.size(), peer);
    if (peer < 0) continue;
    const std::size_t name = where.rfind(' ', end - 1) + 1;
    hang.waits.push_back(
        {rank, peer, std::string(where.substr(name)), std::string(where.substr(0, end)), 0});
    if (const std::size_t tag = where.find(kTag, end); tag != where.npos)
      std::from_chars(where.data() + tag + kTag.size(), where.data() + where.size(),
                      hang.waits.back().tag);
    where = where.substr(0, end);
  }
  if (who.starts_with(kPid)) {
    HangChild child{0, std::string(where), -1};
    std::from_chars(who.data() + kPid.size(), who.data() + who.size(), child.pid);
    hang.children.push_back(std::move(child));
  }
  const auto known = std::find_if(places.begin(), places.end(), [&](const HangPlace& one) {
    return one.ranks.empty() == (rank < 0) && one.where == where;
  });
  if (known != places.end()) {
    if (rank >= 0) known->ranks.push_back(rank);
    if (rank < 0) known->AddProcess(who);
    return static_cast<std::size_t>(known - places.begin());
  }
  places.push_back({{}, std::string(who), std::string(where), {}});
  if (rank >= 0) places.back().ranks = {rank};
  return places.size() - 1;
}

// "in barrier at train.py:21"
std::string Short(std::string_view where) {
  constexpr std::string_view kIn = " in ";
  const std::string_view line = where.substr(0, where.find(kIn));
  const std::size_t called = where.find(kCalled);
  const std::string place = fmt::format("at {}", line.substr(line.rfind('/') + 1));
  if (called == where.npos) return place;
  return fmt::format("in {} {}", where.substr(called + kCalled.size()), place);
}

// "[0,2]"
std::vector<std::int64_t> RanksIn(std::string_view list) {
  std::vector<std::int64_t> ranks;
  while (list.size() > 1) {
    list.remove_prefix(1);
    std::int64_t rank = -1;
    const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), rank);
    if (error != std::errc() || rank < 0) break;
    ranks.push_back(rank);
    list.remove_prefix(static_cast<std::size_t>(end - list.data()));
  }
  return ranks;
}

}  // namespace

// "pid 12" → "pids 12,13"
void HangPlace::AddProcess(std::string_view pid) {
  if (!HasSeveral()) who.insert(3, "s");
  who += fmt::format(",{}", pid.substr(pid.rfind(' ') + 1));
}

bool HangPlace::WaitsForChild() const {
  for (const std::string_view name : {"__next__", "recv", "poll", "communicate"})
    if (where.ends_with(fmt::format("{}{}", kCalled, name))) return true;
  return WaitsForWork(where);
}

bool HangPlace::HasSeveral() const { return ranks.size() > 1 || who.starts_with("pids"); }

std::string HangPlace::ShortWhere() const {
  constexpr std::size_t kMost = 3;
  if (threads.empty()) return Short(where);
  std::string others = Short(threads.front());
  for (std::size_t i = 1; i < threads.size() && i < kMost; ++i) others += ", " + Short(threads[i]);
  if (threads.size() > kMost) others += fmt::format(" and {} more places", threads.size() - kMost);
  return fmt::format("{} ({} {})", Short(where),
                     threads.size() == 1 ? "another thread" : "other threads", others);
}

const HangWait* Hang::WaitOf(std::int64_t rank) const {
  const auto found = std::find_if(waits.begin(), waits.end(),
                                  [rank](const HangWait& one) { return one.rank == rank; });
  return found == waits.end() ? nullptr : &*found;
}

const HangPlace* Hang::PlaceOf(std::int64_t rank) const {
  const auto found = std::find_if(places.begin(), places.end(), [rank](const HangPlace& one) {
    return std::find(one.ranks.begin(), one.ranks.end(), rank) != one.ranks.end();
  });
  return found == places.end() ? nullptr : &*found;
}

std::vector<std::int64_t> Hang::Awaited() const {
  std::map<std::int64_t, std::size_t> ends;  // who is waited for at last, by how many
  for (const HangWait& first : waits) {
    std::vector<std::int64_t> chain;
    std::int64_t rank = first.rank;
    for (const HangWait* next = &first; next != nullptr; next = WaitOf(rank)) {
      const auto before = std::find(chain.begin(), chain.end(), next->rank);
      if (before != chain.end()) return {before, chain.end()};
      chain.push_back(next->rank);
      rank = next->peer;
    }
    ++ends[rank];
  }
  const auto most = std::max_element(
      ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == ends.end() ? std::vector<std::int64_t>() : std::vector{most->first};
}

std::string Hang::PlacesText() const {
  std::string text;
  for (const HangPlace& place : places)
    text += fmt::format("{}{} {} at {}", text.empty() ? "" : "; ", place.who,
                        place.HasSeveral() ? "were" : "was", place.where);
  return text;
}

std::string Hang::ShortPlaces() const {
  constexpr std::size_t kMost = 3;
  const std::size_t shown = places.size() > kMost + 1 ? kMost : places.size();
  std::string text;
  for (std::size_t i = 0; i < shown; ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", places[i].who, places[i].ShortWhere());
  if (shown < places.size()) text += fmt::format(" and {} more places", places.size() - shown);
  return text;
}

Result<std::vector<Hang>> LoadHangs(Database& database, std::int64_t run_id) {
  std::vector<Hang> hangs;
  FOR_EACH_ROW(const HangOfRun& row, Query<HangOfRun>(database, {.run_id = run_id})) {
    Hang hang{row.profile_id,
              row.time_us,
              std::string(row.why),
              row.was_ended,
              row.was_signalled,
              {},
              {},
              {},
              {},
              row.again_us,
              RanksIn(row.busy)};
    std::size_t main = 0;
    FOR_EACH_ROW(
        const TakenOfHang& taken,
        Query<TakenOfHang>(database, {.profile_id = row.profile_id, .ordinal = row.ordinal})) {
      if (!taken.text.empty() && IsDigit(taken.text.front()))
        AddThreads(taken.text, main, hang);
      else
        main = AddPlace(taken.text, hang);
    }
    for (HangChild& child : hang.children) {
      ASSIGN_OR_RETURN(
          const FirstRow<RankOfParent> parent,
          First(Query<RankOfParent>(database, {.profile_id = row.profile_id, .pid = child.pid})));
      if (parent) child.rank = parent->rank;
    }
    std::erase_if(hang.children, [](const HangChild& one) { return one.rank < 0; });
    std::vector<HangPlace>& places = hang.places;
    const auto is_rank = [](const HangPlace& one) { return !one.ranks.empty(); };
    // A launcher waits for its ranks.
    if (std::any_of(places.begin(), places.end(), is_rank))
      std::erase_if(places, [&](const HangPlace& one) { return !is_rank(one); });
    // A helper of multiprocessing waits for its program.
    const auto is_text = [](const HangPlace& one) { return one.where.starts_with("<string>:"); };
    if (!std::all_of(places.begin(), places.end(), is_text)) std::erase_if(places, is_text);
    for (HangPlace& place : places) {
      if (place.ranks.empty()) continue;
      std::sort(place.ranks.begin(), place.ranks.end());
      place.who = RanksText(place.ranks);
    }
    hangs.push_back(std::move(hang));
  }
  std::stable_sort(hangs.begin(), hangs.end(),
                   [](const Hang& a, const Hang& b) { return a.time_us < b.time_us; });
  return hangs;
}

}  // namespace tlparse

#include "facts/job/hangs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "facts/job/participants.h"
#include "queries/facts/job/hangs.h"

namespace tlparse {
namespace {

// "3 other threads of rank 2 (pid 5088) are at /app/serve.py:9 in handle"; in the past
void AddThreads(std::string_view sentence, std::vector<std::string>& threads) {
  for (const auto& [is, was] :
       {std::pair(" is at ", " was at "), std::pair(" are at ", " were at ")}) {
    const std::size_t at = sentence.find(is);
    if (at == sentence.npos || sentence.find(" other thread") > at) continue;
    threads.push_back(fmt::format("{}{}{}", sentence.substr(0, at), was,
                                  sentence.substr(at + std::string_view(is).size())));
    return;
  }
}

// "rank 2 (pid 5088) is at /app/train.py:27 in <module>, which called backward"
void AddPlace(std::string_view sentence, Hang& hang) {
  std::vector<HangPlace>& places = hang.places;
  constexpr std::string_view kIsAt = " is at ", kRank = "rank ";
  const std::size_t at = sentence.find(kIsAt);
  if (at == sentence.npos) return;
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
        {rank, peer, std::string(where.substr(name)), std::string(where.substr(0, end))});
    where = where.substr(0, end);
  }
  const auto known = std::find_if(places.begin(), places.end(), [&](const HangPlace& one) {
    return one.ranks.empty() == (rank < 0) && one.where == where;
  });
  if (known != places.end()) {
    if (rank >= 0) known->ranks.push_back(rank);
    if (rank < 0) known->AddProcess(who);
    return;
  }
  places.push_back({{}, std::string(who), std::string(where)});
  if (rank >= 0) places.back().ranks = {rank};
}

}  // namespace

// "pid 12" → "pids 12,13"
void HangPlace::AddProcess(std::string_view pid) {
  if (!HasSeveral()) who.insert(3, "s");
  who += fmt::format(",{}", pid.substr(pid.rfind(' ') + 1));
}

bool HangPlace::HasSeveral() const { return ranks.size() > 1 || who.starts_with("pids"); }

std::string HangPlace::ShortWhere() const {
  constexpr std::string_view kIn = " in ", kCalled = ", which called ";
  const std::string_view text = where, line = text.substr(0, text.find(kIn));
  const std::size_t called = text.find(kCalled);
  const std::string place = fmt::format("at {}", line.substr(line.rfind('/') + 1));
  if (called == text.npos) return place;
  return fmt::format("in {} {}", text.substr(called + kCalled.size()), place);
}

const HangWait* Hang::WaitOf(std::int64_t rank) const {
  const auto found = std::find_if(waits.begin(), waits.end(),
                                  [rank](const HangWait& one) { return one.rank == rank; });
  return found == waits.end() ? nullptr : &*found;
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
              row.again_us};
    FOR_EACH_ROW(
        const TakenOfHang& taken,
        Query<TakenOfHang>(database, {.profile_id = row.profile_id, .ordinal = row.ordinal})) {
      if (!taken.text.empty() && taken.text.front() >= '0' && taken.text.front() <= '9')
        AddThreads(taken.text, hang.threads);
      else
        AddPlace(taken.text, hang);
    }
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

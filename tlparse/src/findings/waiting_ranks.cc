#include "findings/waiting_ranks.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>

#include "facts/job/compared_ranks.h"
#include "facts/job/hangs.h"
#include "facts/text/message_lines.h"
#include "facts/text/shorten.h"
#include "findings/context.h"
#include "findings/exit_texts.h"

namespace tlparse {
namespace {

// Of gloo: "Timed out waiting 8000ms for recv operation to complete".
std::optional<std::int64_t> TimeoutUs(const FatalException& raised) {
  const std::string_view digits = Between(raised.message, "Timed out waiting ", "ms");
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ms);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size() && ms > 0;
  return is_number ? std::optional(ms * 1000) : std::nullopt;
}

// Whether the other was raised hardly later than the timeout: within a fiftieth of it.
bool IsAtOnce(const FatalException& timeout, const FatalException& other) {
  const std::optional<std::int64_t> timeout_us = TimeoutUs(timeout);
  return timeout_us && timeout.raised_us && other.raised_us &&
         *other.raised_us - *timeout.raised_us < *timeout_us / 50;
}

}  // namespace

std::optional<FindingPlace> PlaceOfStack(std::string_view where) {
  const std::string_view text = where.substr(0, where.find(" in "));
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  FindingPlace place{std::string(text.substr(0, colon)), 0, {}};
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), place.line);
  return error == std::errc() ? std::optional(place) : std::nullopt;
}

void SayPrinted(Finding& finding, const ProcessExit& exit, bool is_own) {
  constexpr std::size_t kMostTitle = 160, kMostDetail = 600;
  if (exit.printed.empty()) {
    if (exit.signal == SIGABRT)
      finding.suggestion = "read what was printed last to standard error: it says why";
    return;
  }
  finding.cause = Shorten(exit.printed, kMostTitle);
  finding.is_of_mismatch = SaysMismatch(exit.printed);
  finding.title += is_own ? ": " + finding.cause : fmt::format(" ({})", finding.cause);
  if (finding.cause.size() < exit.printed.size())
    finding.detail += fmt::format(" On standard error: {}", Shorten(exit.printed, kMostDetail));
}

namespace {

// An abort by what other ranks did, as gloo, NCCL and PyTorch word it.
bool IsOfBackend(std::string_view printed) {
  for (const std::string_view part :
       {"gloo", "NCCL", "DistBackendError", "imeout", "imed out", "Connection", "by peer"}) {
    if (printed.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// Ranks that gave up waiting at one line, some to send and some to receive.
bool SetUnpaired(Finding& finding, const Exceptions& raised) {
  std::map<std::string_view, std::vector<std::int64_t>> waits;
  for (const FatalException* const one : raised) {
    const std::string_view what = Between(one->message, "ms for ", " operation to complete");
    const bool is_alike = one->Place() == raised.front()->Place() && !one->file.empty();
    if (!one->rank || !is_alike || (what != "send" && what != "recv")) return false;
    waits[what].push_back(*one->rank);
  }
  if (waits.size() < 2) return false;
  finding.ranks.clear();
  for (auto& [what, ranks] : waits) {
    std::sort(ranks.begin(), ranks.end());
    finding.ranks.insert(finding.ranks.end(), ranks.begin(), ranks.end());
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.rank_count = finding.ranks.size();
  finding.title =
      fmt::format("{} gave up waiting at {}: {} to send, {} to receive", RanksFirst(finding.ranks),
                  raised.front()->Place(), RanksText(waits["send"]), RanksText(waits["recv"]));
  finding.cause = "sends and receives without a partner";
  finding.suggestion =
      "look for a rank that leaves one of these calls out, or makes one more, in an earlier step";
  return true;
}

}  // namespace

bool SetApart(Finding& finding, const Exceptions& raised, bool are_all) {
  if (are_all && SetUnpaired(finding, raised)) return true;
  const std::vector<RaisedTogether> places = WhereTheyWaited(raised);
  // What a rank was in when it found another gone says nothing of what it should have called.
  const auto has_timeout = [&](const RaisedTogether& place) {
    return std::any_of(raised.begin(), raised.end(), [&](const FatalException* one) {
      return one->IsTimeout() && one->Place() == place.place;
    });
  };
  if (std::count_if(places.begin(), places.end(), has_timeout) < 2) return false;
  const RaisedTogether &most = places.front(), &least = places.back();
  std::string title = fmt::format("{} gave up waiting at {}", RanksText(least.ranks), least.place);
  title[0] = 'R';
  for (const RaisedTogether& one : places) {
    if (&one != &least) title += fmt::format(", {} at {}", RanksText(one.ranks), one.place);
  }
  finding.title = title;
  finding.cause = "waited at several lines";
  finding.place = FindingPlace{least.first->file, least.first->line, {}};
  finding.ranks.clear();
  if (least.ranks.size() < most.ranks.size()) finding.ranks = least.ranks;
  finding.rank_count = finding.ranks.size();
  finding.suggestion =
      fmt::format("compare {} with {}: look for a branch that depends on the rank or on data",
                  least.place, most.place);
  const std::string& path = least.first->path;
  finding.detail = fmt::format("The exception of {}: {} ({}).", RanksText({*least.first->rank}),
                               least.first->Text(), path.substr(path.rfind('/') + 1));
  finding.query = fmt::format(
      "SELECT id, rank FROM uncaught_exception WHERE rank IS NOT NULL "
      "AND profile_id = (SELECT profile_id FROM uncaught_exception WHERE id = {})",
      least.first->id);
  return true;
}

bool SetLate(Finding& finding, const Exceptions& raised) {
  std::set<std::int64_t> early, late;
  const FatalException *last_early = nullptr, *first_late = nullptr;
  for (const FatalException* const one : raised) {
    if (!one->rank || !one->raised_us || one->Place().empty()) return false;
    if (one->Place() != raised.front()->Place()) return false;
    const FatalException*& edge = one->IsTimeout() ? last_early : first_late;
    if (!one->IsTimeout() && !one->ComesOfPeer()) return false;
    (one->IsTimeout() ? early : late).insert(*one->rank);
    const bool is_edge = edge == nullptr || (one->IsTimeout() ? *one->raised_us > *edge->raised_us
                                                              : *one->raised_us < *edge->raised_us);
    if (is_edge) edge = one;
  }
  if (last_early == nullptr || first_late == nullptr) return false;
  const std::optional<std::int64_t> timeout_us = TimeoutUs(*last_early);
  const std::int64_t later_us = *first_late->raised_us - *last_early->raised_us;
  if (!timeout_us || later_us < *timeout_us / 10) return false;
  const std::string who = RanksText({early.begin(), early.end()});
  finding.ranks = {late.begin(), late.end()};
  finding.rank_count = late.size();
  finding.title =
      fmt::format("{} came to {} at least {} after {}, which had given up waiting",
                  RanksFirst(finding.ranks), last_early->Place(), SecondsText(later_us), who);
  finding.cause = "came late";
  finding.place = FindingPlace{last_early->file, last_early->line, {}};
  finding.detail = fmt::format(
      "{} waited for {} there, until {}; {} found them gone {} later, and had not waited as long "
      "(run.json).",
      RanksFirst({early.begin(), early.end()}), SecondsText(*timeout_us),
      ClockText(*last_early->raised_us), RanksText(finding.ranks), SecondsText(later_us));
  finding.suggestion = fmt::format(
      "look at what {} did before {}: what it does alone has to take less than the timeout of the "
      "process group",
      RanksText(finding.ranks), last_early->Place());
  return true;
}

namespace {

// Ranks that were at one other line when more of them gave up waiting, or were `with_it`: in the call of
// one that did, whose end they found at once.
bool SetElsewhere(const std::vector<Finding>& known, Finding& finding, const ProcessExit& exit,
                  const std::vector<ProcessExit>& exits, std::set<std::int64_t> with_it,
                  std::map<std::string, std::vector<std::int64_t>>& elsewhere) {
  if (!exit.raised || elsewhere.size() != 1) return false;
  std::set<std::int64_t> waiting;
  for (const ProcessExit& one : exits) {
    const bool has_waited = one.rank && one.host == exit.host && one.RanBeside(exit) &&
                            one.raised && one.raised->IsTimeout();
    if (has_waited && one.raised->Place() == exit.raised->Place()) waiting.insert(*one.rank);
  }
  for (const std::int64_t one : waiting) with_it.erase(one);
  auto& [where, ranks] = *elsewhere.begin();
  std::sort(ranks.begin(), ranks.end());
  // Of as many on both sides, dumps may show which had not come.
  const bool are_absent =
      std::any_of(known.begin(), known.end(), [&ranks = ranks](const Finding& one) {
        return one.kind == FindingKind::kCollectiveNotReached && one.ranks == ranks;
      });
  const std::size_t count = waiting.size() + with_it.size();
  if (ranks.size() >= count && !(are_absent && ranks.size() == count)) return false;
  const std::string who = RanksText({waiting.begin(), waiting.end()});
  const std::string place = exit.raised->Place(), other = PlaceText(*PlaceOfStack(where));
  finding.title = fmt::format("{} {} at {} when {} gave up waiting at {}", RanksFirst(ranks),
                              ranks.size() > 1 ? "were" : "was", other, who, place);
  if (!with_it.empty())
    finding.title +=
        fmt::format(", where {} waited too", RanksText({with_it.begin(), with_it.end()}));
  if (finding.detail.starts_with("At ")) {
    finding.detail[0] = 'a';
    finding.detail.insert(0, fmt::format("Rank {} first, ", *exit.rank));
  }
  finding.detail +=
      fmt::format(" The exception of rank {}: {}. {} {} at {} then.", *exit.rank,
                  exit.raised->Text(), RanksFirst(ranks), ranks.size() > 1 ? "were" : "was", where);
  finding.place = PlaceOfStack(where);
  finding.ranks = ranks;
  finding.rank_count = ranks.size();
  finding.cause = "was elsewhere when others gave up waiting";
  finding.suggestion = fmt::format(
      "look at why {} {} at {} and not at {}: what it waits for or does there, or a branch that "
      "depends on the rank or on data",
      RanksText(ranks), ranks.size() > 1 ? "were" : "was", other, place);
  return true;
}

}  // namespace

void SayWhereTheyWere(const std::vector<Finding>& known, Finding& finding, const ProcessExit& exit,
                      const std::vector<ProcessExit>& exits) {
  const bool is_stopped = !exit.raised && !exit.stopped_at.empty();
  std::string place = exit.raised ? exit.raised->Place() : std::string();
  const bool is_own = !exit.printed.empty() && !IsOfBackend(exit.printed);
  const bool is_native = exit.fault_thread == "native";
  if (const auto stop = is_stopped ? PlaceOfStack(exit.stopped_at) : std::nullopt) {
    place = PlaceText(*stop);
    if (!is_native) finding.place = stop;
    if (!is_native || !is_own)
      finding.title += (is_native ? " while its main thread was at " : " at ") + place;
    const std::string_view of_thread =
        !exit.signal ? "It left"
        : is_native  ? "The signal came in a thread that runs no Python code; the main thread was"
        : exit.fault_thread == "python" ? "It came in another thread than the main one,"
                                        : "Its main thread was";
    finding.detail += fmt::format(" {} at {}.", of_thread, exit.stopped_at);
  }
  if (!exit.raised) SayPrinted(finding, exit, is_own);
  // PyTorch's backends abort a process where calls of ranks do not match, or after a timeout: in a call of
  // theirs, or from a thread of their own.
  const bool is_in_call = exit.stopped_at.find(", which called ") != std::string::npos;
  const bool is_of_backend = exit.signal == SIGABRT && !is_own && (is_native || is_in_call);
  const bool has_waited = exit.raised ? exit.raised->IsTimeout() : is_of_backend;
  if (!exit.rank || place.empty() || !has_waited) return;
  std::map<std::string, std::vector<std::int64_t>> elsewhere;
  std::set<std::int64_t> with_it;
  for (const ProcessExit& one : exits) {
    if (!one.rank || one.rank == exit.rank || one.host != exit.host || !one.RanBeside(exit))
      continue;
    const bool was_asked = !one.raised && one.WasAsked();
    const auto stop = was_asked ? PlaceOfStack(one.stopped_at) : std::nullopt;
    if (stop && PlaceText(*stop) != place) elsewhere[one.stopped_at].push_back(*one.rank);
    // The exception of a rank that lost its connection to this process says where the rank was. A later
    // exception does not.
    const bool found_gone = one.raised && one.raised->ComesOfPeer() &&
                            (!exit.raised || IsAtOnce(*exit.raised, *one.raised));
    if (!found_gone || one.raised->Place().empty()) continue;
    if (one.raised->Place() == place) with_it.insert(*one.rank);
    if (one.raised->Place() != place)
      elsewhere[fmt::format("{}:{}", one.raised->file, one.raised->line)].push_back(*one.rank);
  }
  // They made the call together, and it did not fit: the one that noticed is not the cause by that.
  if (!exit.raised && !exit.printed.empty() && elsewhere.empty() && !with_it.empty()) {
    finding.detail +=
        fmt::format(" {} {} in the same call.", RanksFirst({with_it.begin(), with_it.end()}),
                    with_it.size() > 1 ? "were" : "was");
    finding.suggestion = fmt::format(
        "compare what the ranks pass at {}, and how often each has made such calls before: the one "
        "that noticed need not be the one at fault",
        place);
    with_it.insert(*exit.rank);
    finding.ranks = {with_it.begin(), with_it.end()};
    finding.rank_count = with_it.size();
  }
  if (SetElsewhere(known, finding, exit, exits, with_it, elsewhere)) return;
  for (auto& [where, ranks] : elsewhere) {
    std::sort(ranks.begin(), ranks.end());
    finding.title +=
        fmt::format(", {} {} at {}", RanksText(ranks), ranks.size() > 1 ? "were" : "was",
                    PlaceText(*PlaceOfStack(where)));
    finding.detail += fmt::format(" {} {} at {} then.", RanksFirst(ranks),
                                  ranks.size() > 1 ? "were" : "was", where);
  }
  if (elsewhere.empty() || (!exit.raised && !is_in_call && exit.printed.empty())) return;
  finding.suggestion =
      fmt::format("compare {} with {}: look for a branch that depends on the rank or on data",
                  PlaceText(*PlaceOfStack(elsewhere.begin()->first)), place);
}

// Threads that wait for each other are at several lines.
Result<void> SayOtherThreads(const FindingContext& context, Finding& finding) {
  if (finding.ranks.size() != 1 || !finding.place) return {};
  ASSIGN_OR_RETURN(const std::vector<Hang> hangs,
                   LoadHangs(context.database, context.job.run_id()));
  const std::string who = fmt::format(" of rank {} (", finding.ranks.front());
  for (const Hang& hang : hangs) {
    const HangPlace* const at = hang.PlaceOf(finding.ranks.front());
    const auto place = at == nullptr ? std::nullopt : PlaceOfStack(at->where);
    if (!place || place->file != finding.place->file || place->line != finding.place->line)
      continue;
    std::string threads;
    for (const std::string& one : hang.threads) {
      if (one.find(who) != one.npos) threads += (threads.empty() ? "" : "; ") + one;
    }
    if (threads.empty()) continue;
    finding.detail +=
        fmt::format(" At {} it was there as well, and {}.", ClockText(hang.time_us), threads);
    finding.suggestion +=
        finding.suggestion.empty() ? "" : "; see whether its threads wait for each other";
    break;
  }
  return {};
}

// The end of ranks that had ended as if they were done when `first` found a process gone; nothing: none had.
std::optional<Finding> EndOfDone(const FindingContext& context,
                                 const std::vector<ProcessExit>& exits, const ProcessExit& first) {
  std::set<std::int64_t> done, others, late;
  const ProcessExit* earliest = nullptr;
  for (const ProcessExit& one : exits) {
    if (!one.rank || one.host != first.host || !one.RanBeside(first)) continue;
    // The end of one before a restart is seen after the next has begun.
    const bool was_followed = std::any_of(exits.begin(), exits.end(), [&](const ProcessExit& next) {
      return next.rank == one.rank && next.host == one.host && next.started_us > one.started_us &&
             next.RanBeside(first);
    });
    const bool is_done = !was_followed && one.exit_code == 0 && !one.raised && one.ended_us &&
                         first.raised->raised_us &&
                         *one.ended_us <= *first.raised->raised_us + kSeenAfterUs;
    if (is_done && earliest == nullptr) earliest = &one;
    if (is_done) done.insert(*one.rank);
    if (one.raised && one.raised->ComesOfPeer()) others.insert(*one.rank);
    if (one.raised && one.raised->IsTimeout()) late.insert(*one.rank);
  }
  if (earliest == nullptr) return std::nullopt;
  Finding finding;
  finding.ranks = {done.begin(), done.end()};
  const std::string who = RanksText(finding.ranks);
  const bool is_timeout = first.raised->IsTimeout();
  if (is_timeout) others = std::move(late);
  finding.title = fmt::format("{} ended with exit code 0 before {}, which {}", who,
                              RanksText({others.begin(), others.end()}),
                              is_timeout ? "waited in vain" : "lost a connection");
  finding.title[0] = 'R';
  finding.cause = "exit code 0";
  finding.detail = WhatCame(context, *earliest);
  finding.suggestion = fmt::format(
      "look for what ends {} early: fewer batches, a return or sys.exit that the others do not "
      "reach",
      who);
  finding.since_us = earliest->ended_us;
  finding.query = QueryOf(*earliest);
  return finding;
}

}  // namespace tlparse

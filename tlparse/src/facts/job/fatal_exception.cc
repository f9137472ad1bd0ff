// What an exception that nothing caught says.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "artifacts/common/text/python_traceback.h"
#include "facts/job/exits.h"
#include "facts/text/message_lines.h"
#include "facts/text/shorten.h"

namespace tlparse {

namespace {

// The first line, and the next one where it ends in a colon: "Error(s) in loading state_dict for Net:".
std::string BeginningOf(std::string_view message, bool is_quoting) {
  std::string first(message.substr(0, message.find('\n')));
  if (is_quoting || !first.ends_with(':') || first.size() == message.size()) return first;
  const std::string_view rest = message.substr(first.size() + 1);
  return fmt::format("{} {}", first, Trimmed(rest.substr(0, rest.find('\n'))));
}

// "NCCL error in: …/NCCLUtils.hpp:121, unhandled system error (run with …), NCCL version 2.21.5\nncclSystemError: …\nLast error:\n…":
// what failed and why, without the place in PyTorch. Empty: it is no such message, or says no last error.
std::string NcclError(std::string_view message) {
  constexpr std::string_view kLast = "\nLast error:\n";
  std::string_view what = Between(message, "NCCL error in: ", ", NCCL version ");
  const std::size_t at = message.find(kLast), place_end = what.find(", ");
  if (at == message.npos || place_end == what.npos) return {};
  what = what.substr(place_end + 2);
  what = what.substr(0, what.find(" (run with"));
  const std::string_view last = message.substr(at + kLast.size());
  return last.empty() ? std::string()
                      : fmt::format("NCCL {}: {}", what, Trimmed(last.substr(0, last.find('\n'))));
}

}  // namespace

std::string RaisedFrom(std::string_view traceback, std::string_view message) {
  const TracebackSummary cause = CauseOfTraceback(traceback);
  const std::string_view first = cause.message.substr(0, cause.message.find('\n'));
  if (cause.type.empty() || message.find(first) != std::string_view::npos) return {};
  return fmt::format("{}: {}", cause.type, cause.message);
}

std::string FatalException::Text() const {
  constexpr std::size_t kMost = 160;
  const TracebackSummary quoted = QuotedTraceback(message);
  const std::string nccl = NcclError(message);
  const std::string first = nccl.empty() ? BeginningOf(message, !quoted.type.empty()) : nccl;
  std::string whole = first.empty() ? type : fmt::format("{}: {}", type, first);
  const std::string inner =
      fmt::format("{}: {}", quoted.type, quoted.message.substr(0, quoted.message.find('\n')));
  // A note may have the traceback of the exception itself.
  if (!quoted.type.empty() && inner != whole) {
    // "Caught KeyError in DataLoader worker process 0."
    const std::string caught = fmt::format("Caught {} in ", quoted.type);
    const bool is_same = first.starts_with(caught) && first.ends_with('.');
    const std::string_view where =
        is_same ? std::string_view(first).substr(caught.size()) : std::string_view();
    const std::string_view worker = Between(message, "On WorkerInfo(", "):\n");
    whole = is_same           ? fmt::format("{} (in {})", inner, where.substr(0, where.size() - 1))
            : !worker.empty() ? fmt::format("{} (on worker {} of torch.distributed.rpc)", inner,
                                            worker.substr(worker.find("name=") + 5))
                              : fmt::format("{}: {}", whole, inner);
  }
  const std::string_view process = Between(message, "-- Process ", " terminated with ");
  if (!process.empty() && process.size() < 8) whole += fmt::format(" (in process {})", process);
  if (!from.empty()) whole += ", from " + from.substr(0, from.find('\n'));
  const std::size_t end = whole.rfind(". ", kMost);
  const bool is_cut = whole.size() > kMost && end != std::string::npos && end > type.size();
  return Shorten(is_cut ? std::string_view(whole).substr(0, end) : whole, kMost);
}

std::string FatalException::Rest() const {
  constexpr std::size_t kMost = 600;
  constexpr std::string_view kCut = "…";
  std::string shown = Text();
  if (shown.ends_with(kCut)) shown.resize(shown.size() - kCut.size());
  const std::string whole = Shorten(fmt::format("{}: {}", type, message), std::string::npos);
  if (!NcclError(message).empty()) return fmt::format(" The message: {}", Shorten(message, kMost));
  if (whole.size() <= shown.size() + 2 || !whole.starts_with(shown)) return "";
  std::string_view rest = std::string_view(whole).substr(shown.size());
  const bool is_at_word = rest.starts_with(' ') || rest.starts_with(". ") || rest == ".";
  if (const std::size_t word = shown.rfind(' ');
      !is_at_word && word != shown.npos && shown.size() - word < 40)
    rest = std::string_view(whole).substr(word + 1);  // it was cut within a word
  if (rest.starts_with(". ")) rest.remove_prefix(2);
  // The end of a long message often says most: which parameters, which line.
  const std::size_t tail =
      rest.size() <= kMost ? rest.npos : rest.find(' ', rest.size() - kMost / 2);
  const std::size_t head = tail == rest.npos ? rest.npos : rest.rfind(' ', kMost / 2);
  if (head == rest.npos) return fmt::format(" The message goes on: {}", Shorten(rest, kMost));
  return fmt::format(" The message goes on: {} …{}", rest.substr(0, head), rest.substr(tail));
}

// As gloo, NCCL, the store of PyTorch and vLLM word it.
bool FatalException::PointsAbove() const {
  return message.find("root cause") != std::string::npos &&
         (message.find("tack trace") != std::string::npos ||
          message.find("See root cause above") != std::string::npos);
}

bool FatalException::ComesOfPeer() const {
  if (PointsAbove()) return true;
  for (const std::string_view part :
       {"closed by peer", "reset by peer", "Broken pipe", "failed to recv, got 0 bytes",
        "remote process exit", "but received errors while waiting for send/recv from rank",
        "remote process has terminated", "connectFullMesh failed",
        "The client socket has "}) {  // …not found the store, which a rank hosts
    if (message.find(part) != std::string::npos || from.find(part) != std::string::npos)
      return true;
  }
  return false;
}

bool FatalException::IsTimeout() const {
  for (const std::string_view part : {"Timed out", "timed out", "timeout", "Timeout"}) {
    if (message.find(part) != std::string::npos || from.find(part) != std::string::npos)
      return true;
  }
  return false;
}

bool FatalException::HasWaited() const {
  // The end of a pipe has no message.
  return IsTimeout() || ComesOfPeer() || (type == "EOFError" && message.empty()) ||
         type == "Empty" || type == "BrokenProcessPool" || type == "TimeoutError" ||
         type == "BrokenPipeError" || type == "ConnectionResetError" ||
         type == "ConnectionRefusedError";
}

std::string FatalException::Place() const {
  return file.empty() ? file : fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line);
}

// "CheckpointException ranks:dict_keys([1, 3])"
std::vector<std::int64_t> FatalException::FailedRanks() const {
  std::set<std::int64_t> ranks;
  const std::string first = message.substr(0, message.find('\n'));
  std::string_view list = Between(first, "ranks:dict_keys([", "])");
  while (!list.empty()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), number);
    if (error == std::errc()) ranks.insert(number);
    list.remove_prefix(std::max<std::size_t>(1, static_cast<std::size_t>(end - list.data())));
  }
  return {ranks.begin(), ranks.end()};
}

Raisers WhoRaised(const FatalException& raised, const Exceptions& all,
                  const std::set<std::int64_t>& known) {
  std::set<std::int64_t> ranks;
  if (raised.rank) ranks.insert(*raised.rank);
  const std::string text = DigitsAsZero(raised.Text());
  for (const FatalException* const one : all) {
    const bool is_alike = one->type == raised.type && one->file == raised.file &&
                          one->line == raised.line && DigitsAsZero(one->Text()) == text;
    if (one->rank && raised.rank && is_alike && !raised.ComesOfPeer()) ranks.insert(*one->rank);
  }
  return {{ranks.begin(), ranks.end()}, ranks.size() > 1 && ranks == known};
}

std::vector<RaisedTogether> WhereTheyWaited(const Exceptions& raised) {
  std::map<std::string, RaisedTogether> places;
  for (const FatalException* const one : raised) {
    if (!one->rank || one->file.empty() || (!one->IsTimeout() && !one->ComesOfPeer())) return {};
    RaisedTogether& place = places[one->Place()];
    place.place = one->Place();
    place.ranks.push_back(*one->rank);
    if (place.first == nullptr) place.first = one;
  }
  std::vector<RaisedTogether> sorted;
  for (auto& [name, place] : places) {
    std::sort(place.ranks.begin(), place.ranks.end());
    sorted.push_back(std::move(place));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const RaisedTogether& a, const RaisedTogether& b) {
                     return a.ranks.size() > b.ranks.size();
                   });
  return sorted;
}

}  // namespace tlparse

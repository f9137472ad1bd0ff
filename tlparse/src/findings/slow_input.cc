// Programs whose steps wait for their data.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/ascii.h"
#include "facts/cost/loader_waits.h"
#include "facts/job/participants.h"
#include "findings/context.h"
#include "inputs/common/generated_code.h"

namespace tlparse {
namespace {

// Of a period. What is less passes beside the work of a step.
constexpr double kLeastOfPeriod = 0.25, kMuchOfPeriod = 0.5;
// A call whose batch is ready lasts up to some milliseconds: a step that is as short is no slow loader's.
constexpr double kReadyBatchUs = 5'000;

// The others wait for these: what they do then is said there.
std::set<std::int64_t> Stragglers(const FindingContext& context) {
  std::set<std::int64_t> ranks;
  for (const Finding& one : context.findings) {
    if (one.kind == FindingKind::kStraggler) ranks.insert(one.ranks.begin(), one.ranks.end());
  }
  return ranks;
}

std::string MillisecondsText(double us) {
  return us < 1'000'000 ? fmt::format("{:.1f} ms", us / 1e3)
                        : SecondsText(static_cast<std::int64_t>(us));
}

// "train.py(6): __getitem__": the line at which the function begins.
void SayFrame(const LoaderWait& wait, Finding& finding) {
  const std::string_view file = FileOfFrame(wait.frame);
  const std::size_t close = wait.frame.find("): ", file.size());
  if (file.empty() || close == std::string::npos) return;
  std::string_view digits = std::string_view(wait.frame).substr(file.size() + 1);
  std::int64_t line = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), line);
  if (line <= 0) return;
  finding.place = FindingPlace{std::string(file), line, {}};
  finding.detail += fmt::format(
      " {:.0f} % of the time of these calls is in {}, which begins at {}.", 100 * wait.frame_share,
      std::string_view(wait.frame).substr(close + 3), PlaceText(*finding.place));
}

void AddWait(FindingContext& context, const LoaderWait& worst,
             const std::set<std::int64_t>& ranks) {
  Finding& finding = context.Add(FindingKind::kSlowInput,
                                 worst.Share() >= kMuchOfPeriod && worst.wait_us >= kReadyBatchUs
                                     ? FindingSeverity::kWarning
                                     : FindingSeverity::kNote);
  finding.ranks = {ranks.begin(), ranks.end()};
  finding.rank_count = std::max<std::size_t>(1, ranks.size());
  std::string who = ranks.empty() ? "The program" : RanksText(finding.ranks);
  who[0] = UpperAscii(who[0]);
  const bool are_several = ranks.size() > 1;
  finding.title = fmt::format(
      "{} wait{} for {} DataLoader: {}{} of each {} ({:.0f} %){}", who, are_several ? "" : "s",
      are_several ? "their" : "its", are_several ? fmt::format("rank {} for ", *worst.rank) : "",
      MillisecondsText(worst.wait_us), MillisecondsText(worst.period_us), 100 * worst.Share(),
      worst.has_device ? ", in which no device runs anything" : "");
  finding.cause = "waits for data";
  finding.since_us = worst.start_us;
  finding.detail = fmt::format(
      "Medians of the {} periods from one call of {} to the next in {}{}. {}", worst.periods,
      worst.name, worst.path,
      worst.has_device ? fmt::format("; the call lasts {}", MillisecondsText(worst.call_us)) : "",
      worst.IsOfOwnProcess()
          ? "Batches are made in the process itself (num_workers=0), while it waits."
          : "Its workers make batches more slowly than it takes them.");
  SayFrame(worst, finding);
  finding.suggestion =
      worst.IsOfOwnProcess()
          ? "give the DataLoader num_workers, so that batches are made meanwhile, and look at what "
            "__getitem__ and collate_fn do"
          : "look at what __getitem__ and collate_fn do; more num_workers where processors are "
            "free";
  finding.query = fmt::format("SELECT * FROM annotation WHERE profile_id = {} AND name = '{}'",
                              worst.profile_id, worst.name);
}

}  // namespace

Result<void> FindSlowInput(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::vector<LoaderWait> waits,
                   LoaderWaits(context.database, context.job.run_id()));
  const std::set<std::int64_t> stragglers = Stragglers(context);
  const LoaderWait* worst = nullptr;
  std::set<std::int64_t> ranks;
  for (const LoaderWait& wait : waits) {
    if (wait.Share() < kLeastOfPeriod || !IsOfLaunch(context, wait.start_us) ||
        (wait.rank && stragglers.contains(*wait.rank)))
      continue;
    if (wait.rank) ranks.insert(*wait.rank);
    if (worst == nullptr || wait.Share() > worst->Share()) worst = &wait;
  }
  if (worst != nullptr) AddWait(context, *worst, worst->rank ? ranks : std::set<std::int64_t>());
  return {};
}

}  // namespace tlparse

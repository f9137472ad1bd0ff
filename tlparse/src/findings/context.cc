#include "findings/context.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "facts/job/job_status.h"
#include "queries/findings/context.h"

namespace tlparse {

Result<FindingContext> FindingContext::Make(Database& database, const FindingsOptions& options,
                                            const RanksAnswer& ranks) {
  FindingContext context(database, options, ranks);
  const Job& job = context.job;
  ASSIGN_OR_RETURN(context.launches, LoadLaunches(database, job.run_id()));
  ASSIGN_OR_RETURN(JobStatus states, JobStatus::Load(database, job, ranks.damage));
  context.status = std::move(states.status);
  context.has_ranks_ = states.has_ranks;
  return context;
}

FindingContext FindingContext::OfPart(const FindingContext& whole, const RanksAnswer& ranks) {
  FindingContext context(whole.database, whole.options, ranks);
  context.launches = whole.launches;
  context.live = whole.live;
  context.has_ranks_ = whole.has_ranks_;
  context.compares_configuration = false;
  for (const JobParticipant& one : context.job.participants()) {
    const RankIndex in_whole = whole.job.ParticipantOfProcess(one.process_ids.front());
    context.status.push_back(whole.StatusOf(in_whole));
  }
  return context;
}

std::string FindingContext::OfLaunch() const {
  return fmt::format(
      "process_id IN (SELECT p.id "
      "FROM process p JOIN launch n ON n.id = p.launch_id WHERE n.run_id = {} AND n.ordinal = {})",
      job.run_id(), job.launch());
}

const JobCompile* FindingContext::LastCompile(RankIndex participant) const {
  return job.FindCompile(StatusOf(participant).compile_id);
}

std::vector<RankIndex> FindingContext::All() const {
  std::vector<RankIndex> all(job.participants().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<RankIndex>(i);
  return all;
}

std::vector<RankIndex> FindingContext::Others(const std::vector<RankIndex>& who) const {
  std::vector<RankIndex> others;
  for (const RankIndex one : All()) {
    if (!std::binary_search(who.begin(), who.end(), one)) others.push_back(one);
  }
  return others;
}

bool FindingContext::AreAll(const std::vector<RankIndex>& who) const {
  return !job.is_part() && who.size() == job.participants().size() && ranks.missing_ranks.empty();
}

std::string FindingContext::WhoInside(const std::vector<RankIndex>& who) const {
  const bool is_all = AreAll(who);
  if (is_all && who.size() == 1 && !has_ranks_) return "the log";
  if (is_all && who.size() == 2) return has_ranks_ ? "both ranks" : "both logs";
  if (is_all && who.size() > 1)
    return fmt::format("all {} {}", who.size(), has_ranks_ ? "ranks" : "logs");
  std::string text = job.FormatRanks(who);
  constexpr std::size_t kMost = 60;
  if (const std::size_t comma = text.rfind(',', kMost);
      text.size() > kMost && comma != std::string::npos)
    text = fmt::format("{},… ({} in all)", text.substr(0, comma), who.size());
  const bool has_rank = std::any_of(who.begin(), who.end(), [&](RankIndex rank) {
    return job.participants()[static_cast<std::size_t>(rank)].rank.has_value();
  });
  if (!has_rank) {
    for (std::size_t at = 0; (at = text.find("log:", at)) != std::string::npos;)
      text.replace(at, 4, at == 0 ? "" : " ");
    return (who.size() == 1 ? "log " : "logs ") + text;
  }
  return fmt::format("{} {}", who.size() == 1 ? "rank" : "ranks", text);
}

std::string FindingContext::Who(const std::vector<RankIndex>& who) const {
  std::string text = WhoInside(who);
  if (!text.empty()) text[0] = UpperAscii(text[0]);
  return text;
}

void FindingContext::SetRanks(Finding& finding, const std::vector<RankIndex>& who) const {
  finding.ranks.clear();
  finding.logs.clear();
  finding.rank_count = who.size();
  const bool is_all = AreAll(who);
  for (const RankIndex index : who) {
    const JobParticipant& one = job.participants()[static_cast<std::size_t>(index)];
    if (one.rank && !is_all) finding.ranks.push_back(*one.rank);
    if (!one.rank && finding.logs.size() < 100) finding.logs.push_back(one.name);
  }
  // One rank of one is that rank.
  if (is_all && who.size() == 1) {
    const JobParticipant& one = job.participants().front();
    if (one.rank) finding.ranks.push_back(*one.rank);
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.ranks.erase(std::unique(finding.ranks.begin(), finding.ranks.end()), finding.ranks.end());
}

std::string FindingContext::SetCompiles(Finding& finding, const std::vector<std::int32_t>& slots,
                                        const std::vector<RankIndex>& who) const {
  std::string text;
  constexpr std::size_t kMost = 2, kMostCompiles = 100;
  for (std::size_t i = 0; i < slots.size() && i < kMostCompiles; ++i) {
    const JobSlot slot = job.SlotOf(slots[i], who);
    const auto first = std::find_if(
        who.begin(), who.end(), [&](RankIndex one) { return job.CompileOf(one, slots[i]) >= 0; });
    finding.compiles.push_back(first == who.end() ? slot.label
                                                  : job.SlotOf(slots[i], {*first}).label);
    if (finding.function.empty()) finding.function = slot.function;
    if (i < kMost)
      text += (i == 0 ? "" : ", ") +
              (IsWithoutId(slot.label) ? std::string(kCompileWithoutId) : slot.Title());
  }
  if (slots.size() > kMost) text += fmt::format(" and {} more", slots.size() - kMost);
  return text;
}

const std::string& FindingContext::FunctionOf(const JobCompile& compile) const {
  return FunctionOfCompile(job, compile);
}

std::string FindingContext::NameOf(const FindingPlace& place, const std::string& function) const {
  const std::string own = PlaceText(place);
  const bool has_others =
      !own.empty() && std::any_of(job.slots().begin(), job.slots().end(), [&](const JobSlot& slot) {
        return slot.function == function && PlaceText({slot.file, slot.line, {}}) != own;
      });
  return has_others ? fmt::format("{} at {}", function, own) : function;
}

std::string FindingContext::Title(const JobCompile& compile) const {
  return TitleOfCompile(job, compile);
}

Result<std::optional<FindingPlace>> UserCaller(Database& database, std::int64_t compile_id) {
  std::optional<FindingPlace> place;
  FOR_EACH_ROW(const FrameOfCompile& frame,
               KeptQuery<FrameOfCompile>(database, {.compile_id = compile_id})) {
    if (!place && frame.file && IsUserFile(*frame.file))
      place =
          FindingPlace{std::string(*frame.file), frame.line.value_or(0), std::string(frame.code)};
  }
  return place;
}

std::string SecondsText(std::int64_t us) {
  const double seconds = static_cast<double>(us) / 1e6;
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.5) return fmt::format("{:.0f} s", seconds);
  const std::int64_t whole = std::llround(seconds);
  if (whole < 7200) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string ClockText(std::int64_t us) {
  return fmt::format("{:%H:%M:%S}.{:03} UTC", fmt::gmtime(static_cast<std::time_t>(us / 1'000'000)),
                     us / 1000 % 1000);
}

void SetHint(Finding& finding, std::string hint) {
  if (std::optional<Change> change = ChangeInHint(hint))
    finding.changes.push_back(std::move(*change));
  finding.suggestion = std::move(hint);
}

std::string Times(std::size_t count) {
  return count == 1 ? "once" : count == 2 ? "twice" : fmt::format("{} times", count);
}

std::string IdList(const std::vector<std::int64_t>& ids) {
  std::string text = "(";
  for (std::size_t i = 0; i < ids.size() && i < 100; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ids[i]);
  return text + ")";
}

std::string PlaceText(const FindingPlace& place) {
  std::size_t slash = place.file.rfind('/');
  // There are many of that name: its folder shows which.
  if (place.file.ends_with("/__init__.py") && slash > 0) slash = place.file.rfind('/', slash - 1);
  const std::string name = place.file.substr(slash + 1);
  return place.line > 0 ? fmt::format("{}:{}", name, place.line) : name;
}

}  // namespace tlparse

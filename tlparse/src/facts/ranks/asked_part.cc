#include "facts/ranks/asked_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/plural.h"
#include "facts/collectives/issued_lines.h"
#include "facts/ranks/rank_notes.h"

namespace tlparse {
namespace {

using AskedRanks = std::vector<RankIndex>;

bool Overlaps(const AskedRanks& a, const AskedRanks& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](RankIndex one) { return std::find(b.begin(), b.end(), one) != b.end(); });
}

// "2 lookups that it did not make", "3 participants that differ from it".
std::string Several(std::size_t count, std::string_view what) {
  std::size_t end = what.size();
  for (const std::string_view word : {" that ", " with ", " between ", " whose ", " of ", " on "})
    end = std::min(end, what.find(word));
  std::string tail(what.substr(end));
  constexpr std::string_view kDiffers = " that differs";
  if (count != 1 && tail.starts_with(kDiffers)) tail.erase(kDiffers.size() - 1, 1);
  return Count(count, what.substr(0, end)) + tail;
}

// What is left out, by kind: "1 other class (rank 3), 2 graphs".
class LeftOut {
 public:
  template <typename Items, typename Involves>
  void Erase(Items& items, std::string_view what, const Involves& involves) {
    Add(std::erase_if(items, [&](const auto& one) { return !involves(one); }), what);
  }
  void Add(std::size_t count, std::string_view what, const std::string& who = {}) {
    if (count == 0) return;
    text_ += fmt::format("{}{}{}", text_.empty() ? "" : ", ", Several(count, what),
                         who.empty() ? "" : fmt::format(" ({})", who));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string Sentence(const std::string& who, const std::string& compared, const LeftOut& left_out) {
  std::string text = "only what involves " + who;
  if (!compared.empty()) text += ", " + compared;
  if (!left_out.text().empty()) text += "; left out: " + left_out.text();
  return text;
}

// Of classes whose first is the reference: this one and that of the members. What the members are
// compared with; `others`: the plural of what is left out has an "es".
template <typename Class>
std::string KeepClasses(const Job& job, const AskedRanks& members, std::vector<Class>& classes,
                        LeftOut& left_out) {
  if (classes.empty()) return {};
  const bool is_reference = Overlaps(classes.front().ranks, members);
  const AskedRanks reference = classes.front().ranks;
  AskedRanks others;
  std::vector<Class> kept;
  bool is_in_one = false;
  for (Class& one : classes) {
    const bool is_own = Overlaps(one.ranks, members);
    is_in_one |= is_own;
    if (is_own || kept.empty())
      kept.push_back(std::move(one));
    else
      others.insert(others.end(), one.ranks.begin(), one.ranks.end());
  }
  const std::size_t count = classes.size() - kept.size();
  classes = std::move(kept);
  std::sort(others.begin(), others.end());
  if (count > 0)
    left_out.Add(
        others.size(),
        is_reference ? "participant that differs from it" : "other participant that differs",
        job.NameRanks(others));
  if (!is_in_one) {
    classes.clear();
    return "which is in none of the classes that are compared";
  }
  if (!is_reference) return "compared with " + job.NameRanks(reference);
  AskedRanks alike = reference;
  std::erase_if(alike, [&](RankIndex rank) {
    return std::find(members.begin(), members.end(), rank) != members.end();
  });
  return alike.empty() ? std::string() : "which is like " + job.NameRanks(alike);
}

std::string NoLog(const AskedParticipant& asked) {
  return fmt::format("only what involves {}, of which there is no log: it is compared with none",
                     asked.Text());
}

// Indices into IssuedJob::ranks.
std::vector<std::size_t> IssuingOf(const AskedParticipant& asked, const Job& job,
                                   const IssuedJob& issued) {
  std::vector<std::int64_t> process_ids;
  for (const RankIndex member : asked.In(job)) {
    const auto& ids = job.participants()[static_cast<std::size_t>(member)].process_ids;
    process_ids.insert(process_ids.end(), ids.begin(), ids.end());
  }
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < issued.ranks.size(); ++i) {
    const IssuingRank& one = issued.ranks[i];
    const bool is_process = one.process_id && std::find(process_ids.begin(), process_ids.end(),
                                                        *one.process_id) != process_ids.end();
    if (asked.pid ? is_process : one.rank == asked.rank) found.push_back(i);
  }
  return found;
}

bool Has(const std::vector<std::size_t>& all, const std::vector<std::size_t>& some) {
  return std::any_of(some.begin(), some.end(), [&](std::size_t one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  });
}

bool IsMember(const IssuedGroup& group, const IssuedJob& issued,
              const std::vector<std::size_t>& own) {
  return Has(group.ranks, own) || Has(group.unknown, own) ||
         std::any_of(own.begin(), own.end(), [&](std::size_t one) {
           const std::optional<std::int64_t>& rank = issued.ranks[one].rank;
           return rank && std::find(group.members.begin(), group.members.end(), *rank) !=
                              group.members.end();
         });
}

void KeepIssued(const AskedParticipant& asked, CollectiveAnswer& answer, LeftOut& left_out) {
  IssuedJob& issued = answer.issued;
  const std::vector<std::size_t> own = IssuingOf(asked, answer.job, issued);
  issued.only = own;
  issued.is_of_some = true;
  std::vector<std::string> groups;
  for (const IssuedGroup& group : issued.groups)
    if (IsMember(group, issued, own)) groups.push_back(group.name);
  left_out.Erase(issued.groups, "group that it is not in",
                 [&](const IssuedGroup& one) { return IsMember(one, issued, own); });
  left_out.Erase(answer.problems, "problem of others", [&](const CollectiveFinding& one) {
    return one.ranks.empty() || Has(one.ranks, own) || Has(one.waiting, own) ||
           std::find(groups.begin(), groups.end(), one.group) != groups.end();
  });
  std::erase_if(answer.progress, [&](const GraphProgress& one) {
    return std::find(own.begin(), own.end(), one.rank) == own.end();
  });
  const auto is_own_rank = [&](std::int64_t rank) {
    return std::any_of(own.begin(), own.end(),
                       [&](std::size_t one) { return issued.ranks[one].rank == rank; });
  };
  std::erase_if(issued.cut_dumps, [&](const CutDump& one) {
    return std::none_of(own.begin(), own.end(),
                        [&](std::size_t rank) { return issued.ranks[rank].name == one.rank; });
  });
  std::erase_if(issued.profiled_traffic.ranks,
                [&](const ProfiledMessages& one) { return !is_own_rank(one.rank); });
  std::erase_if(issued.profiled_traffic.pairs, [&](const ProfiledPair& one) {
    return !is_own_rank(one.from) && !is_own_rank(one.to);
  });
}

}  // namespace

std::string KeepAsked(const AskedParticipant& asked, RanksAnswer& answer) {
  if (!asked.IsGiven()) return {};
  const Job& job = answer.job();
  const AskedRanks members = asked.In(job);
  std::erase_if(answer.missing_ranks, [&](std::int64_t rank) { return rank != asked.rank; });
  LeftOut left_out;
  const std::string compared = KeepClasses(job, members, answer.classes, left_out);
  const auto is_other = [&](RankIndex rank) {
    return std::find(members.begin(), members.end(), rank) == members.end();
  };
  if (answer.slowest && is_other(answer.slowest->rank)) answer.slowest.reset();
  std::erase_if(answer.extra_logs, is_other);
  std::erase_if(answer.without_compiles, is_other);
  LeftOut unsaid;
  unsaid.Erase(answer.cache.findings, "",
               [&](const CacheFinding& one) { return Overlaps(one.Sides(), members); });
  KeepClasses(job, members, answer.collectives.classes, unsaid);
  const std::size_t notes = answer.notes.size();
  answer.notes.clear();
  AddNotes(answer);
  left_out.Add(notes - std::min(notes, answer.notes.size()), "note on others");
  return members.empty() ? NoLog(asked) : Sentence(asked.Text(), compared, left_out);
}

Result<std::string> KeepAsked(Database&, const AskedParticipant& asked, CollectiveAnswer& answer) {
  if (!asked.IsGiven()) return std::string();
  const AskedRanks members = asked.In(answer.job);
  LeftOut left_out;
  const std::string compared = KeepClasses(answer.job, members, answer.classes, left_out);
  std::erase_if(answer.parity,
                [&](const CollectiveParity& one) { return !Overlaps(one.ranks, members); });
  std::erase_if(answer.from_code_only, [&](RankIndex rank) {
    return std::find(members.begin(), members.end(), rank) == members.end();
  });
  KeepIssued(asked, answer, left_out);
  return Sentence(asked.Text(), members.empty() ? std::string() : compared, left_out);
}

Result<std::string> KeepAsked(Database&, const AskedParticipant& asked, ExecutionAnswer& answer) {
  if (!asked.IsGiven()) return std::string();
  const AskedRanks members = asked.In(answer.job);
  if (members.empty()) {
    answer.classes.clear();
    answer.runtimes.clear();
    answer.tensors.clear();
    answer.without_order.clear();
    return NoLog(asked);
  }
  LeftOut left_out;
  std::erase_if(answer.without_order, [&](RankIndex rank) {
    return std::find(members.begin(), members.end(), rank) == members.end();
  });
  const std::string compared = KeepClasses(answer.job, members, answer.classes, left_out);
  left_out.Erase(answer.runtimes, "graph whose estimates are not its least or most",
                 [&](const RuntimeSpread& one) {
                   return Overlaps(one.lowest_ranks, members) ||
                          Overlaps(one.highest_ranks, members);
                 });
  left_out.Erase(answer.tensors, "graph whose outputs differ on others",
                 [&](const TensorDivergence& one) {
                   return Overlaps(one.ranks, members) || Overlaps(one.against, members);
                 });
  return Sentence(asked.Text(), compared, left_out);
}

std::string KeepAsked(const AskedParticipant& asked, AutotuneAnswer& answer) {
  if (!asked.IsGiven()) return {};
  const AskedRanks members = asked.In(answer.job);
  answer.members = members;
  for (TunedKernel& kernel : answer.kernels)
    std::erase_if(kernel.on_ranks, [&](const TunedChoice& one) {
      return std::find(members.begin(), members.end(), one.rank) == members.end();
    });
  LeftOut left_out;
  left_out.Erase(answer.kernels, "kernel that it did not tune",
                 [](const TunedKernel& one) { return !one.on_ranks.empty(); });
  left_out.Erase(answer.failed, "choice that failed on others",
                 [&](const FailedChoice& one) { return Overlaps(one.ranks, members); });
  return members.empty() ? NoLog(asked) : Sentence(asked.Text(), {}, left_out);
}

Result<std::string> KeepAsked(Database& database, const AskedParticipant& asked,
                              CacheAnswer& answer) {
  if (!asked.IsGiven()) return std::string();
  const AskedRanks members = asked.In(answer.job);
  LeftOut left_out;
  left_out.Erase(answer.findings, "difference between others",
                 [&](const CacheFinding& one) { return Overlaps(one.Sides(), members); });
  left_out.Erase(answer.same_key_codes, "key with two codes on others",
                 [&](const SameKeyCode& one) {
                   return Overlaps(one.ranks, members) || Overlaps(one.other_ranks, members);
                 });
  left_out.Erase(
      answer.lookup_answers, "lookup that it did not make", [&](const CacheLookupAnswer& one) {
        return Overlaps(one.without_lookup, members) || Overlaps(one.unfinished, members) ||
               std::any_of(one.classes.begin(), one.classes.end(),
                           [&](const CacheClass& of) { return Overlaps(of.ranks, members); });
      });
  PrecompiledCode& code = answer.precompiled;
  std::erase_if(code.loaded_on, [&](RankIndex rank) { return !Overlaps({rank}, members); });
  code.loaded = code.loaded_on.size();
  left_out.Erase(code.entries, "precompiled entry of others",
                 [&](const SavedEntry& one) { return Overlaps(one.ranks, members); });
  left_out.Erase(code.different, "precompiled entry that differs on others",
                 [&](const DifferentEntry& one) {
                   return Overlaps(one.ranks, members) || Overlaps(one.other_ranks, members);
                 });
  left_out.Erase(code.again, "function that others compiled again",
                 [&](const CompiledAgain& one) { return Overlaps(one.ranks, members); });
  ASSIGN_OR_RETURN(answer.economics, SumEconomics(database, answer.lookups, &members));
  if (!members.empty()) {
    ASSIGN_OR_RETURN(answer.closest_keys, FindClosestKeys(database, answer, members.front()));
  }
  return members.empty() ? NoLog(asked) : Sentence(asked.Text(), {}, left_out);
}

}  // namespace tlparse

#include "facts/compiles/recompile_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "facts/compiles/advice.h"
#include "facts/text/guard_text.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

// Each module has to be compiled; more than half of the recompile limit, which is 8, come near it.
constexpr std::size_t kMostModules = 5;

// What the guards compared, with its values, and how many recompiles it had a part in.
struct Subject {
  std::string name;
  std::string at;  // its line, where the name is one of generated code
  std::vector<std::string> values = {};
  std::size_t count = 0;
  std::size_t newest = 0;       // of these, where the newest entry failed on it
  std::size_t last = SIZE_MAX;  // the recompile that was counted last

  void Add(const std::string& value) {
    if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end())
      values.push_back(value);
  }
};

std::vector<Subject>::iterator Find(std::vector<Subject>& subjects, const RecompileReason& reason) {
  return std::find_if(subjects.begin(), subjects.end(), [&](const Subject& one) {
    return one.name == reason.subject && one.at == reason.at;
  });
}

// Sizes that vary are one thing to change, unless each is to be compiled for itself.
std::string AdviceKeyOf(const Recompile& one, bool has_fixed) {
  const RecompileReason& reason = one.entries.front().reason;
  const bool is_size = SizeIn(reason.subject) && !has_fixed && reason.hint.empty() &&
                       reason.unbacked_hint.empty() &&
                       reason.subject.find("___stack") == std::string::npos;
  return is_size ? "size" : reason.subject;
}

}  // namespace

void PutTellingFirst(std::vector<Recompile>& recompiles) {
  ComparedValues compared;
  for (const Recompile& one : recompiles) {
    for (const FailedEntry& entry : one.entries) compared.Add(entry.reason);
  }
  for (Recompile& one : recompiles) {
    std::vector<const RecompileReason*> reasons;
    for (const FailedEntry& entry : one.entries) reasons.push_back(&entry.reason);
    const auto telling =
        one.entries.begin() + static_cast<std::ptrdiff_t>(compared.Telling(reasons));
    if (telling != one.entries.begin()) std::rotate(one.entries.begin(), telling, telling + 1);
  }
}

bool IsOfCall(const RecompileReason& reason) {
  static constexpr std::array<std::string_view, 6> kSubjects = {
      "type of args[0]", "type of self", "len(args)", "len(kwargs)", "not args", "not kwargs"};
  return std::find(kSubjects.begin(), kSubjects.end(), reason.subject) != kSubjects.end();
}

bool IsWanted(const Recompile& one) {
  if (one.entries.empty() || one.is_refused) return false;
  if (one.is_of_fixed_size || one.is_of_module || one.is_of_call) return true;
  const std::string& guard = one.entries.front().reason.guard;
  return guard.find("GLOBAL_STATE changed: grad_mode") != std::string::npos ||
         guard.ends_with(".training");
}

bool IsWantedAt(const std::vector<Recompile>& recompiles, std::size_t at) {
  if (IsWanted(recompiles[at])) return true;
  if (recompiles[at].entries.empty() || recompiles[at].is_refused) return false;
  const std::string& guard = recompiles[at].entries.front().reason.guard;
  bool has_other_mode = false;
  for (std::size_t i = at; i-- > 0;) {
    if (IsWanted(recompiles[i])) has_other_mode = true;
    if (has_other_mode && !recompiles[i].entries.empty() &&
        recompiles[i].entries.front().reason.guard == guard)
      return true;
  }
  return false;
}

std::size_t MostOfOneSubject(const std::vector<Recompile>& recompiles) {
  std::map<std::string, std::size_t> counts;
  std::map<std::string, std::set<std::string>> sizes;  // of modules
  std::size_t most = 0;
  for (std::size_t i = 0; i < recompiles.size(); ++i) {
    const Recompile& one = recompiles[i];
    if (one.entries.empty() || one.is_refused) continue;
    const RecompileReason& reason = one.entries.front().reason;
    if (one.is_of_module) {
      std::set<std::string>& known = sizes[reason.subject];
      known.insert({reason.value, reason.actual});
      if (known.size() > kMostModules) most = std::max(most, known.size() - 1);
    }
    if (IsWantedAt(recompiles, i)) continue;
    most = std::max(most, ++counts[reason.subject + '\n' + reason.at]);
  }
  return most;
}

bool AreRepeated(const std::vector<Recompile>& recompiles, std::size_t count) {
  constexpr std::size_t kFewOfOne = 2, kFew = 4;
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < recompiles.size(); ++i) wanted += IsWantedAt(recompiles, i) ? 1 : 0;
  return count > kFew + wanted || MostOfOneSubject(recompiles) > kFewOfOne;
}

std::string Varied(const std::vector<Recompile>& recompiles) {
  std::vector<Subject> subjects;
  for (std::size_t i = 0; i < recompiles.size(); ++i) {
    const std::vector<FailedEntry>& entries = recompiles[i].entries;
    for (const FailedEntry& entry : entries) {
      auto found = Find(subjects, entry.reason);
      if (found == subjects.end())
        found =
            subjects.insert(subjects.end(), {.name = entry.reason.subject, .at = entry.reason.at});
      if (found->last != i) ++found->count, found->last = i;
      if (&entry == &entries.front()) ++found->newest;
    }
    // In the order in which they were compiled: the oldest entry first, what fails them all last.
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
      Find(subjects, entry->reason)->Add(entry->reason.value);
    for (const FailedEntry& entry : entries) Find(subjects, entry.reason)->Add(entry.reason.actual);
  }
  std::stable_sort(subjects.begin(), subjects.end(), [](const Subject& a, const Subject& b) {
    return std::pair(a.newest, a.count) > std::pair(b.newest, b.count);
  });
  std::string text;
  constexpr std::size_t kMostSubjects = 3, kMostValues = 6;
  for (std::size_t i = 0; i < subjects.size() && i < kMostSubjects; ++i) {
    text += (i == 0 ? "" : "; ") + Shorten(subjects[i].name, 120);
    const std::vector<std::string>& values = subjects[i].values;
    for (std::size_t j = 0; j < values.size() && j < kMostValues; ++j)
      text += (j == 0 ? ": " : ", ") + Shorten(values[j], 60);
    if (values.size() > kMostValues) text += ", …";
    if (!subjects[i].at.empty() && HasGeneratedNames(subjects[i].name))
      text += " at: " + subjects[i].at;
  }
  if (subjects.size() > kMostSubjects)
    text += fmt::format("; and {} more", subjects.size() - kMostSubjects);
  return text;
}

const FailedEntry* EntryOfMost(const std::vector<Recompile>& recompiles) {
  std::map<std::string, std::size_t> counts;
  const FailedEntry* most = nullptr;
  const auto count = [&](const FailedEntry& entry) -> std::size_t& {
    return counts[entry.reason.subject + "\n" + entry.reason.at];
  };
  for (const Recompile& one : recompiles) {
    if (!one.entries.empty()) ++count(one.entries.front());
  }
  for (const Recompile& one : recompiles) {
    if (one.entries.empty() || one.entries.front().file.empty()) continue;
    if (most == nullptr || count(one.entries.front()) > count(*most)) most = &one.entries.front();
  }
  return most;
}

// What to try against the subject on which the newest entry failed in most recompiles, among those
// that advice is known for; with how many they are, if not all. What the limit refused is none. An
// older entry may have failed on what the newest one has made dynamic since.
Advice AdviceFor(const std::vector<Recompile>& recompiles) {
  struct OfSubject {
    Advice advice;
    std::size_t all = 0, made = 0;
    std::vector<ChangedSize> sizes = {};
  };
  std::map<std::string, OfSubject> known;
  const bool has_fixed = std::any_of(recompiles.begin(), recompiles.end(),
                                     [](const Recompile& one) { return one.is_of_fixed_size; });
  std::size_t made = 0;
  bool is_special_size = false;
  std::string hint;  // against a specialization: no later compile lifts it
  std::vector<const Recompile*> with_subject;
  for (const Recompile& one : recompiles) {
    for (const FailedEntry& entry : one.entries) {
      if (hint.empty()) hint = entry.reason.unbacked_hint;
    }
    if (one.entries.empty()) continue;
    const RecompileReason& reason = one.entries.front().reason;
    if (!one.is_refused) ++made;
    if (!one.is_of_fixed_size && IsOfSizeZeroOrOne(reason)) {
      is_special_size = true;
      continue;
    }
    // Its size cannot vary within a module; of a parameter PyTorch has a hint.
    if (one.is_of_module && reason.hint.empty()) continue;
    with_subject.push_back(&one);
    OfSubject& subject = known[AdviceKeyOf(one, has_fixed)];
    if (const auto own = SizeIn(reason.subject)) subject.sizes.push_back(*own);
    subject.sizes.insert(subject.sizes.end(), one.changed_sizes.begin(), one.changed_sizes.end());
    ++subject.all;
    if (!one.is_refused) ++subject.made;
  }
  const OfSubject* best = nullptr;
  for (const Recompile* const one : with_subject) {
    const RecompileReason& reason = one->entries.front().reason;
    OfSubject& of = known[AdviceKeyOf(*one, has_fixed)];
    if (of.advice.text.empty())
      of.advice = one->is_of_fixed_size ? AdviceForFixedSize(reason.subject)
                                        : AdviceForRecompiles(reason, of.all, of.sizes);
    if (!of.advice.text.empty() && (best == nullptr || of.all > best->all)) best = &of;
  }
  if (best == nullptr && hint.empty() && is_special_size)
    return {.remark =
                "Sizes 0 and 1 are compiled apart from others: mark_dynamic does not change "
                "that."};
  if (best == nullptr) return AdviceOfHint(hint);
  Advice advice = best->advice;
  if (best->all != recompiles.size() && made != 0 && best->made != 0)
    advice.text += fmt::format(" (against {} of the {} recompiles)", best->made, made);
  if (!hint.empty() && hint != best->advice.text) advice.text += "; " + hint;
  return advice;
}

namespace {

// Whether all entries failed on one thing.
bool HaveOneSubject(const std::vector<Recompile>& recompiles) {
  std::set<std::string> subjects;
  for (const Recompile& one : recompiles) {
    for (const FailedEntry& entry : one.entries)
      subjects.insert(entry.reason.subject + "\n" + entry.reason.at);
  }
  return subjects.size() == 1;
}

}  // namespace

// Where older entries failed on the same as a newer one, with values of their own, the newer one is
// shown; of many recompiles for one thing, whose values are shown elsewhere, the first.
std::string FailedGuards(const std::vector<Recompile>& recompiles) {
  constexpr std::size_t kMost = 5, kMostOfOne = 3;
  if (recompiles.size() > kMostOfOne && HaveOneSubject(recompiles))
    return fmt::format("{}; and {} more on the same", FailedGuards({recompiles.front()}),
                       recompiles.size() - 1);
  std::string text;
  std::size_t shown = 0, left_out = 0;
  for (const Recompile& one : recompiles) {
    std::vector<std::pair<std::string, std::string>> guards;  // guard, labels
    std::set<std::string> subjects;
    for (const FailedEntry& entry : one.entries) {
      const std::string guard = Shorten(entry.reason.text, 160);
      auto found = std::find_if(guards.begin(), guards.end(),
                                [&](const auto& known) { return known.first == guard; });
      if (found == guards.end()) {
        if (!subjects.insert(entry.reason.subject + "\n" + entry.reason.at).second) continue;
        found = guards.insert(guards.end(), {guard, {}});
      }
      if (!entry.label.empty()) found->second += (found->second.empty() ? "" : ",") + entry.label;
    }
    for (std::size_t i = 0; i < guards.size(); ++i) {
      if (++shown > kMost) {
        ++left_out;
        continue;
      }
      const auto& [guard, labels] = guards[i];
      const std::string label = i == 0 ? one.label : "";  // empty: the text has none
      text += fmt::format("{}{}{}{}{}{}", text.empty() ? "" : "; ", label,
                          !label.empty() && !labels.empty() ? " " : "",
                          labels.empty() ? "" : "after " + labels,
                          i > 0 || !label.empty() || !labels.empty() ? ": " : "", guard);
    }
  }
  if (left_out > 0) text += fmt::format("; and {} more", left_out);
  return text;
}

}  // namespace tlparse

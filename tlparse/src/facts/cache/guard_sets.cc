#include "facts/cache/guard_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "facts/text/guard_text.h"
#include "facts/text/shorten.h"
#include "queries/facts/cache/guard_sets.h"

namespace tlparse {
namespace {

constexpr std::string_view kTensorMatch = "TENSOR_MATCH";

// The arguments of "check_tensor(L['x'], Tensor, …, size=[4, 8])", at commas outside of brackets.
std::vector<std::string_view> ArgumentsOf(std::string_view call) {
  std::vector<std::string_view> arguments;
  const std::size_t open = call.find('('), close = call.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return arguments;
  std::size_t begin = open + 1;
  int depth = 0;
  for (std::size_t i = begin; i <= close; ++i) {
    const char c = call[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ',' && depth == 0) || i == close) {
      std::string_view one = call.substr(begin, i - begin);
      while (one.starts_with(' ')) one.remove_prefix(1);
      arguments.push_back(one);
      begin = i + 1;
    }
    if (c == ')' || c == ']' || c == '}') --depth;
  }
  return arguments;
}

// Two checks of one tensor: the properties that differ.
GuardChange TensorChange(const OneGuard& a, const OneGuard& b) {
  const std::vector<std::string_view> old_ones = ArgumentsOf(a.expression),
                                      new_ones = ArgumentsOf(b.expression);
  if (old_ones.size() != new_ones.size()) return {a.text, b.text};
  std::string old_text, new_text;
  for (std::size_t i = 0; i < old_ones.size(); ++i) {
    if (old_ones[i] == new_ones[i]) continue;
    old_text += fmt::format("{}{}", old_text.empty() ? "" : ", ", old_ones[i]);
    new_text += fmt::format("{}{}", new_text.empty() ? "" : ", ", new_ones[i]);
  }
  if (old_text.empty()) return {a.text, b.text};
  const std::string of = ReadableSource(a.subject);
  return {fmt::format("{} of {}", old_text, of), fmt::format("{} of {}", new_text, of)};
}

// Those of `of` whose key `other` lacks.
std::vector<const OneGuard*> Without(const std::vector<OneGuard>& of,
                                     const std::vector<OneGuard>& other) {
  std::vector<const OneGuard*> result;
  for (const OneGuard& one : of) {
    const auto found =
        std::lower_bound(other.begin(), other.end(), one,
                         [](const OneGuard& a, const OneGuard& b) { return a.key < b.key; });
    if (found == other.end() || found->key != one.key) result.push_back(&one);
  }
  return result;
}

}  // namespace

Result<const std::vector<OneGuard>*> GuardSets::Of(std::int64_t content_id) {
  const auto [found, is_new] = known_.try_emplace(content_id);
  if (!is_new) return &found->second;
  std::vector<OneGuard>& guards = found->second;
  FOR_EACH_ROW(const GuardOfContent& row,
               KeptQuery<GuardOfContent>(*database_, {.content_id = content_id})) {
    OneGuard& one = guards.emplace_back();
    one.key = GuardKey(row.expression);
    one.text = ReadableGuard(row.expression, row.user_code, row.user_file, row.user_line).Whole();
    one.kind = row.kind;
    one.subject = one.kind == kTensorMatch ? row.source : GuardSubject(one.key);
    one.expression = row.expression;
  }
  std::stable_sort(guards.begin(), guards.end(),
                   [](const OneGuard& a, const OneGuard& b) { return a.key < b.key; });
  return &guards;
}

Result<std::int64_t> GuardSets::ClassOf(std::int64_t content_id) {
  const auto known = class_of_.find(content_id);
  if (known != class_of_.end()) return known->second;
  ASSIGN_OR_RETURN(const std::vector<OneGuard>* guards, Of(content_id));
  std::string keys;
  for (std::size_t i = 0; i < guards->size(); ++i) {
    if (i > 0 && (*guards)[i].key == (*guards)[i - 1].key) continue;
    keys += (*guards)[i].key;
    keys += '\n';
  }
  const std::int64_t number =
      classes_.try_emplace(std::move(keys), static_cast<std::int64_t>(classes_.size()))
          .first->second;
  class_of_.emplace(content_id, number);
  return number;
}

Result<std::vector<GuardChange>> GuardSets::Changes(std::int64_t a, std::int64_t b) {
  ASSIGN_OR_RETURN(const std::vector<OneGuard>* old_ones, Of(a));
  ASSIGN_OR_RETURN(const std::vector<OneGuard>* new_ones, Of(b));
  std::vector<const OneGuard*> gone = Without(*old_ones, *new_ones);
  std::vector<GuardChange> changes;
  const auto add = [&](GuardChange change) {
    if (std::find(changes.begin(), changes.end(), change) == changes.end())
      changes.push_back(std::move(change));
  };
  std::vector<const OneGuard*> added;
  for (const OneGuard* one : Without(*new_ones, *old_ones)) {
    const auto found = std::find_if(gone.begin(), gone.end(), [&](const OneGuard* old_one) {
      return !one->subject.empty() && old_one->kind == one->kind &&
             old_one->subject == one->subject;
    });
    if (found == gone.end()) {
      added.push_back(one);
      continue;
    }
    add(one->kind == kTensorMatch ? TensorChange(**found, *one)
                                  : GuardChange{(*found)->text, one->text});
    gone.erase(found);
  }
  for (const OneGuard* one : gone) add({one->text, {}});
  for (const OneGuard* one : added) add({{}, one->text});
  return changes;
}

std::string ChangesText(const std::vector<GuardChange>& changes, std::string_view a,
                        std::string_view b, std::size_t most) {
  constexpr std::size_t kMostBytes = 160;
  std::string text;
  for (std::size_t i = 0; i < changes.size() && i < most; ++i) {
    const std::string of_a = Shorten(changes[i].a, kMostBytes),
                      of_b = Shorten(changes[i].b, kMostBytes);
    if (i > 0) text += "; ";
    text += of_b.empty()   ? fmt::format("{} alone needs {}", a, of_a)
            : of_a.empty() ? fmt::format("{} alone needs {}", b, of_b)
                           : fmt::format("{} needs {}, {} {}", a, of_a, b, of_b);
  }
  if (changes.size() > most) text += fmt::format("; {} more", changes.size() - most);
  return text;
}

}  // namespace tlparse

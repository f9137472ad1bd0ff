#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "analysis/collectives/collectives.h"
#include "analysis/diff/sequence_diff.h"

namespace tlparse {
namespace {

bool Agree(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || a == b;
}  // unknown agrees with all

bool SameButGroup(const CollectiveItem& a, const CollectiveItem& b) {
  return a.is_wait == b.is_wait && Agree(a.op, b.op) && Agree(a.shape, b.shape) &&
         Agree(a.dtype, b.dtype) &&
         (a.arguments == b.arguments || a.shape.empty() || b.shape.empty());
}

// What sets two collectives at one place apart: the most telling difference.
MismatchKind KindOf(const CollectiveItem& a, const CollectiveItem& b) {
  if (!Agree(a.op, b.op) || a.is_wait != b.is_wait) return MismatchKind::kType;
  if (!Agree(a.dtype, b.dtype)) return MismatchKind::kDtype;
  if (!Agree(a.shape, b.shape)) return MismatchKind::kSize;
  if (a.arguments != b.arguments) return MismatchKind::kSyntax;
  return MismatchKind::kGroup;
}

CollectiveMismatch Pair(MismatchKind kind, const std::vector<CollectiveItem>& reference,
                        std::int64_t a, const std::vector<CollectiveItem>& other, std::int64_t b) {
  CollectiveMismatch mismatch;
  mismatch.kind = kind;
  mismatch.against_ordinal = a;
  mismatch.ordinal = b;
  if (a >= 0) mismatch.against_item = reference[static_cast<std::size_t>(a)].Title();
  if (b >= 0) mismatch.item = other[static_cast<std::size_t>(b)].Title();
  return mismatch;
}

// The same collective at two places, with the collectives that are in each other's place.
CollectiveMismatch Moved(const std::vector<CollectiveItem>& reference, std::size_t a,
                         const std::vector<CollectiveItem>& other, std::size_t b) {
  CollectiveMismatch mismatch = Pair(MismatchKind::kOrder, reference, static_cast<std::int64_t>(a),
                                     other, static_cast<std::int64_t>(b));
  if (a < other.size()) mismatch.instead = other[a].Title();
  if (b < reference.size()) mismatch.against_instead = reference[b].Title();
  return mismatch;
}

std::string TitleOrNone(const std::string& item) { return item.empty() ? "(none)" : item; }

}  // namespace

std::string CollectiveMismatch::Text() const {
  if (kind != MismatchKind::kOrder)
    return fmt::format("{} → {}", TitleOrNone(against_item), TitleOrNone(item));
  const std::string op = item.substr(0, item.find(' '));
  return fmt::format("#{} {} → {}; {} is #{} here", against_ordinal + 1, against_item,
                     TitleOrNone(instead), op, ordinal + 1);
}

std::string_view Name(MismatchKind kind) {
  static constexpr std::array<std::string_view, 8> kNames = {"type",  "size",  "dtype",   "syntax",
                                                             "group", "order", "missing", "state"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string CollectiveItem::Title() const {
  std::string title = op.empty() ? "(collective without name)" : op;
  if (!shape.empty()) title += ' ' + shape;
  if (!dtype.empty()) title += ' ' + dtype;
  if (!arguments.empty()) title += " (" + arguments + ')';
  if (!group.empty()) title += " group " + group;
  return title;
}

std::vector<CollectiveMismatch> CompareCollectives(const std::vector<CollectiveItem>& reference,
                                                   const std::vector<CollectiveItem>& other,
                                                   std::string& renamed_groups) {
  const std::vector<EditStep> script = AlignSequences(
      reference.size(), other.size(),
      [&](std::size_t i, std::size_t j) { return SameButGroup(reference[i], other[j]); });
  // A group may have another name on ranks of another subgroup: if one renaming explains all names,
  // they are no difference.
  std::map<std::string, std::string> to, from;
  bool is_renaming = true;
  for (const EditStep& step : script) {
    if (step.kind != EditStep::Kind::kKeep) continue;
    const std::string& a = reference[step.a].group;
    const std::string& b = other[step.b].group;
    if (a.empty() || b.empty()) continue;
    is_renaming &=
        to.try_emplace(a, b).first->second == b && from.try_emplace(b, a).first->second == a;
  }
  if (is_renaming) {
    for (const auto& [a, b] : to) {
      if (a != b)
        renamed_groups += fmt::format("{}{} → {}", renamed_groups.empty() ? "" : ", ", a, b);
    }
  }

  std::vector<char> is_matched(script.size());
  std::vector<std::pair<std::size_t, CollectiveMismatch>> found;  // by place in the script
  for (std::size_t i = 0; i < script.size(); ++i) {
    const EditStep& step = script[i];
    if (step.kind == EditStep::Kind::kKeep) {
      const CollectiveItem& a = reference[step.a];
      const CollectiveItem& b = other[step.b];
      if (is_renaming || Agree(a.group, b.group)) continue;
      found.emplace_back(i, Pair(MismatchKind::kGroup, reference, static_cast<std::int64_t>(step.a),
                                 other, static_cast<std::int64_t>(step.b)));
    }
    if (step.kind != EditStep::Kind::kDelete || reference[step.a].is_wait) continue;
    // The same collective elsewhere: order.
    for (std::size_t j = 0; j < script.size(); ++j) {
      if (script[j].kind != EditStep::Kind::kInsert || is_matched[j] != 0 ||
          !SameButGroup(reference[step.a], other[script[j].b]))
        continue;
      is_matched[i] = is_matched[j] = 1;
      found.emplace_back(std::min(i, j), Moved(reference, step.a, other, script[j].b));
      break;
    }
  }
  // What is left: side by side within one gap, the rest on one side only.
  for (std::size_t begin = 0; begin < script.size();) {
    if (script[begin].kind == EditStep::Kind::kKeep) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    std::vector<std::size_t> deleted, inserted;
    for (; end < script.size() && script[end].kind != EditStep::Kind::kKeep; ++end) {
      if (is_matched[end] == 0)
        (script[end].kind == EditStep::Kind::kDelete ? deleted : inserted).push_back(end);
    }
    // Of the same op where there is one
    const auto is_partner = [&](std::size_t d, std::size_t i) {
      return Agree(reference[script[d].a].op, other[script[i].b].op);
    };
    std::vector<char> is_used(inserted.size());
    for (const std::size_t d : deleted) {
      std::size_t partner = inserted.size();
      for (std::size_t k = 0; k < inserted.size() && partner == inserted.size(); ++k) {
        if (is_used[k] == 0 && is_partner(d, inserted[k])) partner = k;
      }
      const auto a = static_cast<std::int64_t>(script[d].a);
      const bool is_alone = deleted.size() == 1 && inserted.size() == 1;
      if (partner == inserted.size() && is_alone &&
          reference[script[d].a].is_wait == other[script[inserted[0]].b].is_wait)
        partner = 0;
      if (partner == inserted.size()) {
        found.emplace_back(d, Pair(MismatchKind::kMissing, reference, a, other, -1));
        continue;
      }
      is_used[partner] = 1;
      const EditStep& step = script[inserted[partner]];
      found.emplace_back(d, Pair(KindOf(reference[script[d].a], other[step.b]), reference, a, other,
                                 static_cast<std::int64_t>(step.b)));
    }
    for (std::size_t k = 0; k < inserted.size(); ++k) {
      if (is_used[k] != 0) continue;
      found.emplace_back(inserted[k], Pair(MismatchKind::kMissing, reference, -1, other,
                                           static_cast<std::int64_t>(script[inserted[k]].b)));
    }
    begin = end;
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<CollectiveMismatch> mismatches;
  for (auto& [place, mismatch] : found) mismatches.push_back(std::move(mismatch));
  return mismatches;
}

}  // namespace tlparse

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "facts/collectives/collectives.h"
#include "facts/text/sequence_diff.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostMismatches = 200;
// Where more steps of a script are no agreement, differences are paired by their place alone: to
// look for each one's like takes the square of their number.
constexpr std::size_t kMostSearched = 4096;

bool Agree(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || a == b;
}  // unknown agrees with all

// What sets two collectives at one place apart: the most telling difference.
MismatchKind KindOf(const CollectiveItem& a, const CollectiveItem& b) {
  if (!Agree(a.op, b.op) || a.is_wait != b.is_wait) return MismatchKind::kType;
  if (!Agree(a.dtype, b.dtype)) return MismatchKind::kDtype;
  if (!Agree(a.shape, b.shape)) return MismatchKind::kSize;
  if (a.arguments != b.arguments) return MismatchKind::kSyntax;
  return MismatchKind::kGroup;
}

class Comparison {
 public:
  Comparison(const CollectiveTable& table, const CollectiveList& reference,
             const CollectiveList& other)
      : table_(table), reference_(reference), other_(other) {}

  CollectiveComparison Run() {
    script_ = AlignSequences(reference_.size(), other_.size(), [&](std::size_t i, std::size_t j) {
      return table_.SameButGroup(reference_[i], other_[j]);
    });
    CollectiveComparison result;
    FindRenaming(result.renamed_groups);
    FindMoved();
    FindInGaps();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Found& a, const Found& b) { return a.place < b.place; });
    const std::size_t shown = std::min(found_.size(), kMostMismatches);
    for (std::size_t i = 0; i < shown; ++i) result.mismatches.push_back(Mismatch(found_[i]));
    result.left_out = beyond_ + found_.size() - shown;
    return result;
  }

 private:
  struct Found {
    std::size_t place;  // in the script
    std::int64_t a, b;  // ordinals; -1: missing
    bool is_moved = false;
  };
  using Kind = EditStep::Kind;

  // A group may have another name on ranks of another subgroup: if one renaming explains all names,
  // they are no difference.
  void FindRenaming(std::string& renamed_groups) {
    std::map<std::uint32_t, std::uint32_t> to, from;
    bool is_renaming = true;
    for (const EditStep& step : script_) {
      if (step.kind != Kind::kKeep) continue;
      const std::uint32_t a = reference_[step.a].group, b = other_[step.b].group;
      if (a == 0 || b == 0) continue;
      is_renaming &=
          to.try_emplace(a, b).first->second == b && from.try_emplace(b, a).first->second == a;
    }
    std::map<std::string_view, std::string_view> renamed;
    for (const auto& [a, b] : to) {
      if (a != b) renamed.emplace(table_.Group({0, a}), table_.Group({0, b}));
    }
    if (is_renaming) {
      for (const auto& [a, b] : renamed)
        renamed_groups += fmt::format("{}{} → {}", renamed_groups.empty() ? "" : ", ", a, b);
      return;
    }
    for (std::size_t i = 0; i < script_.size(); ++i) {
      const EditStep& step = script_[i];
      if (step.kind != Kind::kKeep) continue;
      const std::uint32_t a = reference_[step.a].group, b = other_[step.b].group;
      if (a != 0 && b != 0 && a != b) Add(i, step.a, step.b);
    }
  }

  // The same collective elsewhere: order.
  void FindMoved() {
    is_matched_.assign(script_.size(), 0);
    std::vector<std::size_t> deleted, inserted;
    for (std::size_t i = 0; i < script_.size(); ++i) {
      if (script_[i].kind == Kind::kDelete) deleted.push_back(i);
      if (script_[i].kind == Kind::kInsert) inserted.push_back(i);
      if (deleted.size() + inserted.size() > kMostSearched) return;
    }
    for (const std::size_t i : deleted) {
      const CollectiveRef one = reference_[script_[i].a];
      if (table_.IsWait(one)) continue;
      for (const std::size_t j : inserted) {
        if (is_matched_[j] != 0 || !table_.SameButGroup(one, other_[script_[j].b])) continue;
        is_matched_[i] = is_matched_[j] = 1;
        AddFound(std::min(i, j), script_[i].a, script_[j].b, true);
        break;
      }
    }
  }

  // What is left: side by side within one gap, the rest on one side only.
  void FindInGaps() {
    searched_from_ = found_.size();
    for (std::size_t begin = 0; begin < script_.size();) {
      if (script_[begin].kind == Kind::kKeep) {
        ++begin;
        continue;
      }
      std::size_t end = begin;
      std::vector<std::size_t> deleted, inserted;
      for (; end < script_.size() && script_[end].kind != Kind::kKeep; ++end) {
        if (is_matched_[end] == 0)
          (script_[end].kind == Kind::kDelete ? deleted : inserted).push_back(end);
      }
      FindInGap(deleted, inserted);
      begin = end;
    }
  }

  void FindInGap(const std::vector<std::size_t>& deleted,
                 const std::vector<std::size_t>& inserted) {
    const std::size_t none = inserted.size();
    const bool is_searched = deleted.size() + inserted.size() <= kMostSearched;
    std::vector<char> is_used(inserted.size());
    for (std::size_t at = 0; at < deleted.size(); ++at) {
      const std::size_t a = script_[deleted[at]].a;
      // Of the same op where there is one
      const auto is_partner = [&](std::size_t k) {
        const std::string_view op = table_.Op(reference_[a]);
        const std::string_view other_op = table_.Op(other_[script_[inserted[k]].b]);
        return is_used[k] == 0 && (op.empty() || other_op.empty() || op == other_op);
      };
      std::size_t partner = none;
      if (!is_searched) {
        if (at < inserted.size() && is_partner(at)) partner = at;
      } else {
        for (std::size_t k = 0; k < inserted.size() && partner == none; ++k) {
          if (is_partner(k)) partner = k;
        }
      }
      if (partner == none && is_searched) partner = OnlyOtherOp(deleted, inserted, at);
      if (partner != none && is_used[partner] != 0) partner = none;
      if (partner == none) {
        Add(deleted[at], a, std::nullopt);
        continue;
      }
      is_used[partner] = 1;
      Add(deleted[at], a, script_[inserted[partner]].b);
    }
    for (std::size_t k = 0; k < inserted.size(); ++k) {
      if (is_used[k] == 0) Add(inserted[k], std::nullopt, script_[inserted[k]].b);
    }
  }

  // Where one collective (or wait) of each side has no partner of its op, they are a pair.
  std::size_t OnlyOtherOp(const std::vector<std::size_t>& deleted,
                          const std::vector<std::size_t>& inserted, std::size_t at) const {
    const auto is_wait = [&](std::size_t place) {
      const EditStep& step = script_[place];
      return table_.IsWait(step.kind == Kind::kDelete ? reference_[step.a] : other_[step.b]);
    };
    const bool wanted = is_wait(deleted[at]);
    const auto is_same = [&](std::size_t place) { return is_wait(place) == wanted; };
    if (std::count_if(deleted.begin(), deleted.end(), is_same) != 1 ||
        std::count_if(inserted.begin(), inserted.end(), is_same) != 1)
      return inserted.size();
    return static_cast<std::size_t>(std::find_if(inserted.begin(), inserted.end(), is_same) -
                                    inserted.begin());
  }

  // Each of the searches above finds them by rising place: more of one are not among the first.
  void Add(std::size_t place, std::optional<std::size_t> a, std::optional<std::size_t> b) {
    if (found_.size() - searched_from_ < kMostMismatches) {
      AddFound(place, a, b, false);
    } else {
      ++beyond_;
    }
  }

  void AddFound(std::size_t place, std::optional<std::size_t> a, std::optional<std::size_t> b,
                bool is_moved) {
    found_.push_back({place, a ? static_cast<std::int64_t>(*a) : -1,
                      b ? static_cast<std::int64_t>(*b) : -1, is_moved});
  }

  CollectiveItem ItemOf(const CollectiveList& list, std::int64_t ordinal) const {
    return table_.Item(list[static_cast<std::size_t>(ordinal)]);
  }

  CollectiveMismatch Mismatch(const Found& found) const {
    CollectiveMismatch mismatch;
    mismatch.against_ordinal = found.a;
    mismatch.ordinal = found.b;
    if (found.a >= 0) mismatch.against_item = ItemOf(reference_, found.a).Title();
    if (found.b >= 0) mismatch.item = ItemOf(other_, found.b).Title();
    mismatch.kind = found.is_moved ? MismatchKind::kOrder
                    : found.a < 0 || found.b < 0
                        ? MismatchKind::kMissing
                        : KindOf(ItemOf(reference_, found.a), ItemOf(other_, found.b));
    if (!found.is_moved) return mismatch;
    // With the collectives that are in each other's place.
    if (static_cast<std::size_t>(found.a) < other_.size())
      mismatch.instead = ItemOf(other_, found.a).Title();
    if (static_cast<std::size_t>(found.b) < reference_.size())
      mismatch.against_instead = ItemOf(reference_, found.b).Title();
    return mismatch;
  }

  const CollectiveTable& table_;
  const CollectiveList& reference_;
  const CollectiveList& other_;
  std::vector<EditStep> script_;
  std::vector<char> is_matched_;  // by place in the script
  std::vector<Found> found_;
  std::size_t searched_from_ = 0;  // in found_: where the search that is under way began
  std::size_t beyond_ = 0;         // that are not in found_
};

}  // namespace

std::string CollectiveMismatch::Text() const {
  if (item.empty()) return against_item + " on the others only";
  if (against_item.empty()) return item + " here only";
  if (kind != MismatchKind::kOrder) return fmt::format("{} → {}", against_item, item);
  const std::string op = item.substr(0, item.find_first_of(" ("));
  return fmt::format("#{} {} → {}; {} is #{} here", against_ordinal + 1, against_item,
                     instead.empty() ? "nothing" : instead, op, ordinal + 1);
}

bool CollectiveMismatch::IsOfSplits() const {
  constexpr std::string_view kOp = "all_to_all_single(";
  return item.starts_with(kOp) && against_item.starts_with(kOp) && ordinal == against_ordinal;
}

bool CollectiveMismatch::IsWaitForOtherSize() const {
  constexpr std::string_view kWait = "wait_tensor ";
  return kind == MismatchKind::kSize && item.starts_with(kWait) && against_item.starts_with(kWait);
}

std::string_view Name(MismatchKind kind) {
  static constexpr std::array<std::string_view, 8> kNames = {"type",  "size",  "dtype",   "syntax",
                                                             "group", "order", "missing", "state"};
  return kNames[static_cast<std::size_t>(kind)];
}

CollectiveComparison CompareCollectives(const CollectiveTable& table,
                                        const CollectiveList& reference,
                                        const CollectiveList& other) {
  return Comparison(table, reference, other).Run();
}

}  // namespace tlparse

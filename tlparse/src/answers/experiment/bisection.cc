#include "answers/experiment/bisection.h"

#include <algorithm>
#include <numeric>

namespace tlparse {
namespace {

using Set = std::vector<std::size_t>;
using Test = std::function<Result<BisectionState>(const Set&)>;

class Search {
 public:
  Search(std::size_t count, std::size_t most_runs, const Test& test)
      : count_(count), most_runs_(most_runs), test_(test) {}

  Result<Bisection> Run() {
    Set all(count_);
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (all.empty()) return Bisection();
    ASSIGN_OR_RETURN(const std::optional<Set> one, FindOne(all));
    Bisection found;
    if (one) {
      found.cause = *one;
      found.is_sure = found.is_smallest = true;
    } else {
      ASSIGN_OR_RETURN(found, Minimize(all));
    }
    found.runs = runs_;
    return found;
  }

 private:
  // What was run once is not run again.
  Result<BisectionState> Ask(const Set& set) {
    if (set.empty()) return BisectionState::kGood;
    return set.size() == count_ && count_ > 1 ? BisectionState::kBad : Make(set);
  }

  Result<BisectionState> Make(const Set& set) {
    const auto known = known_.find(set);
    if (known != known_.end()) return known->second;
    if (runs_ == most_runs_) {
      is_over_ = true;
      return BisectionState::kUnknown;
    }
    ++runs_;
    ASSIGN_OR_RETURN(const BisectionState state, test_(set));
    known_[set] = state;
    has_unknown_ = has_unknown_ || state == BisectionState::kUnknown;
    return state;
  }

  // As if there were one cause: it is in the half whose run is bad, else in the other. Nothing: that
  // one alone does not make a run bad.
  Result<std::optional<Set>> FindOne(Set set) {
    while (set.size() > 1) {
      const auto middle = set.begin() + static_cast<std::ptrdiff_t>(set.size() / 2);
      const Set first(set.begin(), middle), second(middle, set.end());
      ASSIGN_OR_RETURN(const BisectionState state, Ask(first));
      set = state == BisectionState::kBad ? first : second;
    }
    ASSIGN_OR_RETURN(const BisectionState state, Ask(set));
    return state == BisectionState::kBad ? std::optional(set) : std::nullopt;
  }

  // ddmin: parts, then what is left without each part, then smaller parts.
  Result<Bisection> Minimize(Set set) {
    std::size_t parts = 2;
    while (set.size() > 1 && !is_over_) {
      ASSIGN_OR_RETURN(const std::optional<Set> smaller, Smaller(set, parts));
      if (smaller) {
        parts = smaller->size() < set.size() / 2 + 1 ? 2 : std::max<std::size_t>(parts - 1, 2);
        set = *smaller;
      } else if (parts >= set.size()) {
        break;
      } else {
        parts = std::min(set.size(), 2 * parts);
      }
    }
    Bisection found;
    ASSIGN_OR_RETURN(const BisectionState last, Make(set));
    found.is_sure = last == BisectionState::kBad;
    found.is_smallest = found.is_sure && !is_over_ && !has_unknown_;
    found.cause = std::move(set);
    return found;
  }

  Result<std::optional<Set>> Smaller(const Set& set, std::size_t parts) {
    for (const bool is_rest : {false, true}) {
      if (is_rest && parts == 2) continue;  // the rest of a half is the other half
      for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t begin = set.size() * part / parts, end = set.size() * (part + 1) / parts;
        Set one;
        for (std::size_t i = 0; i < set.size(); ++i) {
          if ((i >= begin && i < end) != is_rest) one.push_back(set[i]);
        }
        ASSIGN_OR_RETURN(const BisectionState state, Ask(one));
        if (state == BisectionState::kBad) return one;
        if (is_over_) return std::nullopt;
      }
    }
    return std::nullopt;
  }

  const std::size_t count_, most_runs_;
  const Test& test_;
  std::map<Set, BisectionState> known_;
  std::size_t runs_ = 0;
  bool is_over_ = false, has_unknown_ = false;
};

}  // namespace

Result<Bisection> Bisect(std::size_t count, std::size_t most_runs, const Test& test) {
  return Search(count, most_runs, test).Run();
}

}  // namespace tlparse

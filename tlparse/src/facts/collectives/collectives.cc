#include "facts/collectives/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "facts/collectives/compile_state.h"
#include "facts/collectives/splits.h"
#include "facts/job/majority.h"
#include "facts/job/role_members.h"
#include "facts/text/sequence_diff.h"
#include "queries/facts/collectives/collectives.h"
#include "store/hash128.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostOfAllGraphs = 200;
// Of one rank; a job has thousands. What is kept of a comparison follows from this number.
constexpr std::size_t kMostCompared = 1'000'000;

// What one rank has for one graph: content ids, 0: none.
struct Use {
  std::int32_t graph_slot = 0;
  std::int64_t schedule = 0;
  std::int64_t code = 0;
  std::int64_t Primary() const { return code != 0 ? code : schedule; }
};

class Finder {
 public:
  Finder(Database& database, CollectiveAnswer& answer) : database_(database), answer_(answer) {}
  Result<void> Run();

 private:
  struct RankClass {
    std::vector<RankIndex> ranks;
    std::vector<Use> uses;  // in the order of the job's graphs
  };
  Result<void> LoadUses();
  using ListPointer = std::shared_ptr<const CollectiveList>;
  Result<ListPointer> Items(std::int64_t content_id);
  // Forgets the lists if they are many. No list may be in use.
  void LimitItems();
  struct Counts {
    std::size_t collectives = 0, waits = 0;
  };
  Result<Counts> Count(std::int64_t content_id);
  std::vector<RankClass> Classify();
  Result<CollectiveClass> Describe(const RankClass& reference, const RankClass& other);
  // At most kMostCompared; `is_whole` becomes false if there are more. What a function that `against`
  // did not compile has in each of its compiles counts once: a recompile takes the place of the first.
  Result<CollectiveList> Flatten(const RankClass& one, const RankClass* against, bool& is_whole);
  std::string CodeOf(const RankClass& one, const Use& use) const;
  // A note on another all_to_all_single; empty: it is a mismatch.
  Result<std::string> NoteOfSplits(const CollectiveMismatch& mismatch);
  Result<void> CompareGraphs(const RankClass& reference, const RankClass& other,
                             CollectiveClass& result);
  Result<void> FindParity();
  Result<void> CompareWithCode(std::int64_t schedule_id, std::int64_t code_id,
                               CollectiveParity& parity);
  Result<void> DescribeAll(const std::vector<RankClass>& classes);

  Database& database_;
  CollectiveAnswer& answer_;
  std::vector<std::vector<Use>> uses_;  // by participant
  CollectiveTable table_;
  std::unordered_map<std::int64_t, ListPointer> items_;  // by content
  std::size_t item_count_ = 0;                           // in items_
  std::unordered_map<std::int64_t, Counts> counts_;      // by content
};

Result<void> Finder::LoadUses() {
  uses_.resize(answer_.job.participants().size());
  ASSIGN_OR_RETURN(const auto* const rows, LoadCollectives(database_, answer_.job));
  std::unordered_map<std::int64_t, std::size_t> index;  // by rank and graph
  const auto slots = static_cast<std::int64_t>(answer_.graphs.graph_slots().size());
  for (const CollectivesOfGraph& row : *rows) {
    const JobGraph* graph = row.graph_id ? answer_.graphs.Find(*row.graph_id) : nullptr;
    if (graph == nullptr || !answer_.job.IsWhole(row.record_id)) continue;
    const RankIndex rank =
        answer_.job.compiles()[static_cast<std::size_t>(graph->compile)].participant;
    std::vector<Use>& own = uses_[static_cast<std::size_t>(rank)];
    const auto [found, is_new] = index.try_emplace(rank * slots + graph->graph_slot, own.size());
    if (is_new) own.push_back({graph->graph_slot, 0, 0});
    (row.source == CollectiveSource::kSchedule ? own[found->second].schedule
                                               : own[found->second].code) = row.content_id;
  }
  std::vector<std::size_t> position(answer_.graphs.graph_slots().size());
  for (std::size_t i = 0; i < answer_.graphs.order().size(); ++i)
    position[static_cast<std::size_t>(answer_.graphs.order()[i])] = i;
  for (std::size_t rank = 0; rank < uses_.size(); ++rank) {
    std::vector<Use>& own = uses_[rank];
    std::sort(own.begin(), own.end(), [&](const Use& a, const Use& b) {
      return position[static_cast<std::size_t>(a.graph_slot)] <
             position[static_cast<std::size_t>(b.graph_slot)];
    });
    const bool has_schedule =
        std::any_of(own.begin(), own.end(), [](const Use& use) { return use.schedule != 0; });
    if (!own.empty() && !has_schedule)
      answer_.from_code_only.push_back(static_cast<RankIndex>(rank));
  }
  return {};
}

Result<Finder::ListPointer> Finder::Items(std::int64_t content_id) {
  ListPointer& known = items_[content_id];
  if (known != nullptr) return known;
  CollectiveList list;
  FOR_EACH_ROW(const CollectiveOfContent& row,
               KeptQuery<CollectiveOfContent>(database_, {.content_id = content_id})) {
    const std::string group(row.group_name);
    list.push_back(table_.Add({ShortOp(row.op), row.is_wait, group, std::string(row.shape),
                               std::string(row.dtype), WithoutGroup(row.arguments, group)}));
  }
  item_count_ += list.size();
  known = std::make_shared<const CollectiveList>(std::move(list));
  return known;
}

void Finder::LimitItems() {
  if (item_count_ <= 2 * kMostCompared) return;
  items_.clear();
  table_.Clear();
  item_count_ = 0;
}

Result<Finder::Counts> Finder::Count(std::int64_t content_id) {
  const auto [entry, is_new] = counts_.try_emplace(content_id);
  if (!is_new) return entry->second;
  FOR_EACH_ROW(const CollectiveCount& row,
               KeptQuery<CollectiveCount>(database_, {.content_id = content_id})) {
    (row.is_wait ? entry->second.waits : entry->second.collectives) +=
        static_cast<std::size_t>(row.count);
  }
  return entry->second;
}

std::vector<Finder::RankClass> Finder::Classify() {
  // Schedules count only where all ranks that have the graph have one: a cache hit writes none.
  std::vector<RankClass> classes;
  std::unordered_map<Hash128, std::size_t, Hash128Hasher> index;
  for (std::size_t rank = 0; rank < uses_.size(); ++rank) {
    SequenceHash hash;
    for (const Use& use : uses_[rank]) {
      hash.Add(use.graph_slot);
      hash.Add(use.Primary());
    }
    const auto [found, is_new] = index.try_emplace(hash.Digest(), classes.size());
    if (is_new) classes.push_back({{}, uses_[rank]});
    classes[found->second].ranks.push_back(static_cast<RankIndex>(rank));
  }
  // How many ranks have the same in a graph, by graph and content.
  std::map<std::pair<std::int32_t, std::int64_t>, std::size_t> alike;
  for (const RankClass& one : classes)
    for (const Use& use : one.uses) alike[{use.graph_slot, use.Primary()}] += one.ranks.size();
  const auto is_early = [this](const RankClass& one) {
    return answer_.damage.EndEarly(answer_.job, one.ranks);
  };
  OrderByReference(classes, is_early, [&](const RankClass& one) {
    std::size_t sum = 0;
    for (const Use& use : one.uses)
      sum += alike[{use.graph_slot, use.Primary()}] - one.ranks.size();
    return sum;
  });
  return classes;
}

// The code object of a graph, and which of its graphs it is. Empty: unknown.
std::string Finder::CodeOf(const RankClass& one, const Use& use) const {
  const GraphSlot& graph = answer_.graphs.graph_slots()[static_cast<std::size_t>(use.graph_slot)];
  const JobSlot slot = answer_.job.SlotOf(graph.slot, one.ranks);
  if (slot.function.empty()) return {};
  return fmt::format("{}:{} {} {} {}", slot.file, slot.line, slot.function,
                     static_cast<int>(graph.direction), graph.ordinal);
}

Result<CollectiveList> Finder::Flatten(const RankClass& one, const RankClass* against,
                                       bool& is_whole) {
  std::set<std::string> of_both = {""};  // of unknown code nothing is left out
  if (against != nullptr)
    for (const Use& use : against->uses) of_both.insert(CodeOf(*against, use));
  std::map<std::string, ListPointer> first;  // by code
  CollectiveList all;
  for (const Use& use : one.uses) {
    ASSIGN_OR_RETURN(const ListPointer items, Items(use.Primary()));
    if (against != nullptr) {
      const std::string code = CodeOf(one, use);
      const auto [known, is_new] = first.try_emplace(code, items);
      if (!is_new && of_both.count(code) == 0 && table_.AreSame(*known->second, *items)) continue;
    }
    const std::size_t count = std::min(items->size(), kMostCompared - all.size());
    all.insert(all.end(), items->begin(), items->begin() + static_cast<std::ptrdiff_t>(count));
    if (count < items->size()) {
      is_whole = false;
      break;
    }
  }
  return all;
}

Result<CollectiveClass> Finder::Describe(const RankClass& reference, const RankClass& other) {
  CollectiveClass result;
  result.ranks = other.ranks;
  for (const Use& use : other.uses) {
    ASSIGN_OR_RETURN(const Counts counts, Count(use.Primary()));
    result.collectives += counts.collectives;
    result.waits += counts.waits;
  }
  if (&reference == &other) return result;
  LimitItems();
  const bool are_of_equal_graphs =
      std::equal(reference.uses.begin(), reference.uses.end(), other.uses.begin(), other.uses.end(),
                 [](const Use& a, const Use& b) { return a.graph_slot == b.graph_slot; });
  for (const bool counts_once : {false, true}) {
    if (counts_once && are_of_equal_graphs) break;
    bool is_whole = true;
    ASSIGN_OR_RETURN(const CollectiveList all,
                     Flatten(other, counts_once ? &reference : nullptr, is_whole));
    ASSIGN_OR_RETURN(const CollectiveList reference_all,
                     Flatten(reference, counts_once ? &other : nullptr, is_whole));
    const CollectiveComparison compared = CompareCollectives(table_, reference_all, all);
    if (compared.IsEqual() && is_whole) {
      if (!compared.renamed_groups.empty())
        result.notes.push_back("process groups have other names: " + compared.renamed_groups);
      if (reference.uses.size() != other.uses.size())
        result.notes.push_back("the same collectives in the same order, in other graphs");
      return result;
    }
  }
  RETURN_IF_ERROR(CompareGraphs(reference, other, result));
  return result;
}

Result<std::string> Finder::NoteOfSplits(const CollectiveMismatch& mismatch) {
  if (!mismatch.IsOfSplits()) return std::string();
  SplitsByRank splits;
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const auto use = std::find_if(uses_[i].begin(), uses_[i].end(), [&](const Use& one) {
      return one.graph_slot == mismatch.graph_slot;
    });
    if (use == uses_[i].end()) continue;
    ASSIGN_OR_RETURN(const ListPointer items, Items(use->Primary()));
    const auto ordinal = static_cast<std::size_t>(mismatch.ordinal);
    const bool has_it = ordinal < items->size();
    splits.emplace_back(answer_.job.participants()[i].rank,
                        has_it ? SplitsOf(table_.Item((*items)[ordinal]).arguments) : std::nullopt);
  }
  return tlparse::NoteOfSplits(std::move(splits),
                               answer_.graphs.Title(answer_.job, mismatch.graph_slot));
}

// Graph by graph, in the order of the job.
Result<void> Finder::CompareGraphs(const RankClass& reference, const RankClass& other,
                                   CollectiveClass& result) {
  std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>> by_graph;
  for (const Use& use : reference.uses) by_graph[use.graph_slot].first = use.Primary();
  for (const Use& use : other.uses) by_graph[use.graph_slot].second = use.Primary();
  for (const std::int32_t graph_slot : answer_.graphs.order()) {
    const auto found = by_graph.find(graph_slot);
    if (found == by_graph.end() || found->second.first == found->second.second) continue;
    LimitItems();
    const auto [a_id, b_id] = found->second;  // 0 has no items
    ASSIGN_OR_RETURN(const ListPointer a, Items(a_id));
    ASSIGN_OR_RETURN(const ListPointer b, Items(b_id));
    CollectiveComparison compared = CompareCollectives(table_, *a, *b);
    const GraphSlot& graph = answer_.graphs.graph_slots()[static_cast<std::size_t>(graph_slot)];
    const std::string state =
        b_id == 0   ? StateOf(answer_.job, answer_.damage, other.ranks.front(), graph, "here")
        : a_id == 0 ? StateOf(answer_.job, answer_.damage, reference.ranks.front(), graph, "there")
                    : "";
    result.left_out += compared.left_out;
    bool has_splits = false;
    for (CollectiveMismatch& mismatch : compared.mismatches) {
      mismatch.graph_slot = graph_slot;
      if (!state.empty()) {
        mismatch.kind = MismatchKind::kState;
        mismatch.reason = state;
      } else {
        ASSIGN_OR_RETURN(std::string note, NoteOfSplits(mismatch));
        const bool are_splits = !note.empty();
        if (are_splits && !std::exchange(has_splits, true)) result.notes.push_back(std::move(note));
        if (are_splits || (has_splits && mismatch.IsWaitForOtherSize())) continue;
      }
      if (result.mismatches.size() >= kMostOfAllGraphs)
        ++result.left_out;
      else
        result.mismatches.push_back(std::move(mismatch));
    }
  }
  return {};
}

Result<void> Finder::CompareWithCode(std::int64_t schedule_id, std::int64_t code_id,
                                     CollectiveParity& parity) {
  LimitItems();
  ASSIGN_OR_RETURN(const ListPointer schedule, Items(schedule_id));
  ASSIGN_OR_RETURN(const ListPointer code, Items(code_id));
  const auto ops = [this](const CollectiveList& list) {
    std::vector<std::string_view> names;
    for (const CollectiveRef ref : list) {
      if (!table_.IsWait(ref)) names.push_back(table_.Op(ref));
    }
    return names;
  };
  const std::vector<std::string_view> a = ops(*schedule), b = ops(*code);
  parity.scheduled = a.size();
  const auto is_same = [&](std::size_t i, std::size_t j) { return a[i] == b[j] || a[i].empty(); };
  for (const EditStep& step : AlignSequences(a.size(), b.size(), is_same)) {
    if (step.kind == EditStep::Kind::kKeep) continue;
    parity.differs = true;
    parity.first_difference = step.kind == EditStep::Kind::kDelete
                                  ? fmt::format("{} is scheduled, not in the code", a[step.a])
                                  : fmt::format("{} is in the code, not scheduled", b[step.b]);
    break;
  }
  return {};
}

Result<void> Finder::FindParity() {
  std::map<std::pair<std::int32_t, std::pair<std::int64_t, std::int64_t>>, std::vector<RankIndex>>
      pairs;
  for (std::size_t rank = 0; rank < uses_.size(); ++rank) {
    for (const Use& use : uses_[rank]) {
      if (use.code != 0)
        pairs[{use.graph_slot, {use.schedule, use.code}}].push_back(static_cast<RankIndex>(rank));
    }
  }
  for (auto& [key, ranks] : pairs) {
    const auto& [graph_slot, contents] = key;
    CollectiveParity parity;
    parity.graph_slot = graph_slot;
    ASSIGN_OR_RETURN(const Counts counts, Count(contents.second));
    parity.generated = counts.collectives;
    parity.missing_waits = parity.generated - std::min(parity.generated, counts.waits);
    if (contents.first != 0)
      RETURN_IF_ERROR(CompareWithCode(contents.first, contents.second, parity));
    if (parity.missing_waits == 0 && !parity.differs) continue;
    parity.ranks = std::move(ranks);
    answer_.parity.push_back(std::move(parity));
  }
  return {};
}

// Against the first class; classes without a mismatch join it.
Result<void> Finder::DescribeAll(const std::vector<RankClass>& classes) {
  answer_.classes.clear();
  for (const RankClass& one : classes) {
    ASSIGN_OR_RETURN(CollectiveClass described, Describe(classes.front(), one));
    // Contents may differ in what is no mismatch: line numbers, names of groups.
    if (&one != &classes.front() && described.mismatches.empty()) {
      CollectiveClass& reference = answer_.classes.front();
      reference.ranks.insert(reference.ranks.end(), described.ranks.begin(), described.ranks.end());
      std::sort(reference.ranks.begin(), reference.ranks.end());
      for (const std::string& note : described.notes) {
        reference.notes.push_back(
            fmt::format("{}: {}", answer_.job.NameRanks(described.ranks), note));
      }
      continue;
    }
    answer_.classes.push_back(std::move(described));
  }
  if (!answer_.classes.empty()) PutFirst(answer_.classes, 0);
  std::size_t alike = 0;
  for (const CollectiveClass& one : answer_.classes) {
    if (one.mismatches.empty() ||
        (one.IsMerelyShorter() && answer_.damage.EndEarly(answer_.job, one.ranks)))
      alike += one.ranks.size();
  }
  answer_.has_majority = 2 * alike > uses_.size();
  return {};
}

Result<void> Finder::Run() {
  RETURN_IF_ERROR(LoadUses());
  std::vector<RankClass> classes = Classify();
  RETURN_IF_ERROR(DescribeAll(classes));
  // Where none is a majority, the largest of the others may be one with those that join it.
  if (!answer_.has_majority && classes.size() > 2 &&
      !answer_.damage.EndEarly(answer_.job, classes[1].ranks)) {
    std::vector<CollectiveClass> before = answer_.classes;
    std::swap(classes[0], classes[1]);
    RETURN_IF_ERROR(DescribeAll(classes));
    if (!answer_.has_majority) answer_.classes = std::move(before);
  }
  return FindParity();
}

}  // namespace

Result<void> FindCollectiveClasses(Database& database, CollectiveAnswer& answer) {
  return Finder(database, answer).Run();
}

}  // namespace tlparse

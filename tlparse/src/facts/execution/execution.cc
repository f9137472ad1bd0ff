#include "facts/execution/execution.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "facts/job/majority.h"
#include "facts/job/read_transaction.h"
#include "facts/job/written_since.h"
#include "facts/text/sequence_diff.h"
#include "queries/facts/execution/execution.h"
#include "store/hash128.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostDifferences = 100;
constexpr std::int32_t kUnlabelled = -1;

struct OrderClass {
  std::vector<RankIndex> ranks;
  // Slots; kUnlabelled; below that: a label of no compile, as -2 - string index
  std::vector<std::int32_t> items;
};

class OrderFinder {
 public:
  OrderFinder(Database& database, ExecutionAnswer& answer) : database_(database), answer_(answer) {}
  Result<void> Run();

 private:
  Result<void> LoadContents();
  Result<std::vector<OrderClass>> Classify();
  Result<void> MarkOrdersOfThreads(const std::vector<OrderClass>& classes);
  std::string Title(std::int32_t item, const OrderClass& of) const;
  ExecutionClass Describe(const OrderClass& reference, const OrderClass& other) const;

  Database& database_;
  ExecutionAnswer& answer_;
  std::vector<std::string> labels_;
  std::map<std::string, std::int32_t> label_ids_;
  std::unordered_map<std::int64_t, std::vector<std::int32_t>> contents_;  // label ids, -1: none
};

Result<void> OrderFinder::LoadContents() {
  FOR_EACH_ROW(const LabelOfExecution& row,
               Query<LabelOfExecution>(database_, {.in_logs = answer_.job.InLogs("record_id")})) {
    std::int32_t id = -1;
    if (row.label) {
      const auto [found, is_new] = label_ids_.try_emplace(
          std::string(*row.label), static_cast<std::int32_t>(labels_.size()));
      if (is_new) labels_.emplace_back(*row.label);
      id = found->second;
    }
    contents_[row.content_id].push_back(id);
  }
  return {};
}

Result<std::vector<OrderClass>> OrderFinder::Classify() {
  const Job& job = answer_.job;
  std::vector<std::vector<std::int64_t>> contents_of(job.participants().size());
  ASSIGN_OR_RETURN(const std::vector<ExecutionUse>* const rows,
                   job.RowsOfWhole<ExecutionUse>([&](const JobRecords& whole) {
                     return Query<ExecutionUse>(database_, {.in_logs = whole.InLogs("record_id")});
                   }));
  for (const ExecutionUse& row : *rows) {
    const RankIndex rank = job.ParticipantOfProcess(row.process_id);
    if (rank >= 0) contents_of[static_cast<std::size_t>(rank)].push_back(row.content_id);
  }
  // Labels mean slots, which ranks of one compile sequence share: labels shift where a rank
  // compiled more or less.
  std::vector<OrderClass> classes;
  std::unordered_map<Hash128, std::size_t, Hash128Hasher> index;
  for (const std::vector<RankIndex>& members : job.sequence_classes()) {
    std::vector<std::int32_t> slot_of_label(labels_.size(), kUnlabelled);
    for (std::size_t i = 0; i < labels_.size(); ++i)
      slot_of_label[i] = -2 - static_cast<std::int32_t>(i);
    for (std::size_t slot = 0; slot < job.slots().size(); ++slot) {
      const std::int32_t compile = job.CompileOf(members.front(), static_cast<std::int32_t>(slot));
      if (compile < 0) continue;
      const auto found =
          label_ids_.find(job.string(job.compiles()[static_cast<std::size_t>(compile)].key_id));
      if (found != label_ids_.end())
        slot_of_label[static_cast<std::size_t>(found->second)] = static_cast<std::int32_t>(slot);
    }
    for (const RankIndex rank : members) {
      const std::vector<std::int64_t>& contents = contents_of[static_cast<std::size_t>(rank)];
      if (contents.empty()) {
        answer_.without_order.push_back(rank);
        continue;
      }
      std::vector<std::int32_t> items;
      SequenceHash hash;
      for (const std::int64_t content : contents) {
        for (const std::int32_t label : contents_[content]) {
          items.push_back(label < 0 ? kUnlabelled : slot_of_label[static_cast<std::size_t>(label)]);
          hash.Add(items.back());
        }
      }
      const auto [found, is_new] = index.try_emplace(hash.Digest(), classes.size());
      if (is_new) classes.push_back({{}, std::move(items)});
      classes[found->second].ranks.push_back(rank);
    }
  }
  for (OrderClass& one : classes) std::sort(one.ranks.begin(), one.ranks.end());
  std::sort(answer_.without_order.begin(), answer_.without_order.end());
  if (classes.empty()) answer_.without_order.clear();
  answer_.has_majority = OrderByReference(classes);
  return classes;
}

std::string OrderFinder::Title(std::int32_t item, const OrderClass& of) const {
  if (item >= 0) return answer_.job.SlotOf(item, of.ranks).Title();
  return item == kUnlabelled ? "(from the cache)" : labels_[static_cast<std::size_t>(-2 - item)];
}

ExecutionClass OrderFinder::Describe(const OrderClass& reference, const OrderClass& other) const {
  constexpr std::size_t kMostGraphs = 8;
  ExecutionClass result;
  result.ranks = other.ranks;
  result.executions = other.items.size();
  result.unlabelled =
      static_cast<std::size_t>(std::count(other.items.begin(), other.items.end(), kUnlabelled));
  if (&reference == &other) return result;
  const std::vector<EditStep> script =
      AlignSequences(reference.items.size(), other.items.size(), [&](std::size_t i, std::size_t j) {
        const std::int32_t a = reference.items[i], b = other.items[j];
        return a == b || a == kUnlabelled || b == kUnlabelled;
      });
  for (std::size_t i = 0; i < script.size();) {
    if (script[i].kind == EditStep::Kind::kKeep) {
      ++i;
      continue;
    }
    OrderDifference difference;
    difference.against_position = static_cast<std::int64_t>(script[i].a);
    difference.position = static_cast<std::int64_t>(script[i].b);
    // Differences with few agreements between them are one: an exchange of two stretches is.
    std::size_t end = i, last = i, count = 0;
    while (end < script.size() && end <= last + 2 + count) {
      if (script[end].kind != EditStep::Kind::kKeep) last = end, ++count;
      ++end;
    }
    std::vector<std::int32_t> a, b;
    for (std::size_t j = i; j <= last; ++j) {
      if (script[j].kind != EditStep::Kind::kInsert) a.push_back(reference.items[script[j].a]);
      if (script[j].kind != EditStep::Kind::kDelete) b.push_back(other.items[script[j].b]);
    }
    for (std::size_t j = 0; j < a.size() && j < kMostGraphs; ++j)
      difference.against_ran.push_back(Title(a[j], reference));
    for (std::size_t j = 0; j < b.size() && j < kMostGraphs; ++j)
      difference.ran.push_back(Title(b[j], other));
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    difference.is_moved = a == b;
    if (script[i].b < other.items.size()) difference.next = Title(other.items[script[i].b], other);
    if (result.differences.size() < kMostDifferences) {
      result.differences.push_back(std::move(difference));
    } else {
      ++result.left_out;
    }
    i = last + 1;
  }
  return result;
}

// A log does not tell which thread ran a graph. That a process has several shows in its events: those
// of libtrace have their thread.
Result<void> OrderFinder::MarkOrdersOfThreads(const std::vector<OrderClass>& classes) {
  const auto sorted = [](std::vector<std::int32_t> items) {
    std::sort(items.begin(), items.end());
    return items;
  };
  const auto class_of = [&](const ExecutionClass& described) -> const OrderClass& {
    return *std::find_if(classes.begin(), classes.end(), [&](const OrderClass& one) {
      return std::binary_search(one.ranks.begin(), one.ranks.end(), described.ranks.front());
    });
  };
  std::vector<ExecutionClass*> moved;
  for (std::size_t i = 1; i < answer_.classes.size(); ++i) {
    if (sorted(class_of(answer_.classes[i]).items) == sorted(classes.front().items))
      answer_.classes[i].has_same_graphs = true, moved.push_back(&answer_.classes[i]);
  }
  if (moved.empty()) return {};
  std::vector<char> has_threads(answer_.job.participants().size());
  FOR_EACH_ROW(
      const ProcessWithThreads& row,
      Query<ProcessWithThreads>(database_, {.in_logs = answer_.job.InLogs("e.record_id")})) {
    const RankIndex rank = answer_.job.ParticipantOfProcess(row.process_id);
    if (rank >= 0) has_threads[static_cast<std::size_t>(rank)] = 1;
  }
  const auto have_threads = [&](const std::vector<RankIndex>& ranks) {
    return std::all_of(ranks.begin(), ranks.end(), [&](RankIndex rank) {
      return has_threads[static_cast<std::size_t>(rank)] != 0;
    });
  };
  for (ExecutionClass* const one : moved)
    one->is_order_of_threads =
        have_threads(one->ranks) || have_threads(answer_.classes.front().ranks);
  return {};
}

Result<void> OrderFinder::Run() {
  RETURN_IF_ERROR(LoadContents());
  ASSIGN_OR_RETURN(const std::vector<OrderClass> classes, Classify());
  for (const OrderClass& one : classes) {
    ExecutionClass described = Describe(classes.front(), one);
    if (&one != &classes.front() &&
        described.differences.empty()) {  // agrees but for graphs without label
      std::vector<RankIndex>& ranks = answer_.classes.front().ranks;
      ranks.insert(ranks.end(), described.ranks.begin(), described.ranks.end());
      std::sort(ranks.begin(), ranks.end());
      answer_.classes.front().unlabelled =
          std::max(answer_.classes.front().unlabelled, described.unlabelled);
      continue;
    }
    answer_.classes.push_back(std::move(described));
  }
  return MarkOrdersOfThreads(classes);
}

}  // namespace

bool ExecutionAnswer::IsDivergent(const ExecutionClass& one) const {
  return &one != &classes.front() && !one.is_order_of_threads &&
         !damage.MayExplain(one.ranks, classes.front().ranks);
}

bool ExecutionAnswer::HasDivergence() const {
  return std::any_of(classes.begin(), classes.end(),
                     [&](const ExecutionClass& one) { return IsDivergent(one); }) ||
         std::any_of(tensors.begin(), tensors.end(), [&](const TensorDivergence& one) {
           return !damage.MayExplain(one.ranks, one.against);
         });
}

Result<void> FindExecutionClasses(Database& database, ExecutionAnswer& answer) {
  return OrderFinder(database, answer).Run();
}

Result<ExecutionAnswer> AnalyzeExecution(Database& database, const ExecutionOptions& options) {
  ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database));
  ExecutionAnswer answer;
  ASSIGN_OR_RETURN(answer.job, Job::Load(database, options.run, options.launch));
  ASSIGN_OR_RETURN(answer.graphs, JobGraphs::Load(database, answer.job));
  ASSIGN_OR_RETURN(answer.damage, FindLogDamage(database, answer.job));
  RETURN_IF_ERROR(FindExecutionClasses(database, answer));
  RETURN_IF_ERROR(FindOpDifferences(database, answer));
  RETURN_IF_ERROR(SayWhyNoOrder(database, answer));
  return answer;
}

Result<void> SayWhyNoOrder(Database& database, ExecutionAnswer& answer) {
  if (!answer.classes.empty()) return {};
  ASSIGN_OR_RETURN(answer.not_written,
                   WhyNotWritten(database, answer.job.run_id(), VersionedInput::kGraphOrder));
  return {};
}

}  // namespace tlparse

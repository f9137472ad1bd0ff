#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "queries/report/report.h"
#include "report/report_context.h"
#include "report/task_pool.h"
#include "report/tree/rank_aggregates.h"
#include "report/viewer/export.h"
#include "store/database.h"
#include "store/schema.h"

namespace tlparse {
namespace {

Result<std::int64_t> FindRun(Database& database, const ReportOptions& options) {
  ASSIGN_OR_RETURN(const FirstRow<RunToReport> run,
                   First(Query<RunToReport>(database, {.run_id = options.run_id})));
  if (!run) {
    return Fail(ErrorCode::kNotFound,
                options.run_id ? fmt::format("the database has no run {}", *options.run_id)
                               : std::string("the database holds no run to report"));
  }
  return run->id;
}

// A job writes a log for each rank, and each directory takes six files: where one log holds very
// many ranks, only the first have files. Returns how many were left out.
std::int64_t LeaveOutRanks(std::vector<Participant>& participants) {
  constexpr std::int64_t kMostDirectoriesOfLog = 1024;
  std::unordered_map<std::string, std::int64_t> seen;  // by log
  const auto is_left_out = [&](const Participant& participant) {
    return ++seen[participant.log_path] > kMostDirectoriesOfLog;
  };
  const auto end = std::remove_if(participants.begin(), participants.end(), is_left_out);
  const std::int64_t count = participants.end() - end;
  participants.erase(end, participants.end());
  return count;
}

class Reporter {
 public:
  Reporter(Database& database, const Directory& root, const ReportOptions& options)
      : database_(database), root_(root), options_(options), pool_(options.times) {}

  Result<ReportSummary> Run() {
    ASSIGN_OR_RETURN(const std::int64_t run_id, FindRun(database_, options_));
    ASSIGN_OR_RETURN(participants_, FindParticipants(database_, run_id, options_.rank_directories));
    const std::int64_t left_out = LeaveOutRanks(participants_);
    ASSIGN_OR_RETURN(failures_, ReadFailures(database_, run_id));
    facts_.resize(participants_.size());
    const bool has_aggregates = participants_.empty() || !participants_.front().directory.empty();
    // The pool takes what was added last: the longest task first, and beside it what prepares the
    // viewer's many small ones, which fill up what is left in the end.
    for (std::size_t i = 0; i < participants_.size(); ++i) {
      pool_.Add(LoadStep::kTree, [this, i](Database& database) { return Begin(database, i); });
    }
    if (options_.viewer) {
      pool_.Add(LoadStep::kPage, [this, run_id](Database& database) {
        return AddViewerTasks(pool_, database, root_, run_id, options_);
      });
    }
    pool_.Add(LoadStep::kTree, [this, run_id, has_aggregates](Database& database) {
      return WriteChromiumEvents(database, root_, run_id, participants_, has_aggregates,
                                 options_.with_profile);
    });
    ASSIGN_OR_RETURN(const int threads, Threads());
    RETURN_IF_ERROR(pool_.Run(database_, threads));
    if (has_aggregates) {
      const StepTimer timer(options_.times, LoadStep::kTree);
      RETURN_IF_ERROR(WriteAggregates(left_out));
    }
    ReportSummary summary;
    summary.left_out = left_out;
    summary.logs = static_cast<std::int64_t>(participants_.size());
    for (const AggregateFacts& facts : facts_) summary.files += facts.files;
    return summary;
  }

 private:
  Result<int> Threads() {
    if (options_.threads > 0) return options_.threads;
    ASSIGN_OR_RETURN(const bool is_small, database_.IsSmall());
    return is_small ? 1 : 0;
  }

  // A participant's reports, one or several tasks each. Shared by these tasks.
  struct PlannedTree {
    std::size_t index = 0;
    Directory directory;
    TreePlan plan;
  };
  using Step = Result<void> (*)(const ReportContext&, const TreePlan&);

  ReportContext ContextOf(Database& database, const PlannedTree& tree) {
    const Participant& participant = participants_[tree.index];
    const Directory& directory = participant.directory.empty() ? root_ : tree.directory;
    return ReportContext{database, root_,   directory, participant,
                         options_, shared_, budget_,   failures_};
  }

  void AddStep(const std::shared_ptr<const PlannedTree>& tree, Step step) {
    pool_.Add(LoadStep::kTree, [this, tree, step](Database& database) {
      return step(ContextOf(database, *tree), tree->plan);
    });
  }

  Result<void> Begin(Database& database, std::size_t index) {
    auto tree = std::make_shared<PlannedTree>();
    tree->index = index;
    const std::string& name = participants_[index].directory;
    if (!name.empty()) {
      ASSIGN_OR_RETURN(tree->directory, MakeDirectory(root_, participants_[index]));
    }
    ASSIGN_OR_RETURN(TreePlan plan, PlanTree(database, participants_[index], options_, budget_));
    // Nobody reads the plan before the tasks below exist.
    tree->plan = std::move(plan);
    facts_[index] = FactsOf(ContextOf(database, *tree), tree->plan);
    AddStep(tree, WriteCompileDirectory);
    AddStep(tree, WriteFailures);
    AddStep(tree, WriteIndexPage);
    AddStep(tree, WriteCollectivesParity);
    if (options_.inductor_provenance) AddStep(tree, WriteProvenancePages);
    constexpr std::size_t kFilesPerTask = 512;
    for (std::size_t first = 0; first < tree->plan.files.size(); first += kFilesPerTask) {
      pool_.Add(LoadStep::kTree, [this, tree, first](Database& connection) {
        return WriteArtifactFiles(ContextOf(connection, *tree), tree->plan, first,
                                  first + kFilesPerTask);
      });
    }
    AddStep(tree, WriteRawJsonl);
    return {};
  }

  Result<void> WriteAggregates(std::int64_t left_out) {
    RETURN_IF_ERROR(WriteCollectiveSchedules(database_, root_, participants_, facts_));
    RETURN_IF_ERROR(WriteRuntimeEstimates(database_, root_, participants_, facts_));
    return WriteRunIndex(root_, options_, participants_, facts_, left_out);
  }

  Database& database_;
  const Directory& root_;
  const ReportOptions& options_;
  std::vector<Participant> participants_;
  std::vector<FailureRow> failures_;
  std::vector<AggregateFacts> facts_;
  SharedContent shared_;
  MemoryBudget budget_;
  TaskPool pool_;
};

}  // namespace

Result<ReportSummary> WriteReport(Database& database, const Directory& directory,
                                  const ReportOptions& options) {
  return Reporter(database, directory, options).Run();
}

}  // namespace tlparse

#include "report/report.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "report/rank_aggregates.h"
#include "report/report_context.h"
#include "store/database.h"

namespace tlparse {
namespace {

using Task = std::function<Result<void>(Database&)>;

// Runs the tasks in order on several threads, the caller's among them; returns the first error.
Result<void> RunTasks(Database& database, const std::vector<Task>& tasks, int threads) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::optional<Error> error;
  const auto fail = [&](Error what) {
    const std::lock_guard lock(mutex);
    if (!error) error = std::move(what);
    next = tasks.size();
  };
  const auto work = [&](Database& connection) {
    while (true) {
      const std::size_t index = next.fetch_add(1);
      if (index >= tasks.size()) return;
      Result<void> done = tasks[index](connection);
      if (!done) fail(std::move(done).error());
    }
  };
  const auto open_and_work = [&] {
    Result<Database> connection = Database::Open(database.path(), Database::Mode::kReadOnly);
    if (connection) {
      work(*connection);
    } else {
      fail(std::move(connection).error());
    }
  };
  std::vector<std::thread> workers;
  const std::size_t count = std::min<std::size_t>(static_cast<std::size_t>(threads), tasks.size());
  for (std::size_t i = 1; i < count; ++i) workers.emplace_back(open_and_work);
  work(database);
  for (std::thread& worker : workers) worker.join();
  if (error) return tl::unexpected<Error>(std::move(*error));
  return {};
}

int ThreadCount(const ReportOptions& options) {
  constexpr int kMaxThreads = 4;  // more only wait for the file system
  if (options.threads > 0) return options.threads;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

Result<std::int64_t> FindRun(Database& database, const ReportOptions& options) {
  ASSIGN_OR_RETURN(Statement run, database.Prepare("SELECT id FROM run WHERE ?1 IS NULL OR id = ?1 "
                                                   "ORDER BY id DESC LIMIT 1"));
  run.Bind(1, options.run_id);
  ASSIGN_OR_RETURN(const bool has_run, run.Step());
  if (!has_run) {
    return Fail(ErrorCode::kNotFound,
                options.run_id ? fmt::format("the database has no run {}", *options.run_id)
                               : std::string("the database holds no run to report"));
  }
  return run.Int(0);
}

class Reporter {
 public:
  Reporter(Database& database, const Directory& root, const ReportOptions& options)
      : database_(database), root_(root), options_(options) {}

  Result<ReportSummary> Run() {
    ASSIGN_OR_RETURN(const std::int64_t run_id, FindRun(database_, options_));
    ASSIGN_OR_RETURN(participants_,
                     FindParticipants(database_, run_id, options_.rank_directories));
    ASSIGN_OR_RETURN(failures_, ReadFailures(database_, run_id));
    facts_.resize(participants_.size());
    const bool has_aggregates = participants_.empty() || !participants_.front().directory.empty();
    std::vector<Task> tasks;
    for (std::size_t i = 0; i < participants_.size(); ++i) {
      // The timeline is the largest file by far and needs nothing else.
      tasks.push_back([this, i](Database& database) { return WriteTimeline(database, i); });
      tasks.push_back([this, i](Database& database) { return WriteTree(database, i); });
    }
    if (has_aggregates) {
      tasks.push_back([this](Database& database) {
        return WriteAllChromiumEvents(database, root_, participants_);
      });
    }
    RETURN_IF_ERROR(RunTasks(database_, tasks, ThreadCount(options_)));
    if (has_aggregates) RETURN_IF_ERROR(WriteAggregates());
    ReportSummary summary;
    summary.logs = static_cast<std::int64_t>(participants_.size());
    for (const ParticipantFacts& facts : facts_) summary.files += facts.files;
    return summary;
  }

 private:
  // Calls `use` with the context of participant `index`.
  template <typename Use>
  Result<void> WithContext(Database& database, std::size_t index, Use use) {
    const Participant& participant = participants_[index];
    if (participant.directory.empty()) {
      return use(ReportContext{database, root_, root_, participant, options_, shared_, failures_});
    }
    ASSIGN_OR_RETURN(const Directory directory, root_.Child(participant.directory));
    return use(
        ReportContext{database, root_, directory, participant, options_, shared_, failures_});
  }

  Result<void> WriteTimeline(Database& database, std::size_t index) {
    return WithContext(database, index, WriteChromiumEvents);
  }

  Result<void> WriteTree(Database& database, std::size_t index) {
    return WithContext(database, index, [&](const ReportContext& context) -> Result<void> {
      ASSIGN_OR_RETURN(const TreePlan plan, PlanTree(database, context.participant, options_));
      RETURN_IF_ERROR(WriteArtifactFiles(context, plan));
      RETURN_IF_ERROR(WriteCompileDirectory(context, plan));
      RETURN_IF_ERROR(WriteRawJsonl(context, plan));
      RETURN_IF_ERROR(WriteFailures(context, plan));
      RETURN_IF_ERROR(WriteCollectivesParity(context, plan));
      if (options_.inductor_provenance) RETURN_IF_ERROR(WriteProvenancePages(context, plan));
      RETURN_IF_ERROR(WriteIndexPage(context, plan));
      facts_[index] = FactsOf(context, plan);
      return {};
    });
  }

  Result<void> WriteAggregates() {
    RETURN_IF_ERROR(WriteCollectiveSchedules(database_, root_, participants_, facts_));
    RETURN_IF_ERROR(WriteRuntimeEstimates(database_, root_, participants_, facts_));
    return WriteRunIndex(root_, options_, participants_, facts_);
  }

  Database& database_;
  const Directory& root_;
  const ReportOptions& options_;
  std::vector<Participant> participants_;
  std::vector<FailureRow> failures_;
  std::vector<ParticipantFacts> facts_;
  SharedContent shared_;
};

}  // namespace

Result<ReportSummary> WriteReport(Database& database, const Directory& directory,
                                  const ReportOptions& options) {
  return Reporter(database, directory, options).Run();
}

}  // namespace tlparse

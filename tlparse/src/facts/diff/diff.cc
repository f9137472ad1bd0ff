#include "facts/diff/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "artifacts/common/text/normalize.h"
#include "facts/contents/graph_difference.h"
#include "facts/diff/break_changes.h"
#include "facts/diff/lookup_changes.h"
#include "facts/job/job.h"
#include "facts/job/read_transaction.h"
#include "facts/text/text_diff.h"

namespace tlparse {
namespace {

using Texts = std::vector<std::string>;

// Elements of `b` beyond those of `a`, counting repetitions.
Texts MultisetDifference(const Texts& a, const Texts& b) {
  std::map<std::string, int> count;
  for (const std::string& text : a) ++count[text];
  Texts result;
  for (const std::string& text : b) {
    if (count[text]-- <= 0) result.push_back(text);
  }
  return result;
}

// The same by key; the texts are returned.
Texts FactDifference(const std::vector<FactText>& a, const std::vector<FactText>& b) {
  std::map<std::string, int> count;
  for (const FactText& fact : a) ++count[fact.key];
  Texts result;
  for (const FactText& fact : b) {
    if (count[fact.key]-- <= 0) result.push_back(fact.text);
  }
  return result;
}

// Guards of the same value in the same line of code are one guard that changed.
void CompareGuards(const std::vector<FactText>& a, const std::vector<FactText>& b,
                   CompileChange& change) {
  const auto only = [](const std::vector<FactText>& own, const std::vector<FactText>& other) {
    std::set<std::string_view> keys;
    for (const FactText& guard : other) keys.insert(guard.key);
    std::vector<const FactText*> result;
    for (const FactText& guard : own) {
      if (!keys.contains(guard.key)) result.push_back(&guard);
    }
    return result;
  };
  std::multimap<std::string_view, const FactText*> gone;
  const std::vector<const FactText*> only_a = only(a, b);
  for (const FactText* guard : only_a) {
    if (!guard->subject.empty()) gone.emplace(guard->subject, guard);
  }
  std::set<const FactText*> is_changed;
  Texts new_texts, gone_texts;
  for (const FactText* guard : only(b, a)) {
    const auto found = gone.find(guard->subject);
    if (found == gone.end()) {
      new_texts.push_back(guard->text);
      continue;
    }
    std::string before = found->second->text;
    if (found->second->at == guard->at && !guard->at.empty())
      before.resize(before.rfind(" at: " + guard->at));
    if (before == guard->text) ++change.alike_guard_count;
    if (before != guard->text)
      change.changed_guards.push_back(fmt::format("{} → {}", before, guard->text));
    is_changed.insert(found->second);
    gone.erase(found);
  }
  for (const FactText* guard : only_a)
    if (!is_changed.contains(guard)) gone_texts.push_back(guard->text);
  // Equal as shown: what differs is what only generated code names.
  change.new_guards = MultisetDifference(gone_texts, new_texts);
  change.vanished_guards = MultisetDifference(new_texts, gone_texts);
  change.alike_guard_count += std::ssize(new_texts) - std::ssize(change.new_guards);
}

std::vector<PhaseChange> ComparePhases(const std::map<std::string, std::int64_t>& a,
                                       const std::map<std::string, std::int64_t>& b) {
  std::vector<PhaseChange> changes;
  for (const char* const phase : kCompilePhases) {
    const auto old_one = a.find(phase), new_one = b.find(phase);
    const auto value = [](const auto& found, const auto& end) {
      return found == end ? std::nullopt : std::optional(found->second);
    };
    const std::optional<std::int64_t> before = value(old_one, a.end());
    const std::optional<std::int64_t> after = value(new_one, b.end());
    if (before || after) changes.push_back({phase, before, after});
  }
  return changes;
}

std::string_view FileName(std::string_view path) {
  return path.substr(path.find_last_of("/\\") + 1);
}

class Differ {
 public:
  Differ(Database& a, Database& b, const ParticipantFacts& a_facts, const ParticipantFacts& b_facts,
         const DiffOptions& options)
      : a_(a), b_(b), a_facts_(a_facts), b_facts_(b_facts), options_(options) {}
  Result<DiffAnswer> Run();
  const CompilePairs& compile_pairs() const { return compile_pairs_; }  // after Run

 private:
  std::vector<std::pair<int, int>> Match() const;
  Result<CompileChange> Compare(const CompileFacts& a, const CompileFacts& b);
  Result<void> CompareCodes(const CompileFacts& a, const CompileFacts& b, CompileChange& change);
  Result<void> CompareDynamoGraphs(const CompileFacts& a, const CompileFacts& b,
                                   CompileChange& change);
  Database& a_;
  Database& b_;
  const ParticipantFacts& a_facts_;
  const ParticipantFacts& b_facts_;
  const DiffOptions& options_;
  CompilePairs compile_pairs_;
};

std::vector<std::pair<int, int>> Differ::Match() const {
  std::vector<int> partner_of_b(b_facts_.compiles.size(), -1);
  std::vector<char> is_taken(a_facts_.compiles.size());
  const auto pass = [&](auto&& key_of) {
    std::map<Texts, std::vector<int>> free_ones;  // in order
    for (std::size_t i = 0; i < a_facts_.compiles.size(); ++i) {
      if (is_taken[i] == 0) free_ones[key_of(a_facts_.compiles[i])].push_back(static_cast<int>(i));
    }
    for (std::size_t i = 0; i < b_facts_.compiles.size(); ++i) {
      if (partner_of_b[i] >= 0) continue;
      const auto found = free_ones.find(key_of(b_facts_.compiles[i]));
      if (found == free_ones.end() || found->second.empty()) continue;
      partner_of_b[i] = found->second.front();
      found->second.erase(found->second.begin());
      is_taken[static_cast<std::size_t>(partner_of_b[i])] = 1;
    }
  };
  // The same name in another file is another function, most often: those are paired last.
  for (const bool with_file : {true, false}) {
    const auto name = [&](const CompileFacts& c) {
      if (with_file) return fmt::format("{}\n{}", c.function, FileName(c.file));
      // A lambda of another file has nothing in common but its graph.
      if (!c.function.starts_with('<')) return c.function;
      return c.function + '\n' + (c.graph_hash.empty() ? c.file : c.graph_hash);
    };
    pass([&](const CompileFacts& c) { return Texts{name(c), c.graph_hash, c.key}; });
    pass([&](const CompileFacts& c) { return Texts{name(c), c.graph_hash}; });
    pass([&](const CompileFacts& c) { return Texts{name(c), c.key}; });
    // Frame ids move where more or fewer functions were compiled; a function's compiles keep their
    // order. Without a name nothing shows that two compiles are the same.
    pass([&](const CompileFacts& c) {
      const bool has_name = !c.function.empty();
      return Texts{name(c), has_name ? c.key.substr(c.key.rfind('/') + 1) : c.key};
    });
    pass([&](const CompileFacts& c) {
      return Texts{name(c), c.function.empty() ? c.key : std::string()};
    });
  }
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < partner_of_b.size(); ++i) {
    if (partner_of_b[i] >= 0) pairs.emplace_back(partner_of_b[i], static_cast<int>(i));
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

Result<void> Differ::CompareCodes(const CompileFacts& a, const CompileFacts& b,
                                  CompileChange& change) {
  for (const FactCode& code : b.codes) {
    const auto other = std::find_if(a.codes.begin(), a.codes.end(),
                                    [&](const FactCode& c) { return c.title == code.title; });
    if (other == a.codes.end() || other->content_hash == code.content_hash) continue;
    CodeChange one{code.title, {}, other->record_id, code.record_id};
    if (options_.with_code) {
      const auto load = [](Database& database, std::int64_t record_id) -> Result<std::string> {
        ASSIGN_OR_RETURN(const std::string text,
                         database.QueryText(fmt::format("SELECT p.content FROM record_row r "
                                                        "JOIN payload_row p ON p.id = r.payload_id "
                                                        "WHERE r.id = {}",
                                                        record_id)));
        std::string buffer;
        return std::string(NormalizeCode(text, buffer));
      };
      ASSIGN_OR_RETURN(const std::string a_text, load(a_, other->record_id));
      ASSIGN_OR_RETURN(const std::string b_text, load(b_, code.record_id));
      one.diff = UnifiedDiff(a_text, b_text, "a/" + code.title, "b/" + code.title);
    }
    change.codes.push_back(std::move(one));
  }
  return {};
}

Result<void> Differ::CompareDynamoGraphs(const CompileFacts& a, const CompileFacts& b,
                                         CompileChange& change) {
  change.has_same_graph = a.graph_hash == b.graph_hash;
  if (change.has_same_graph || a.graph_content == 0 || b.graph_content == 0) return {};
  ASSIGN_OR_RETURN(const GraphDifference difference,
                   CompareGraphs(a_, a.graph_content, b_, b.graph_content));
  if (!difference.differs) {
    ASSIGN_OR_RETURN(change.has_other_comments_only,
                     DifferInComments(a_, a.graph_content, b_, b.graph_content));
    return {};
  }
  change.graph_difference = NodeChange(difference.a_node, difference.b_node);
  if (!difference.Source().empty()) change.graph_difference += " at " + difference.Source();
  return {};
}

Result<CompileChange> Differ::Compare(const CompileFacts& a, const CompileFacts& b) {
  CompileChange change;
  change.a_id = a.id;
  change.b_id = b.id;
  change.a_label = a.label;
  change.b_label = b.label;
  change.function = b.function;
  change.a_file = a.file;
  change.b_file = b.file;
  change.a_status = a.status;
  change.b_status = b.status;
  change.a_cuda_graphs = a.cuda_graphs;
  change.b_cuda_graphs = b.cuda_graphs;
  change.phases = ComparePhases(a.phases_us, b.phases_us);
  change.new_recompiles = FactDifference(a.recompile_reasons, b.recompile_reasons);
  change.vanished_recompiles = FactDifference(b.recompile_reasons, a.recompile_reasons);
  CompareBreaks(a.graph_breaks, b.graph_breaks, change);
  change.a_guard_count = static_cast<std::int64_t>(a.guards.size());
  change.b_guard_count = static_cast<std::int64_t>(b.guards.size());
  if (!a.guards.empty() && !b.guards.empty()) {
    CompareGuards(a.guards, b.guards, change);
  }
  change.a_kernel_count = static_cast<std::int64_t>(a.kernels.size());
  change.b_kernel_count = static_cast<std::int64_t>(b.kernels.size());
  if (!a.kernels.empty() && !b.kernels.empty()) {
    change.new_kernels = MultisetDifference(a.kernels, b.kernels);
    change.vanished_kernels = MultisetDifference(b.kernels, a.kernels);
  }
  RETURN_IF_ERROR(CompareDynamoGraphs(a, b, change));
  ASSIGN_OR_RETURN(change.caches, CompareLookups({a_, a_facts_, a}, {b_, b_facts_, b}));
  RETURN_IF_ERROR(CompareCodes(a, b, change));
  return change;
}

Result<DiffAnswer> Differ::Run() {
  DiffAnswer answer;
  answer.a_title = a_facts_.title;
  answer.b_title = b_facts_.title;
  answer.a_torch_version = a_facts_.torch_version;
  answer.b_torch_version = b_facts_.torch_version;
  answer.a_python_version = a_facts_.python_version;
  answer.b_python_version = b_facts_.python_version;
  std::map<std::string, std::int64_t> a_sums, b_sums;
  std::vector<char> a_matched(a_facts_.compiles.size()), b_matched(b_facts_.compiles.size());
  compile_pairs_.clear();
  for (const auto& [a, b] : Match()) {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    a_matched[i] = b_matched[j] = 1;
    compile_pairs_.emplace_back(a_facts_.compiles[i].id, b_facts_.compiles[j].id);
    ASSIGN_OR_RETURN(CompileChange change, Compare(a_facts_.compiles[i], b_facts_.compiles[j]));
    const Phases& a_phases = a_facts_.compiles[i].phases_us;
    const Phases& b_phases = b_facts_.compiles[j].phases_us;
    if (change.IsFinished() && a_phases.count("total") != 0 && b_phases.count("total") != 0) {
      ++answer.timed_count;
      for (const auto& [phase, us] : a_phases) a_sums[phase] += us;
      for (const auto& [phase, us] : b_phases) b_sums[phase] += us;
    }
    answer.compiles.push_back(std::move(change));
  }
  answer.phases = ComparePhases(a_sums, b_sums);
  const auto unmatched = [](const ParticipantFacts& facts, const std::vector<char>& matched,
                            std::vector<UnmatchedCompile>& out) {
    for (std::size_t i = 0; i < matched.size(); ++i) {
      const CompileFacts& compile = facts.compiles[i];
      if (matched[i] != 0) continue;
      const auto total = compile.phases_us.find("total");
      UnmatchedCompile one{compile.id,
                           compile.label,
                           compile.function,
                           compile.status,
                           {},
                           total == compile.phases_us.end() ? 0 : total->second};
      for (const FactText& reason : compile.recompile_reasons)
        one.recompile_reasons.push_back(reason.text);
      out.push_back(std::move(one));
    }
  };
  unmatched(a_facts_, a_matched, answer.only_a);
  unmatched(b_facts_, b_matched, answer.only_b);
  return answer;
}

Result<RankIndex> FindRank(const Job& job, const std::optional<std::string>& rank) {
  if (!rank) return RankIndex{0};
  for (std::size_t i = 0; i < job.participants().size(); ++i) {
    if (job.participants()[i].name == *rank) return static_cast<RankIndex>(i);
  }
  return Fail(ErrorCode::kNotFound,
              fmt::format("run '{}' has no rank '{}'", job.run_name(), *rank));
}

}  // namespace

bool CompileChange::IsFinished() const {
  return tlparse::IsFinished(a_status) && tlparse::IsFinished(b_status);
}

bool CompileChange::HasOtherFile() const {
  return !a_file.empty() && !b_file.empty() && FileName(a_file) != FileName(b_file);
}

bool CompileChange::IsEqual() const {
  return has_same_graph && a_status == b_status && new_recompiles.empty() &&
         vanished_recompiles.empty() && new_graph_breaks.empty() && vanished_graph_breaks.empty() &&
         changed_graph_breaks.empty() && (a_guard_count == 0) == (b_guard_count == 0) &&
         (a_kernel_count == 0) == (b_kernel_count == 0) && new_guards.empty() &&
         vanished_guards.empty() && changed_guards.empty() && new_kernels.empty() &&
         vanished_kernels.empty() && caches.empty() && codes.empty() &&
         a_cuda_graphs.IsAlike(b_cuda_graphs);
}

bool DiffAnswer::IsEqual() const {
  // A version that is not in a log is no difference.
  const auto is_same = [](const std::string& a, const std::string& b) {
    return a.empty() || b.empty() || a == b;
  };
  return HasLogs() && only_a.empty() && only_b.empty() &&
         is_same(a_torch_version, b_torch_version) && is_same(a_python_version, b_python_version) &&
         std::all_of(compiles.begin(), compiles.end(),
                     [](const CompileChange& change) { return change.IsEqual(); });
}

namespace {

// Profiles of one participant; where it is all of the run, those that no log is joined with too.
MeasuredSide MeasuredSideOf(Database& database, const Job& job, RankIndex rank) {
  const JobParticipant& participant = job.participants()[static_cast<std::size_t>(rank)];
  const bool is_all = job.participants().size() == 1 && job.launch_count() == 1;
  return {&database, job.run_id(), participant.rank,
          is_all ? std::vector<std::int64_t>() : participant.process_ids};
}

}  // namespace

Result<std::shared_ptr<const Job>> JobOf(const DiffSide& side) {
  if (side.job) return side.job;
  ASSIGN_OR_RETURN(Job job, Job::Load(*side.database, side.run, side.launch));
  return std::make_shared<const Job>(std::move(job));
}

Result<DiffAnswer> AnalyzeDiff(const DiffSide& a, const DiffSide& b, const DiffOptions& options) {
  ASSIGN_OR_RETURN(const ReadTransaction a_transaction, ReadTransaction::Begin(*a.database));
  ASSIGN_OR_RETURN(const ReadTransaction b_transaction, ReadTransaction::Begin(*b.database));
  ASSIGN_OR_RETURN(const std::shared_ptr<const Job> a_job, JobOf(a));
  ASSIGN_OR_RETURN(const std::shared_ptr<const Job> b_job, JobOf(b));
  ASSIGN_OR_RETURN(const RankIndex a_rank, FindRank(*a_job, a.rank));
  ASSIGN_OR_RETURN(const RankIndex b_rank, FindRank(*b_job, b.rank));
  ASSIGN_OR_RETURN(const ParticipantFacts a_facts,
                   LoadParticipantFacts(*a.database, *a_job, a_rank));
  ASSIGN_OR_RETURN(const ParticipantFacts b_facts,
                   LoadParticipantFacts(*b.database, *b_job, b_rank));
  Differ differ(*a.database, *b.database, a_facts, b_facts, options);
  ASSIGN_OR_RETURN(DiffAnswer answer, differ.Run());
  ASSIGN_OR_RETURN(answer.measured, CompareMeasured(MeasuredSideOf(*a.database, *a_job, a_rank),
                                                    MeasuredSideOf(*b.database, *b_job, b_rank),
                                                    differ.compile_pairs()));
  answer.a_rank = a_job->participants()[static_cast<std::size_t>(a_rank)].name;
  answer.b_rank = b_job->participants()[static_cast<std::size_t>(b_rank)].name;
  return answer;
}

}  // namespace tlparse

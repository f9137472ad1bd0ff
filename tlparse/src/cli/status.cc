// tlparse status <db>: the roles and processes of a job: where the log of each ends, and how it did.
#include "facts/job/status.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "cli/answer.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/end_output.h"
#include "cli/rank_fields.h"
#include "cli/rank_output.h"
#include "cli/role_output.h"
#include "cli/schemas.h"
#include "cli/status_fields.h"
#include "cli/status_filter.h"
#include "facts/job/hangs.h"
#include "facts/job/job_tree.h"
#include "facts/job/not_looked_for.h"
#include "facts/job/participants.h"
#include "facts/ranks/unread_inputs.h"

namespace tlparse {
namespace {

std::string StateText(RankState state) {
  std::string text(Name(state));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

struct Shown {
  StatusAnswer status;
  JobTree tree;
  std::vector<UnreadInput> unread;  // of the run
  std::vector<Hang> hangs;          // of the run
  std::vector<ProcessExit> exits;   // of the run
  std::string why_none;             // empty: the run has logs
  std::string only;                 // with --rank or --process
};

// Processes that are shown in one line: alike but for their numbers and times.
struct Alike {
  std::vector<const ProcessStatus*> rows;
  std::vector<Alike> children;  // of all of them
};

using RowsOfParent = std::unordered_map<std::int64_t, std::vector<const ProcessStatus*>>;

std::string LikenessOf(const JobTree& tree, const ProcessStatus& row,
                       const RowsOfParent& children) {
  const TreeNode* const node = tree.Find(row.process_id);
  std::string text = fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", node == nullptr ? 0 : node->role_id,
                                 node == nullptr ? std::string() : node->child_kind,
                                 Name(row.state), row.is_backward, row.compile, row.function,
                                 row.phase, row.readable_bytes.has_value());
  // Ranks with a number are alike; each log without rank has a line.
  if (!row.rank) text += fmt::format("|{}", row.process_id);
  if (const auto own = children.find(row.process_id); own != children.end()) {
    std::vector<std::string> kinds;
    for (const ProcessStatus* const child : own->second)
      kinds.push_back(tree.Find(child->process_id)->child_kind);
    std::sort(kinds.begin(), kinds.end());
    for (const std::string& kind : kinds) text += '|' + kind;
  }
  return text;
}

// is_apart: each row stands alone.
std::vector<Alike> Fold(const JobTree& tree, const std::vector<const ProcessStatus*>& rows,
                        const RowsOfParent& children, bool is_apart) {
  std::vector<Alike> groups;
  std::unordered_map<std::string, std::size_t> index;
  for (const ProcessStatus* const row : rows) {
    const auto [found, is_new] = index.try_emplace(
        is_apart ? std::to_string(row->process_id) : LikenessOf(tree, *row, children),
        groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].rows.push_back(row);
  }
  for (Alike& group : groups) {
    std::vector<const ProcessStatus*> own;
    for (const ProcessStatus* const row : group.rows) {
      if (const auto found = children.find(row->process_id); found != children.end())
        own.insert(own.end(), found->second.begin(), found->second.end());
    }
    if (!own.empty()) group.children = Fold(tree, own, children, false);
  }
  return groups;
}

// The processes without a known parent; those of others are their children.
std::vector<Alike> Tree(const Shown& shown) {
  RowsOfParent children;
  std::vector<const ProcessStatus*> top;
  std::set<std::int64_t> ids;
  for (const ProcessStatus& row : shown.status.rows) ids.insert(row.process_id);
  for (const ProcessStatus& row : shown.status.rows) {
    const TreeNode* const node = shown.tree.Find(row.process_id);
    if (node != nullptr && node->parent_process_id && ids.contains(*node->parent_process_id)) {
      children[*node->parent_process_id].push_back(&row);
    } else {
      top.push_back(&row);
    }
  }
  constexpr std::size_t kMostApart = 16;  // of more, those alike share a line
  return Fold(shown.tree, top, children, top.size() <= kMostApart);
}

// "0-6"; "0,0#2".
std::string KindOfChild(const JobTree& tree, const Alike& group) {
  std::string kind = tree.Find(group.rows.front()->process_id)->child_kind;
  std::replace(kind.begin(), kind.end(), '_', ' ');
  return group.rows.size() == 1 ? kind : fmt::format("{} {}s", group.rows.size(), kind);
}

void AddGroups(Table& table, const Shown& shown, const std::vector<Alike>& groups, int depth,
               const std::optional<std::int64_t>& latest) {
  constexpr std::size_t kMostGroups = 24;
  for (std::size_t i = 0; i < groups.size() && i < kMostGroups; ++i) {
    const Alike& group = groups[i];
    const ProcessStatus& row = *group.rows.front();
    std::optional<std::int64_t> since, first = row.last_record_us, last;
    std::int64_t least_done = row.compiles_done, most_done = row.compiles_done;
    for (const ProcessStatus* const one : group.rows) {
      if (one->since_us && (!since || *one->since_us < *since)) since = one->since_us;
      if (one->last_record_us && (!first || *one->last_record_us < *first))
        first = one->last_record_us;
      last = std::max(last, one->last_record_us);
      least_done = std::min(least_done, one->compiles_done);
      most_done = std::max(most_done, one->compiles_done);
    }
    const bool is_one = group.rows.size() == 1;
    table.Add({depth > 0 ? "  " + KindOfChild(shown.tree, group) : RanksOfRows(group.rows),
               is_one ? std::to_string(row.pid) : fmt::format("{} processes", group.rows.size()),
               StateText(row.state) + (row.is_backward ? " backward" : "") +
                   (row.readable_bytes ? ", log damaged" : ""),
               row.compile, row.function, row.phase, DayTimeText(since), DayTimeText(last),
               first && latest ? HumanDuration(static_cast<double>(*latest - *first) / 1e6) : "",
               least_done == most_done ? std::to_string(most_done)
                                       : fmt::format("{}-{}", least_done, most_done)});
    AddGroups(table, shown, group.children, depth + 1, latest);
  }
  if (groups.size() > kMostGroups)
    table.Add({fmt::format("and {} more", groups.size() - kMostGroups), "", "(--json)", "", "", "",
               "", "", "", ""});
}

void Print(const Shown& shown) {
  const StatusAnswer& answer = shown.status;
  std::optional<std::int64_t> latest;
  for (const ProcessStatus& row : answer.rows) latest = std::max(latest, row.last_record_us);
  PrintHeading(fmt::format(
      "run {}{}: {}", answer.run,
      answer.launch_count > 1 ? fmt::format(", launch {} of {}", answer.launch, answer.launch_count)
                              : "",
      answer.Contents()));
  if (!shown.why_none.empty()) std::puts(shown.why_none.c_str());
  PrintRoles(shown.tree.roles);
  Table table({{"rank"},
               {"pid", Table::Align::kLeft, 1},
               {"state"},
               {"compile"},
               {"function"},
               {"in"},
               {"since (UTC)", Table::Align::kLeft, 2},
               {"last record (UTC)"},
               {"behind", Table::Align::kRight},
               {"done", Table::Align::kRight, 3}});
  AddGroups(table, shown, Tree(shown), 0, latest);
  const auto add = [&](const std::optional<std::int64_t>& rank, std::string_view state) {
    table.Add(
        {rank ? std::to_string(*rank) : "", "", std::string(state), "", "", "", "", "", "", ""});
  };
  for (const StatusAnswer::EmptyLog& log : answer.empty_logs) add(log.rank, "no record");
  for (const UnreadInput& input : shown.unread)
    if (input.is_log) add(input.rank, "not read");
  if (!table.empty()) table.Print();
  PrintEnds(shown.status.rows, shown.tree);
  PrintHangs(shown.hangs, shown.exits);
  for (const UnreadInput& input : shown.unread)
    PrintWrapped(fmt::format("not read: {}: {}", input.path, input.reason), 0, 2);
  const bool has_unread = std::any_of(answer.rows.begin(), answer.rows.end(),
                                      [](const ProcessStatus& row) { return row.readable_bytes; });
  if (has_unread)
    PrintWrapped(
        "log damaged: the compressed file is cut or damaged (tlparse import-log). The row is of "
        "the last record that could be read; what came after is not known.",
        0, 2);
  if (!shown.only.empty()) PrintWrapped(shown.only, 0, 2);
}

const TreeNode& NodeOf(const ProcessStatus& of, const Shown& in) {
  static const TreeNode kNone;
  const TreeNode* const found = in.tree.Find(of.process_id);
  return found == nullptr ? kNone : *found;
}

// A member of the node of a process; null: an empty text.
template <auto member>
auto OfNode(const ProcessStatus& of, const Shown& in) {
  if constexpr (std::is_same_v<decltype(member), std::string TreeNode::*>) {
    return OrNull{member}(NodeOf(of, in));
  } else {
    return NodeOf(of, in).*member;
  }
}

std::optional<std::string_view> RoleOf(const ProcessStatus& of, const Shown& in) {
  const TreeRole* const role = in.tree.RoleOf(of.process_id);
  return role == nullptr ? std::nullopt : OrNull{&TreeRole::name}(*role);
}

constexpr std::string_view kChildKinds[] = {"loader_worker", "compile_worker", "pool_worker",
                                            "forked", "program"};
constexpr std::string_view kEnds[] = {"finished", "failed", "killed", "silent", "running"};

Result<Shown> LoadShown(Database& database, const StatusOptions& options) {
  Shown shown;
  ASSIGN_OR_RETURN(const std::int64_t run_id, FindRun(database, options.run));
  ASSIGN_OR_RETURN(shown.status, AnalyzeStatus(database, options));
  ASSIGN_OR_RETURN(shown.unread, UnreadInputs(database, run_id));
  ASSIGN_OR_RETURN(shown.hangs, LoadHangs(database, run_id));
  if (!shown.hangs.empty()) {
    ASSIGN_OR_RETURN(shown.exits, LoadExits(database, run_id));
  }
  ASSIGN_OR_RETURN(
      shown.why_none,
      NotLookedFor(database, run_id, "of its text of TORCH_LOGS see 'tlparse recompiles'"));
  ASSIGN_OR_RETURN(shown.tree, LoadJobTree(database, run_id, shown.status.launch));
  return shown;
}

}  // namespace

template <>
struct FieldsOf<TreeEnd> {
  using Of = TreeEnd;
  static constexpr FieldList list{
      Field{"kind", &Of::kind, "", kEnds},
      Field{"last_us", &Of::last_us, "when it ended, where run.json says so, else its last record"},
      Field{"exit_code", &Of::exit_code},
      Field{"signal", &Of::signal},
      Field{"is_bystander", &Of::is_bystander, "it stopped after another had failed or stopped"},
      Field{"ended_by_process_id", &Of::ended_by_process_id,
            "the process that failed or stopped before it; null: none, or it has no log"},
      Field{"evidence", &Of::evidence},
  };
};

template <>
struct FieldsOf<ProcessStatus> {
  using Of = ProcessStatus;
  static constexpr FieldList list{
      Field{"launch", &Of::launch},
      Field{"rank", &Of::rank},
      Field{"pid", &Of::pid},
      Field{"state", &Of::state},
      Field{"compile", OrNull{&Of::compile}, "label of the last compile"},
      Field{"function", OrNull{&Of::function}},
      Field{"is_backward", &Of::is_backward,
            "compiling: the log ends inside the backward of that compile"},
      Field{"phase", OrNull{&Of::phase}, "the innermost event that is open"},
      Field{"since_us", &Of::since_us},
      Field{"first_record_us", &Of::first_record_us},
      Field{"last_record_us", &Of::last_record_us},
      Field{"compiles_done", &Of::compiles_done},
      Field{"process_id", &Of::process_id},
      Field{"readable_bytes", &Of::readable_bytes,
            "the compressed log is cut or damaged, and can be read up to this byte of its text: "
            "the row is of the last record before, and what came after is not known; null: it was "
            "read whole"},
      Field{"log", &Of::log_path},
      Field{"role", &RoleOf,
            "name of its role; null: a child, a log without rank, a further log of a rank"},
      Field{"parent_process_id", &OfNode<&TreeNode::parent_process_id>,
            "of a child: the process of the rank that started it"},
      Field{"child_kind", &OfNode<&TreeNode::child_kind>, "", kChildKinds},
      Field{"child_evidence", &OfNode<&TreeNode::child_evidence>, "what shows that it is a child"},
      Field{"end", &OfNode<&TreeNode::end>,
            "how the process ended, as far as known; null: the job is still watched"},
  };
};

template <>
struct FieldsOf<HangPlace> {
  using Of = HangPlace;
  static constexpr FieldList list{
      Field{"ranks", &Of::ranks, "empty: a process without rank"},
      Field{"who", &Of::who},
      Field{"where", &Of::where, "of the main thread: file, line, function, and what it called"},
  };
};

template <>
struct FieldsOf<Hang> {
  using Of = Hang;
  static constexpr FieldList list{
      Field{"time_us", &Of::time_us},
      Field{"why", &Of::why},
      Field{"was_ended", &Of::was_ended, "tlparse run ended the command then (--on-hang kill)"},
      Field{"has_gone_on", [](const Of& of, const Shown& in) { return HasGoneOn(of, in.exits); },
            "all ranks that ended after it did so with exit code 0"},
      Field{"places", &Of::places, "where the processes were; empty: no stack was taken"},
  };
};

template <>
struct FieldsOf<StatusAnswer> {
  using Of = StatusAnswer;
  static constexpr std::string_view description =
      "Where each process of one launch stands at the end of its log. Times are microseconds since "
      "the epoch, UTC; null: unknown.";
  static constexpr FieldList list{
      Field{"run", &Of::run},
      Field{"launch", &Of::launch},
      Field{"launch_count", AtLeast<1>(&Of::launch_count)},
      Field{
          "roles",
          [](const Of&, const Shown& in) -> const std::vector<TreeRole>& { return in.tree.roles; },
          kRolesDescription},
      Field{"rows", &Of::rows},
      Field{"logs_without_records", &Of::empty_logs,
            "logs of the launch that hold no record, so that nothing is known of their process"},
      Field{
          "other_files", &Of::other_files,
          "profiles, dumps and other files of the run beside logs: where their ranks stand is not "
          "in a row"},
      Field{"inputs_not_read",
            [](const Of&, const Shown& in) -> const std::vector<UnreadInput>& { return in.unread; },
            "files and directories of the run that could not be opened: what they hold is unknown"},
      Field{"hangs",
            [](const Of&, const Shown& in) -> const std::vector<Hang>& { return in.hangs; },
            "when tlparse run judged that the command hangs"},
      Missable{"only",
               [](const Of&, const Shown& in) {
                 return in.only.empty() ? std::nullopt : std::optional(in.only);
               },
               kOnly},
  };
};

std::string StatusSchema() { return SchemaOf<StatusAnswer, Shown>("tlparse status --json"); }

int RunStatus(std::span<const std::string> arguments) {
  Arguments app(
      "The roles of the job's ranks, and the state of each process at the end of its log: in which "
      "compile and phase, since when, how long before the last record of all, and how it ended, as "
      "far as the inputs show it. Children of a rank stand below it; ranks that are alike have one "
      "line. A log does not show why it ends: that of a process that hangs looks like that of one "
      "that was killed.",
      "status");
  AnswerArguments common;
  StatusOptions options;
  AskedParticipant asked;
  bool stack = false;
  AddAnswerArguments(app, common);
  app.Add("--run", options.run, "the run of this name (default: the latest)");
  app.Add("--launch", options.launch, "this launch (1 is the first; default: the latest)")
      .Positive();
  AddAsked(app, asked);
  app.Flag("--stack", stack, "with the user's frames above a compile that is open or failed");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  return AnswerFrom(common.database, [&](Database& database) -> Result<void> {
    RETURN_IF_ERROR(CheckAskedOfLaunch(database, asked, options.run, options.launch));
    ASSIGN_OR_RETURN(Shown answer, LoadShown(database, options));
    answer.only = KeepAsked(asked, answer.tree, answer.status.rows);
    common.json ? PrintJson(ToJson(answer.status, answer)) : Print(answer);
    return stack && !common.json ? PrintStacks(database, answer.status.rows) : Result<void>();
  });
}

}  // namespace tlparse

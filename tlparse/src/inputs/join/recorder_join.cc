#include "inputs/join/recorder_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "inputs/common/collective_op.h"
#include "inputs/join/join_profile.h"
#include "inputs/join/recorder_code.h"
#include "queries/inputs/join/recorder_join.h"

namespace tlparse {
namespace {

// One entry of a dump.
struct Entry {
  std::int64_t run_id = 0;  // of collective_run_row
  std::string name;         // nccl:all_reduce
  std::int64_t group_id = 0;
  std::string group;
  std::int64_t sequence = -1;
  bool is_p2p = false;
  std::int64_t created_ns = 0;
  std::int64_t recorder_id = -1;
  std::int64_t stack_id = 0;    // 0: none
  bool has_own_frames = false;  // else stack_id is from another dump
  // Of its input; empty: of several, which the code of no collective has; nullopt: unknown.
  std::optional<std::string> shape;
};

// What an entry was joined with.
struct Link {
  std::int64_t graph_id = 0;
  std::int64_t code_line = 0;
  std::string file;  // the user's line
  std::int64_t line = 0;
  std::string reduce_op;
  std::string_view key;
  std::string note;
};

constexpr std::string_view kOutsideGraphs =
    "issued outside compiled graphs: no frame is a line of this process's generated code";
// The note of an entry of a dump without frames (JSON).
constexpr std::string_view kOutsideByOther =
    "issued outside compiled graphs: this dump has no frames, and in another dump of the rank no "
    "frame of this entry is a line of the process's generated code";

class RankJoin {
 public:
  RankJoin(Database& database, std::optional<std::int64_t> process_id)
      : database_(database), process_id_(process_id) {}

  // `profiles`: the dumps of one rank, the one to prefer first.
  Result<void> Run(const std::vector<std::int64_t>& profiles);

 private:
  Result<void> LoadEntries(std::int64_t profile_id);
  Result<const Link*> OfStack(const Entry& entry);
  Result<Link> ResolveStack(const Entry& entry);
  void FindPeers();
  void JoinByOrder();
  Result<void> Write();
  std::string_view MissingNote() const;

  Database& database_;
  std::optional<std::int64_t> process_id_;
  RecorderCode codes_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> primary_;  // of an entry: the index of the one that represents it
  std::vector<Link> links_;           // by entry; of primaries only
  std::unordered_map<std::int64_t, Link> stacks_;
};

// "[[8,16]]" → "[8, 16]", as the generated code is described.
std::optional<std::string> OnlyShape(std::string_view shapes) {
  if (shapes.size() < 4) return std::nullopt;
  if (shapes.find("],[") != std::string_view::npos) return std::string();
  std::string shape;
  for (const char c : shapes.substr(1, shapes.size() - 2)) {
    shape += c;
    if (c == ',') shape += ' ';
  }
  return shape;
}

Result<void> RankJoin::LoadEntries(std::int64_t profile_id) {
  FOR_EACH_ROW(const RecorderEntryToJoin& row,
               Query<RecorderEntryToJoin>(database_, {.profile_id = profile_id})) {
    Entry entry;
    entry.run_id = row.id;
    entry.name = row.name;
    entry.group_id = row.group_id;
    entry.group = row.group_name;
    entry.sequence = row.sequence_number.value_or(-1);
    entry.is_p2p = row.is_p2p;
    entry.created_ns = row.start_ns;
    entry.recorder_id = row.recorder_id.value_or(-1);
    entry.stack_id = row.stack_id;
    entry.has_own_frames = entry.stack_id != 0;
    entry.shape = OnlyShape(row.input_shapes);
    entries_.push_back(std::move(entry));
  }
  return {};
}

void RankJoin::FindPeers() {
  primary_.resize(entries_.size());
  std::map<
      std::tuple<std::int64_t, bool, std::int64_t, std::string_view, std::int64_t, std::int64_t>,
      std::size_t>
      first;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    primary_[i] = first
                      .try_emplace({entry.group_id, entry.is_p2p, entry.sequence, entry.name,
                                    entry.created_ns, entry.recorder_id},
                                   i)
                      .first->second;
  }
  // The hook records what the backend records as well: "c10d:allreduce" beside "gloo:all_reduce".
  std::map<std::tuple<std::int64_t, bool, std::int64_t>, std::vector<std::size_t>> of_backend;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (primary_[i] == i && !entry.name.starts_with("c10d:"))
      of_backend[{entry.group_id, entry.is_p2p, entry.sequence}].push_back(i);
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[primary_[i]];
    if (!entry.name.starts_with("c10d:")) continue;
    const auto found = of_backend.find({entry.group_id, entry.is_p2p, entry.sequence});
    if (found == of_backend.end()) continue;
    primary_[i] = *std::min_element(found->second.begin(), found->second.end(),
                                    [&](std::size_t a, std::size_t b) {
                                      return std::llabs(entries_[a].created_ns - entry.created_ns) <
                                             std::llabs(entries_[b].created_ns - entry.created_ns);
                                    });
  }
}

Result<Link> RankJoin::ResolveStack(const Entry& entry) {
  Link link;
  std::string unknown_file;
  const RecordedCode* code = nullptr;
  FOR_EACH_ROW(const FrameOfStack& frame,
               KeptQuery<FrameOfStack>(database_, {.stack_id = entry.stack_id})) {
    const std::string file(frame.file);
    if (code == nullptr && link.file.empty()) {
      code = codes_.At(file, entry.created_ns);
      if (code != nullptr) {
        link.key = "J1";
        link.graph_id = code->graph_id;
        link.code_line = frame.line;
        continue;
      }
      if (IsGeneratedFile(file)) {
        if (unknown_file.empty()) unknown_file = file;
        continue;
      }
    }
    if (link.file.empty() && !IsFrameOfTorch(file) && !IsGeneratedFile(file)) {
      link.file = file;
      link.line = frame.line;
    }
  }
  if (code != nullptr) {
    for (const RecordedCode::Collective& collective : code->collectives) {
      if (collective.line != link.code_line) continue;
      link.reduce_op = ReduceOp(collective.op, collective.arguments);
      if (!collective.group.empty() && collective.group != entry.group)
        link.note =
            fmt::format("the line of the generated code names the group '{}'", collective.group);
    }
  } else if (!process_id_) {
    link.note = MissingNote();
  } else if (!unknown_file.empty()) {
    link.note = fmt::format("the log of this process holds no code of the file {}", unknown_file);
  } else {
    link.note = kOutsideGraphs;
  }
  return link;
}

std::string_view RankJoin::MissingNote() const { return "no log of this process is in the run"; }

// A stack identifies one place of the program: the same for every entry, except that code may have
// been generated again at the same path.
Result<const Link*> RankJoin::OfStack(const Entry& entry) {
  const auto known = stacks_.find(entry.stack_id);
  if (known != stacks_.end() && known->second.graph_id == 0) return &known->second;
  ASSIGN_OR_RETURN(Link link, ResolveStack(entry));
  return &(stacks_[entry.stack_id] = std::move(link));
}

// J2: runs of entries without frames that are the collectives of exactly one graph.
void RankJoin::JoinByOrder() {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (primary_[i] == i && links_[i].key.empty() && entries_[i].stack_id == 0 &&
        !entries_[i].is_p2p)
      order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(entries_[a].created_ns, entries_[a].recorder_id) <
           std::pair(entries_[b].created_ns, entries_[b].recorder_id);
  });
  for (const std::size_t i : order)
    links_[i].note = process_id_ ? "no frames in this dump, and no graph of the log issues these "
                                   "collectives in this order"
                                 : MissingNote();
  for (std::size_t at = 0; at < order.size();) {
    const RecordedCode* best = nullptr;
    bool is_ambiguous = false;
    for (const auto& [path, codes] : codes_.by_path()) {
      for (const RecordedCode& code : codes) {
        const std::vector<RecordedCode::Collective>& wanted = code.collectives;
        if (wanted.empty() || wanted.size() > order.size() - at) continue;
        if (best != nullptr && wanted.size() < best->collectives.size()) continue;
        bool fits = code.time_us <= entries_[order[at]].created_ns / 1000 + 5000;
        for (std::size_t k = 0; fits && k < wanted.size(); ++k) {
          const Entry& entry = entries_[order[at + k]];
          fits = !wanted[k].group.empty() && wanted[k].group == entry.group &&
                 MayBeRecordedAs(wanted[k].op, entry.name) && !wanted[k].shape.empty() &&
                 (!entry.shape || wanted[k].shape == *entry.shape);
        }
        if (!fits) continue;
        is_ambiguous = best != nullptr && wanted.size() == best->collectives.size();
        best = &code;
      }
    }
    if (best == nullptr || is_ambiguous) {
      if (is_ambiguous)
        links_[order[at]].note =
            "no frames in this dump, and several graphs issue these collectives in this order";
      ++at;
      continue;
    }
    for (const RecordedCode::Collective& collective : best->collectives) {
      Link& link = links_[order[at++]];
      link = {best->graph_id,
              collective.line,
              {},
              0,
              ReduceOp(collective.op, collective.arguments),
              "J2",
              {}};
    }
  }
}

Result<void> RankJoin::Write() {
  ASSIGN_OR_RETURN(
      Statement * insert,
      database_.PrepareKept("INSERT "
                            "OR REPLACE INTO collective_run_link_row (collective_run_id, graph_id, "
                            "code_line, file_id, line, reduce_op, peer_id, join_key, note_id) "
                            "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"));
  std::unordered_map<std::string, std::int64_t> ids;
  const auto text_id = [&](const std::string& text) -> Result<std::optional<std::int64_t>> {
    if (text.empty()) return std::optional<std::int64_t>();
    std::int64_t& id = ids[text];
    if (id == 0) {
      ASSIGN_OR_RETURN(id, NoteId(database_, text));
    }
    return std::optional(id);
  };
  const auto some = [](std::int64_t number) {
    return number == 0 ? std::nullopt : std::optional(number);
  };
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Link& link = links_[primary_[i]];
    ASSIGN_OR_RETURN(const std::optional<std::int64_t> file, text_id(link.file));
    const bool is_by_other = !entries_[i].has_own_frames && link.note == kOutsideGraphs;
    ASSIGN_OR_RETURN(const std::optional<std::int64_t> note,
                     text_id(is_by_other ? std::string(kOutsideByOther) : link.note));
    insert->Bind(1, entries_[i].run_id);
    insert->Bind(2, some(link.graph_id));
    insert->Bind(3, some(link.code_line));
    insert->Bind(4, file);
    insert->Bind(5, some(link.line));
    const std::string_view reduce_op = link.reduce_op;
    reduce_op.empty() ? insert->BindNull(6) : insert->Bind(6, reduce_op);
    insert->Bind(7, primary_[i] == i ? std::nullopt : std::optional(entries_[primary_[i]].run_id));
    link.key.empty() ? insert->BindNull(8) : insert->Bind(8, link.key);
    insert->Bind(9, note);
    RETURN_IF_ERROR(insert->Run());
  }
  return {};
}

Result<void> RankJoin::Run(const std::vector<std::int64_t>& profiles) {
  RETURN_IF_ERROR(codes_.Load(database_, process_id_));
  for (const std::int64_t profile_id : profiles) RETURN_IF_ERROR(LoadEntries(profile_id));
  FindPeers();
  links_.resize(entries_.size());
  // Of the rows of one collective, the one with frames shows where it was issued.
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Link& link = links_[primary_[i]];
    if (entries_[i].stack_id == 0 || !link.key.empty()) continue;
    ASSIGN_OR_RETURN(const Link* found, OfStack(entries_[i]));
    link = *found;
    if (entries_[primary_[i]].stack_id == 0) entries_[primary_[i]].stack_id = entries_[i].stack_id;
  }
  JoinByOrder();
  return Write();
}

}  // namespace

Result<void> JoinRecorders(Database& database, std::int64_t run_id) {
  // The dumps of one rank: those of one process, or of one rank number where no log shows the process.
  std::map<std::tuple<bool, std::int64_t>, std::vector<std::int64_t>> by_rank;
  FOR_EACH_ROW(const RecorderDump& dump, Query<RecorderDump>(database, {.run_id = run_id})) {
    // A dump without process and rank is treated alone.
    by_rank[{dump.process_id.has_value(), dump.process_id.value_or(dump.rank.value_or(-dump.id))}]
        .push_back(dump.id);
  }
  for (const auto& [rank, profiles] : by_rank) {
    const std::optional<std::int64_t> process_id =
        std::get<0>(rank) ? std::optional(std::get<1>(rank)) : std::nullopt;
    RETURN_IF_ERROR(RankJoin(database, process_id).Run(profiles));
  }
  return {};
}

}  // namespace tlparse

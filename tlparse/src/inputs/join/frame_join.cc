#include "inputs/join/frame_join.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "inputs/join/join_profile.h"
#include "queries/inputs/join/frame_join.h"
#include "queries/inputs/join/join_profile.h"

namespace tlparse {
namespace {

struct Call {
  std::int64_t id = 0, thread_id = 0, start_ns = 0, end_ns = 0, graph_id = 0;
  std::set<std::int64_t> kernels;  // that a run in it is joined with
};
struct Frame {
  std::int64_t id = 0, thread_id = 0, start_ns = 0, end_ns = 0, line = 0;
  std::string file;
};
// An op, or a run of a CPU kernel, that is joined with no kernel.
struct Inner {
  std::int64_t id = 0, start_ns = 0, end_ns = 0;
  bool is_op = false;
};
struct Code {
  std::string path;
  std::map<std::int64_t, std::int64_t> kernels;  // ids, by the line of their call
};

constexpr std::string_view kOfFrame = "its time is that of the Python frame that called it";

class FrameJoiner {
 public:
  FrameJoiner(Database& database, std::int64_t profile_id)
      : database_(database), profile_id_(profile_id) {}

  Result<void> Run() {
    RETURN_IF_ERROR(LoadFrames());
    if (frames_.empty()) return {};
    RETURN_IF_ERROR(LoadCalls());
    // Kernels of a device take other times than the frames that enqueue them.
    if (has_device_kernels_) return {};
    for (Call& call : calls_) RETURN_IF_ERROR(JoinCall(call));
    return {};
  }

 private:
  Result<void> LoadFrames();
  Result<void> LoadCalls();
  Result<void> JoinCall(const Call& call);
  Result<const Code*> CodeOf(std::int64_t graph_id);
  Result<std::vector<Inner>> InnersOf(const Call& call);
  Result<void> Link(const Call& call, std::int64_t kernel_id, const Frame& frame,
                    const Inner* inner);
  Result<std::int64_t> AddRun(std::string_view table, std::string_view column, std::int64_t id);

  Database& database_;
  std::int64_t profile_id_;
  bool has_device_kernels_ = false;
  std::vector<Frame> frames_;  // of generated code, by thread and time
  std::vector<Call> calls_;
  std::map<std::int64_t, Code> codes_;  // by graph
};

Result<void> FrameJoiner::LoadFrames() {
  FOR_EACH_ROW(const FrameOfGeneratedCode& row,
               Query<FrameOfGeneratedCode>(database_, {.profile_id = profile_id_})) {
    frames_.push_back(
        {row.id, row.thread_id, row.start_ns, row.end_ns, row.line, std::string(row.file)});
  }
  return {};
}

Result<void> FrameJoiner::LoadCalls() {
  ASSIGN_OR_RETURN(const FirstRow<AnyDeviceKernel> any,
                   First(Query<AnyDeviceKernel>(database_, {.profile_id = profile_id_})));
  has_device_kernels_ = static_cast<bool>(any);
  std::map<std::int64_t, std::size_t> index;
  FOR_EACH_ROW(const CallOfGraph& row, Query<CallOfGraph>(database_, {.profile_id = profile_id_})) {
    index[row.id] = calls_.size();
    calls_.push_back({row.id, row.thread_id, row.start_ns, row.end_ns, row.graph_id, {}});
  }
  FOR_EACH_ROW(const KernelJoinedInCall& row,
               Query<KernelJoinedInCall>(database_, {.profile_id = profile_id_})) {
    const auto found = index.find(row.slice_id);
    if (found != index.end()) calls_[found->second].kernels.insert(row.kernel_id);
  }
  return {};
}

Result<const Code*> FrameJoiner::CodeOf(std::int64_t graph_id) {
  const auto [entry, is_new] = codes_.try_emplace(graph_id);
  if (!is_new) return &entry->second;
  Code& code = entry->second;
  ASSIGN_OR_RETURN(const FirstRow<PathOfGraphCode> path,
                   First(KeptQuery<PathOfGraphCode>(database_, {.graph_id = graph_id})));
  if (path) code.path = path->path;
  FOR_EACH_ROW(const KernelOfCodeLine& row,
               KeptQuery<KernelOfCodeLine>(database_, {.graph_id = graph_id})) {
    if (row.count == 1) code.kernels[row.code_line] = row.id;
  }
  return &code;
}

// In order of time, the longer of two that begin together first.
Result<std::vector<Inner>> FrameJoiner::InnersOf(const Call& call) {
  std::vector<Inner> inners;
  FOR_EACH_ROW(const InnerOfCall& row,
               KeptQuery<InnerOfCall>(
                   database_, {.profile_id = profile_id_,
                               .slice_id = call.id,
                               .thread_id = call.thread_id == 0 ? std::nullopt
                                                                : std::optional(call.thread_id)})) {
    inners.push_back({row.id, row.start_ns, row.end_ns, row.is_op});
  }
  std::sort(inners.begin(), inners.end(), [](const Inner& a, const Inner& b) {
    return std::pair(a.start_ns, -a.end_ns) < std::pair(b.start_ns, -b.end_ns);
  });
  return inners;
}

Result<void> FrameJoiner::JoinCall(const Call& call) {
  ASSIGN_OR_RETURN(const Code* const code, CodeOf(call.graph_id));
  if (code->path.empty()) return {};
  // The frames called from each line, in order: arguments of the call come before the call itself.
  std::map<std::int64_t, std::vector<const Frame*>> by_line;
  auto frame =
      std::lower_bound(frames_.begin(), frames_.end(), call, [](const Frame& one, const Call& of) {
        return std::pair(one.thread_id, one.start_ns) < std::pair(of.thread_id, of.start_ns);
      });
  for (; frame != frames_.end() && frame->thread_id == call.thread_id &&
         frame->start_ns < call.end_ns;
       ++frame) {
    const auto kernel = code->kernels.find(frame->line);
    if (kernel != code->kernels.end() && !call.kernels.contains(kernel->second) &&
        frame->file == code->path)
      by_line[frame->line].push_back(&*frame);
  }
  if (by_line.empty()) return {};
  ASSIGN_OR_RETURN(const std::vector<Inner> inners, InnersOf(call));
  for (const auto& [line, frames] : by_line) {
    const Frame& last = *frames.back();
    const auto inner = std::find_if(inners.begin(), inners.end(), [&](const Inner& one) {
      return one.start_ns >= last.start_ns && one.end_ns <= last.end_ns;
    });
    const bool has_inner = inner != inners.end();
    RETURN_IF_ERROR(Link(call, code->kernels.at(line), last, has_inner ? &*inner : nullptr));
  }
  return {};
}

Result<std::int64_t> FrameJoiner::AddRun(std::string_view table, std::string_view column,
                                         std::int64_t id) {
  ASSIGN_OR_RETURN(Statement* const add,
                   database_.PrepareKept("INSERT INTO kernel_run_row (profile_id, "
                                         "name_id, thread_id, start_ns, duration_ns, " +
                                         std::string(column) +
                                         ") SELECT profile_id, "
                                         "name_id, thread_id, start_ns, duration_ns, id FROM " +
                                         std::string(table) + " WHERE id = ?"));
  add->Bind(1, id);
  RETURN_IF_ERROR(add->Run());
  return sqlite3_last_insert_rowid(database_.handle());
}

Result<void> FrameJoiner::Link(const Call& call, std::int64_t kernel_id, const Frame& frame,
                               const Inner* inner) {
  std::int64_t run_id = inner == nullptr ? 0 : inner->id;
  std::optional<std::int64_t> note_id;
  if (inner == nullptr) {
    ASSIGN_OR_RETURN(run_id, AddRun("python_frame_row", "frame_id", frame.id));
    ASSIGN_OR_RETURN(note_id, NoteId(database_, kOfFrame));
  } else if (inner->is_op) {
    ASSIGN_OR_RETURN(run_id, AddRun("op_run_row", "op_run_id", inner->id));
  }
  ASSIGN_OR_RETURN(
      Statement* const link,
      database_.PrepareKept("INSERT INTO kernel_run_link_row (kernel_run_id, "
                            "slice_id, kernel_id, join_key, note_id, region_id) "
                            "VALUES (?1, ?2, ?3, 'K6', ?4, (SELECT region_id "
                            "FROM compiled_slice_link_row WHERE slice_id = ?2)) "
                            "ON CONFLICT (kernel_run_id) DO UPDATE "
                            "SET kernel_id = excluded.kernel_id, join_key = 'K6', note_id = NULL"));
  link->Bind(1, run_id);
  link->Bind(2, call.id);
  link->Bind(3, kernel_id);
  link->Bind(4, note_id);
  return link->Run();
}

}  // namespace

Result<void> JoinFrames(Database& database, std::int64_t profile_id) {
  return FrameJoiner(database, profile_id).Run();
}

}  // namespace tlparse

#include "inputs/join/module_join.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/spilling_vector.h"
#include "base/utf8.h"
#include "inputs/join/join_profile.h"
#include "inputs/join/numbered.h"
#include "queries/inputs/join/module_join.h"

namespace tlparse {
namespace {

constexpr std::int32_t kNoModule = -1;
constexpr std::int64_t kOtherModules = 0;  // for an id of a name

struct ModuleFrame {
  std::int64_t id, thread_id, start_ns, end_ns, name_id;
  std::int64_t self_ns = 0;
  std::int32_t parent = kNoModule;
  std::int32_t path = 0;  // index into paths_
};
struct ModulePath {
  std::int64_t text_id = 0;
  std::string text;
  int depth = 0;
};
// Where and when something was enqueued.
struct EnqueueMoment {
  std::int64_t thread_id, time_ns;
};

class ModuleJoiner {
 public:
  ModuleJoiner(Database& database, std::int64_t profile_id)
      : database_(database),
        profile_id_(profile_id),
        frames_(DirectoryOf(database)),
        launches_(DirectoryOf(database)),
        ops_(DirectoryOf(database)) {}

  Result<void> Run() {
    RETURN_IF_ERROR(LoadFrames());
    if (frames_.empty()) return {};
    RETURN_IF_ERROR(Nest());
    RETURN_IF_ERROR(WriteFrames());
    RETURN_IF_ERROR(
        LoadMoments(Query<LaunchMoment>(database_, {.profile_id = profile_id_}), launches_));
    RETURN_IF_ERROR(LoadMoments(Query<OpMoment>(database_, {.profile_id = profile_id_}), ops_));
    return LinkKernels();
  }

 private:
  Result<void> LoadFrames();
  Result<void> Nest();
  Result<std::int32_t> PathOf(std::int32_t parent, std::int64_t name_id);
  Result<void> WriteFrames();
  // By the number of the row.
  struct Moments {
    explicit Moments(const std::string& directory) : all(directory), by_number(directory) {}
    SpillingVector<EnqueueMoment> all;
    Numbered by_number;
    std::optional<EnqueueMoment> Find(std::int64_t number) const {
      const std::optional<std::uint32_t> found = by_number.First(number);
      return found ? std::optional(all[*found]) : std::nullopt;
    }
  };
  template <typename Row>
  Result<void> LoadMoments(QueryRows<Row> rows, Moments& moments);
  Result<void> LinkKernels();
  // The innermost frame that is open on the thread.
  std::int32_t FrameAt(const EnqueueMoment& moment) const;

  Database& database_;
  std::int64_t profile_id_;
  SpillingVector<ModuleFrame> frames_;  // by thread and start, outer ones first
  std::vector<ModulePath> paths_;
  std::size_t path_bytes_ = 0;
  std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> path_of_;  // by parent and name
  Moments launches_, ops_;
};

Result<void> ModuleJoiner::LoadFrames() {
  FOR_EACH_ROW(const FrameOfModule& row,
               Query<FrameOfModule>(
                   database_, {.profile_id = profile_id_,
                               .prefix_length = static_cast<std::int64_t>(kModuleFrame.size()),
                               .prefix = kModuleFrame})) {
    RETURN_IF_ERROR(frames_.Push({row.id, row.thread_id, row.start_ns, row.end_ns, row.name_id}));
  }
  std::sort(frames_.begin(), frames_.end(), [](const ModuleFrame& a, const ModuleFrame& b) {
    return std::tie(a.thread_id, a.start_ns, b.end_ns, a.id) <
           std::tie(b.thread_id, b.start_ns, a.end_ns, b.id);
  });
  return {};
}

Result<std::int32_t> ModuleJoiner::PathOf(std::int32_t parent, std::int64_t name_id) {
  constexpr int kDeepest = 64;
  constexpr std::size_t kLongestName = 200;
  constexpr std::size_t kMostPathBytes = std::size_t{16} << 20;
  if (const auto known = path_of_.find({parent, name_id}); known != path_of_.end())
    return known->second;
  // What is nested more deeply counts for the module around it, and so does what would take too
  // much memory: names of modules in a damaged or odd profile.
  const bool is_deep =
      parent != kNoModule && paths_[static_cast<std::size_t>(parent)].depth >= kDeepest;
  const bool is_full = path_bytes_ > kMostPathBytes;
  if (is_deep || (is_full && parent != kNoModule)) return parent;
  if (is_full && name_id != kOtherModules) return PathOf(parent, kOtherModules);
  std::string name = "(other modules)";
  if (name_id != kOtherModules) {
    ASSIGN_OR_RETURN(name, database_.QueryText("SELECT text FROM text_row WHERE id = ?", name_id));
    name = SanitizeUtf8(std::string_view(name).substr(kModuleFrame.size(), kLongestName));
    std::replace(name.begin(), name.end(), '/', '_');
  }
  ModulePath path;
  if (parent != kNoModule) {
    const ModulePath& around = paths_[static_cast<std::size_t>(parent)];
    path.text = around.text + "/";
    path.depth = around.depth + 1;
  }
  path.text += name;
  ASSIGN_OR_RETURN(path.text_id, NoteId(database_, path.text));
  const auto index = static_cast<std::int32_t>(paths_.size());
  path_bytes_ += path.text.size() + sizeof path;
  paths_.push_back(std::move(path));
  path_of_.emplace(std::pair(parent, name_id), index);
  return index;
}

Result<void> ModuleJoiner::Nest() {
  std::vector<std::int32_t> open;
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    ModuleFrame& frame = frames_[i];
    while (!open.empty()) {
      const ModuleFrame& last = frames_[static_cast<std::size_t>(open.back())];
      if (last.thread_id == frame.thread_id && frame.start_ns < last.end_ns) break;
      open.pop_back();
    }
    frame.self_ns = frame.end_ns - frame.start_ns;
    std::int32_t path_around = kNoModule;
    if (!open.empty()) {
      ModuleFrame& around = frames_[static_cast<std::size_t>(open.back())];
      frame.parent = open.back();
      path_around = around.path;
      around.self_ns -= std::min(frame.end_ns, around.end_ns) - frame.start_ns;
    }
    ASSIGN_OR_RETURN(frame.path, PathOf(path_around, frame.name_id));
    open.push_back(static_cast<std::int32_t>(i));
  }
  return {};
}

Result<void> ModuleJoiner::WriteFrames() {
  ASSIGN_OR_RETURN(Statement add,
                   database_.Prepare("INSERT INTO module_link_row (frame_id, "
                                     "parent_id, path_id, self_ns) VALUES (?, ?, ?, ?)"));
  for (const ModuleFrame& frame : frames_) {
    add.Bind(1, frame.id);
    add.Bind(2, frame.parent == kNoModule
                    ? std::nullopt
                    : std::optional(frames_[static_cast<std::size_t>(frame.parent)].id));
    add.Bind(3, paths_[static_cast<std::size_t>(frame.path)].text_id);
    add.Bind(4, std::max<std::int64_t>(frame.self_ns, 0));
    RETURN_IF_ERROR(add.Run());
  }
  return {};
}

template <typename Row>
Result<void> ModuleJoiner::LoadMoments(QueryRows<Row> rows, Moments& moments) {
  FOR_EACH_ROW(const Row& row, std::move(rows)) {
    RETURN_IF_ERROR(moments.by_number.Add(row.number, moments.all.size()));
    RETURN_IF_ERROR(moments.all.Push({row.thread_id, row.start_ns}));
  }
  moments.by_number.Sort();
  return {};
}

std::int32_t ModuleJoiner::FrameAt(const EnqueueMoment& moment) const {
  const auto after = std::upper_bound(
      frames_.begin(), frames_.end(), moment, [](const EnqueueMoment& m, const ModuleFrame& f) {
        return std::tie(m.thread_id, m.time_ns) < std::tie(f.thread_id, f.start_ns);
      });
  if (after == frames_.begin()) return kNoModule;
  auto at = static_cast<std::int32_t>(after - frames_.begin()) - 1;
  while (at != kNoModule) {
    const ModuleFrame& frame = frames_[static_cast<std::size_t>(at)];
    if (frame.thread_id == moment.thread_id && moment.time_ns < frame.end_ns) return at;
    at = frame.parent;
  }
  return kNoModule;
}

Result<void> ModuleJoiner::LinkKernels() {
  ASSIGN_OR_RETURN(Statement add,
                   database_.Prepare("INSERT INTO kernel_module_link_row (kernel_run_id, frame_id) "
                                     "VALUES (?, ?)"));
  FOR_EACH_ROW(const KernelRunToLink& row,
               Query<KernelRunToLink>(database_, {.profile_id = profile_id_})) {
    std::optional<EnqueueMoment> moment;
    if (!row.is_on_device) {
      moment = EnqueueMoment{row.thread_id, row.start_ns};
    } else {
      if (row.correlation) moment = launches_.Find(*row.correlation);
      if (!moment && row.external_id) moment = ops_.Find(*row.external_id);
    }
    const std::int32_t frame = moment ? FrameAt(*moment) : kNoModule;
    if (frame == kNoModule) continue;
    add.Bind(1, row.id);
    add.Bind(2, frames_[static_cast<std::size_t>(frame)].id);
    RETURN_IF_ERROR(add.Run());
  }
  return {};
}

}  // namespace

Result<void> JoinModules(Database& database, std::int64_t profile_id) {
  return ModuleJoiner(database, profile_id).Run();
}

}  // namespace tlparse

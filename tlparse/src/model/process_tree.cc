#include "model/process_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace tlparse {
namespace {

// What the stack alone shows: no rank runs such code.
ChildKind KindOf(ProcessOrigin origin) {
  switch (origin) {
    case ProcessOrigin::kLoaderWorker:
      return ChildKind::kLoaderWorker;
    case ProcessOrigin::kCompileWorker:
      return ChildKind::kCompileWorker;
    case ProcessOrigin::kPoolWorker:
      return ChildKind::kPoolWorker;
    default:
      return ChildKind::kNone;
  }
}

std::string_view EvidenceOf(ProcessOrigin origin) {
  switch (origin) {
    case ProcessOrigin::kLoaderWorker:
      return "its stack begins in the worker loop of a DataLoader";
    case ProcessOrigin::kCompileWorker:
      return "its stack begins in Inductor's compile worker";
    case ProcessOrigin::kPoolWorker:
      return "its stack begins in the worker of a pool";
    default:
      return "its stack begins in multiprocessing.Process";
  }
}

// Microseconds between the beginning of `child` and the life of `parent`; 0: it lived then.
std::int64_t Distance(const TreeProcess& child, const TreeProcess& parent) {
  if (!child.start_us || !parent.start_us) return INT64_MAX;
  if (*child.start_us < *parent.start_us) return *parent.start_us - *child.start_us;
  const std::int64_t end_us = std::max(*parent.start_us, parent.end_us.value_or(*parent.start_us));
  return std::max<std::int64_t>(0, *child.start_us - end_us);
}

bool HasLaterNumbers(const TreeProcess& one) {
  return one.first_string_number.value_or(0) > 0 || one.first_frame_id.value_or(0) > 0;
}

// "the numbers of its strings (from 7) and frames (from 6) go on from its parent's"
std::string NumbersEvidence(const TreeProcess& one) {
  const std::int64_t string = one.first_string_number.value_or(0),
                     frame = one.first_frame_id.value_or(0);
  return fmt::format("{}{}{} of its parent",
                     string > 0 ? fmt::format("its strings are numbered from {}", string) : "",
                     string > 0 && frame > 0 ? " and " : "",
                     frame > 0 ? fmt::format("its frames from {}", frame) : "") +
         ", as a process that was forked goes on from the numbers";
}

// The process that `child` is a child of; nullptr: none can be.
const TreeProcess* ParentOf(const TreeProcess& child,
                            const std::vector<const TreeProcess*>& candidates) {
  const TreeProcess* best = nullptr;
  const auto key = [&](const TreeProcess& one) {
    // Among processes that are equally near: the one whose pid is the next lower.
    return std::tuple(Distance(child, one), one.pid > child.pid, -one.pid);
  };
  for (const TreeProcess* const one : candidates) {
    if (one->id == child.id || one->pid == child.pid) continue;
    if (best == nullptr || key(*one) < key(*best)) best = one;
  }
  return best;
}

}  // namespace

std::string_view Name(ChildKind kind) {
  switch (kind) {
    case ChildKind::kLoaderWorker:
      return "loader_worker";
    case ChildKind::kCompileWorker:
      return "compile_worker";
    case ChildKind::kPoolWorker:
      return "pool_worker";
    case ChildKind::kForked:
      return "forked";
    case ChildKind::kProgram:
      return "program";
    case ChildKind::kNone:
      break;
  }
  return {};
}

void FindChildren(std::vector<TreeProcess>& processes) {
  using Peers = std::vector<const TreeProcess*>;
  std::map<std::optional<std::int64_t>, Peers> mains;  // by rank: those that can be parents
  std::vector<TreeProcess*> open;                      // those of which the stack does not tell
  for (TreeProcess& one : processes) {
    one.kind = KindOf(one.origin);
    if (one.kind != ChildKind::kNone) {
      one.evidence = EvidenceOf(one.origin);
    } else if (!one.is_thread_id &&
               (HasLaterNumbers(one) || one.origin == ProcessOrigin::kMultiprocessing)) {
      open.push_back(&one);
    } else if (one.started_by != 0) {
      one.kind = ChildKind::kProgram;
      one.evidence = "its parent is a rank (run.json)";
    } else {
      mains[one.rank].push_back(&one);
    }
  }
  const auto began_before = [](const TreeProcess& parent, const TreeProcess& child) {
    return parent.start_us && child.start_us && *parent.start_us <= *child.start_us;
  };
  std::vector<TreeProcess*> no_children;
  for (TreeProcess* const one : open) {
    // The numbers of a forked process go on from those of a process that had compiled before.
    const auto known = mains.find(one->rank);
    const bool has_parent =
        known != mains.end() &&
        std::any_of(known->second.begin(), known->second.end(), [&](const TreeProcess* parent) {
          return began_before(*parent, *one) && parent->pid != one->pid;
        });
    if (!has_parent) {
      no_children.push_back(one);
      continue;
    }
    one->kind = ChildKind::kForked;
    one->evidence =
        HasLaterNumbers(*one) ? NumbersEvidence(*one) : std::string(EvidenceOf(one->origin));
  }
  for (TreeProcess* const one : no_children) mains[one->rank].push_back(one);
  for (TreeProcess& one : processes) {
    if (one.kind == ChildKind::kNone) continue;
    if (one.started_by != 0) {
      one.parent_id = one.started_by;
      continue;
    }
    const auto candidates = mains.find(one.rank);
    if (candidates == mains.end()) continue;
    // Without a rank, only a parent that is the only one is known.
    if (!one.rank && candidates->second.size() > 1) continue;
    if (const TreeProcess* const parent = ParentOf(one, candidates->second))
      one.parent_id = parent->id;
  }
}

}  // namespace tlparse

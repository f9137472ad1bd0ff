// Who holds the memory: at the peak of each snapshot and profile, when an allocation failed, at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/job/asked_participant.h"
#include "facts/memory/steps.h"
#include "store/database.h"

namespace tlparse {

enum class MemoryBy : std::uint8_t { kLine, kGraph, kNode, kCategory, kStack };
enum class MemoryAt : std::uint8_t { kPeak, kOom, kEnd, kStep, kTime };

struct MemoryOptions {
  std::int64_t run_id = 0;
  MemoryBy by = MemoryBy::kLine;
  MemoryAt at = MemoryAt::kPeak;
  std::int64_t step = 0;       // of kStep: its end
  std::int64_t offset_us = 0;  // of kTime: since the first event of each recording
  AskedParticipant asked;
  std::optional<std::int64_t> snapshot_id = {};  // this one alone
};

// Of a snapshot: what the allocator holds at its end beside what was asked for.
struct MemorySegments {
  std::int64_t reserved_bytes = 0;
  std::int64_t requested_bytes = 0;  // of active blocks
  std::int64_t rounding_bytes = 0;   // what active blocks hold beyond that
  std::int64_t free_bytes = 0;  // segments in which no block is active: given back by empty_cache()
  std::int64_t fragmented_bytes = 0;    // inactive blocks of the other segments
  std::int64_t largest_free_bytes = 0;  // the largest inactive block
};

// An allocation that failed.
struct FailedAllocation {
  std::int64_t size_bytes = 0;
  std::optional<std::int64_t> device_free_bytes, time_us;
  std::string file, function;  // the Python line outside PyTorch; empty: not known
  std::optional<std::int64_t> line;
};

// What is alive, of one line, graph, category or stack.
struct MemoryRow {
  std::string file, function;  // lines and stacks
  std::optional<std::int64_t> line;
  std::string label, direction;     // graphs; a label alone: of a region, whose graph is not known
  std::string kernel;               // nodes: for which the block was made
  std::string nodes;                // of that kernel: "add, relu"
  std::string category;             // of all its allocations; empty: they differ
  std::vector<std::string> frames;  // stacks: innermost first
  std::string reason;               // why it has no line, graph or node
  std::int64_t size_bytes = 0;
  std::int64_t allocations = 0;
  double share = 0;  // of what is alive, 0 … 1
};

// What grew in each of the last steps: more is alive after each of them, in more blocks.
struct MemoryGrowth {
  MemoryRow row;                       // what is alive after the last step
  std::vector<BytesAlive> alive;       // after the step before these, and after each of them
  std::vector<std::int64_t> site_ids;  // of its allocations
};

// With MemoryAt::kPeak: what was freed after the peak, before the next allocation.
struct MemoryFreed {
  std::vector<MemoryRow> rows;  // most bytes first; shares are of what was alive
  std::int64_t size_bytes = 0;
  std::int64_t lower_peak_bytes = 0;  // the peak if it had been freed before the peak's allocation
};

// One device of one file.
struct MemoryDevice {
  std::int64_t snapshot_id = 0;
  std::string path, kind, source;
  std::optional<std::int64_t> device, rank;
  std::int64_t event_count = 0;
  std::int64_t ordinal = 0;  // of the event after which the rows are alive; -1: before the first
  std::optional<std::int64_t> time_us, start_us;  // start: of the first event
  std::int64_t alive_bytes = 0, base_bytes = 0, peak_bytes = 0, end_bytes = 0;
  std::optional<std::int64_t> reserved_bytes;  // held by the allocator then; nothing: unknown
  std::int64_t line_bytes = 0;                 // of alive_bytes: with a Python line
  std::int64_t function_bytes = 0;             // of a function, whose line is not known
  std::int64_t graph_bytes = 0;                // with a compile
  std::int64_t named_bytes = 0;                // with a line or a compile
  std::optional<MemorySegments> segments;
  std::optional<FailedAllocation> failed;  // the last one
  std::vector<MemoryRow> rows;             // most bytes first; they sum to alive_bytes
  std::optional<MemoryFreed> freed;
  std::vector<MemoryStep> steps;     // whose end the recording holds
  std::size_t growing_steps = 0;     // of them the last, in which `growth` is; 0: too few
  std::vector<MemoryGrowth> growth;  // the largest first
};

struct MemoryAnswer {
  std::vector<MemoryDevice> devices;
  std::vector<std::string> notes;
};

// "device 0", "the CPU", "pinned memory"
std::string MemoryName(const MemoryDevice& device);

// "5.2 MB of model.py:30 (forward)"
std::string HolderText(const MemoryRow& row);

// kNotFound: the run has neither a snapshot nor a profile with memory events (of that rank).
Result<MemoryAnswer> Memory(Database& database, const MemoryOptions& options);

}  // namespace tlparse

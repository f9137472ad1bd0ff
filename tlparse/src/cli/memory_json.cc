#include <algorithm>
#include <span>

#include "base/fields.h"
#include "cli/memory_output.h"
#include "cli/schemas.h"

namespace tlparse {
namespace {

struct InMemory {
  std::string_view by, at;
  std::size_t top = 0;
};

constexpr std::string_view kGroupings[] = {"line", "graph", "node", "category", "stack"};
constexpr std::string_view kRecordings[] = {"memory_snapshot", "kineto"};

std::span<const MemoryRow> TopRows(const MemoryDevice& of, const InMemory& in) {
  return std::span(of.rows).first(std::min(in.top, of.rows.size()));
}

std::vector<std::int64_t> BytesOf(const MemoryGrowth& of) {
  std::vector<std::int64_t> sizes;
  for (const BytesAlive& alive : of.alive) sizes.push_back(alive.size_bytes);
  return sizes;
}

}  // namespace

template <>
struct FieldsOf<MemoryRow> {
  using Of = MemoryRow;
  static constexpr std::string_view name = "row";
  static constexpr FieldList list{
      Field{"size_bytes", AtLeast<0>(&Of::size_bytes),
            "of a device: alive, they sum to its alive_bytes; of freed: they sum to its "
            "size_bytes; of growth: alive after the last step"},
      Field{"allocations", AtLeast<0>(&Of::allocations)},
      Field{"share", &Of::share, "of what is alive, 0 to 1"},
      Field{"category", OrNull{&Of::category}, "of all its allocations; null: they differ"},
      Field{"file", OrNull{&Of::file}, "of the innermost Python line outside PyTorch"},
      Field{"line", &Of::line},
      Field{"function", OrNull{&Of::function}},
      Field{"label", OrNull{&Of::label}, "of the compile"},
      Field{"direction", OrNull{&Of::direction}, "of the graph; null: the compile alone is known"},
      Field{"kernel", OrNull{&Of::kernel},
            "with --by node: for which a line of generated code made the block"},
      Field{"nodes", OrNull{&Of::nodes}, "post-grad nodes of that kernel, separated by commas"},
      Field{"reason", OrNull{&Of::reason}, "why it has no line, graph or node"},
      Field{"frames", &Of::frames, "with --by stack: innermost first"},
  };
};

template <>
struct FieldsOf<MemoryFreed> {
  using Of = MemoryFreed;
  static constexpr FieldList list{
      Field{"size_bytes", AtLeast<0>(&Of::size_bytes)},
      Field{"lower_peak_bytes", AtLeast<0>(&Of::lower_peak_bytes),
            "the peak if it had been freed before that allocation"},
      Field{"rows", &Of::rows},
      Field{"row_count", [](const Of& of) { return of.rows.size(); }},
  };
};

template <>
struct FieldsOf<MemoryStep> {
  using Of = MemoryStep;
  static constexpr FieldList list{
      Field{"step", &Of::step},
      Field{"end_us", [](const Of& of) { return of.end_ns / 1000; }},
      Field{"alive_bytes", AtLeast<0>(&Of::alive_bytes), "at its end"},
  };
};

template <>
struct FieldsOf<MemoryGrowth> {
  using Of = MemoryGrowth;
  static constexpr FieldList list{
      Inlined{&Of::row},
      Field{"alive_bytes", &BytesOf, "after the step before these, and after each of them"},
  };
};

template <>
struct FieldsOf<MemorySegments> {
  using Of = MemorySegments;
  static constexpr FieldList list{
      Field{"reserved_bytes", AtLeast<0>(&Of::reserved_bytes)},
      Field{"requested_bytes", AtLeast<0>(&Of::requested_bytes), "of active blocks"},
      Field{"rounding_bytes", &Of::rounding_bytes, "what active blocks hold beyond that"},
      Field{"free_bytes", AtLeast<0>(&Of::free_bytes), "segments without an active block"},
      Field{"fragmented_bytes", &Of::fragmented_bytes, "inactive blocks of the other segments"},
      Field{"largest_free_bytes", AtLeast<0>(&Of::largest_free_bytes)},
  };
};

template <>
struct FieldsOf<FailedAllocation> {
  using Of = FailedAllocation;
  static constexpr FieldList list{
      Field{"size_bytes", AtLeast<0>(&Of::size_bytes)},
      Field{"device_free_bytes", &Of::device_free_bytes},
      Field{"time_us", &Of::time_us},
      Field{"file", OrNull{&Of::file}},
      Field{"line", &Of::line},
      Field{"function", OrNull{&Of::function}},
  };
};

template <>
struct FieldsOf<MemoryDevice> {
  using Of = MemoryDevice;
  static constexpr FieldList list{
      Field{"path", &Of::path},
      Field{"kind", &Of::kind, "", kRecordings},
      Field{"source", &Of::source,
            "device_traces, host_traces (pinned memory), or the type of the device in a profile"},
      Field{"device", &Of::device, "null: memory of the host"},
      Field{"rank", &Of::rank},
      Field{"event_count", AtLeast<0>(&Of::event_count)},
      Field{"ordinal", AtLeast<-1>(&Of::ordinal),
            "the event after which the rows are alive; -1: before the first"},
      Field{"time_us", &Of::time_us},
      Field{"start_us", &Of::start_us, "of the first event; null: no event has a time"},
      Field{"alive_bytes", AtLeast<0>(&Of::alive_bytes)},
      Field{"base_bytes", AtLeast<0>(&Of::base_bytes), "alive before the first event"},
      Field{"peak_bytes", AtLeast<0>(&Of::peak_bytes)},
      Field{"end_bytes", AtLeast<0>(&Of::end_bytes)},
      Field{"reserved_bytes", &Of::reserved_bytes,
            "held by the allocator at that event; null: unknown"},
      Field{"line_bytes", AtLeast<0>(&Of::line_bytes), "of alive_bytes: with a Python line"},
      Field{"function_bytes", AtLeast<0>(&Of::function_bytes),
            "with a Python function, whose line is not known"},
      Field{"graph_bytes", AtLeast<0>(&Of::graph_bytes), "with a compile"},
      Field{"named_bytes", AtLeast<0>(&Of::named_bytes), "with a line or a compile"},
      Field{"segments", &Of::segments,
            "what the allocator held at the end of a snapshot; null: not in the file"},
      Field{"failed", &Of::failed, "the last allocation that failed; null: none"},
      Field{"rows", &TopRows},
      Field{"row_count", [](const Of& of) { return of.rows.size(); }, "without --top"},
      Field{"freed", &Of::freed,
            "of what lived before the allocation that made the peak, what was freed before the "
            "next one; null: not at the peak"},
      Field{"steps", &Of::steps, "of the profiler, whose end the recording holds"},
      Field{"growing_steps", &Of::growing_steps,
            "in how many of the last steps what is in growth grew; 0: the recording holds too "
            "few"},
      Field{"growth", &Of::growth,
            "what was alive with more bytes in more blocks after each of the last steps, the "
            "largest growth first; its other members are of the end of the last step"},
  };
};

template <>
struct FieldsOf<MemoryAnswer> {
  using Of = MemoryAnswer;
  static constexpr FieldList list{
      Field{"by", [](const Of&, const InMemory& in) { return in.by; }, "", kGroupings},
      Field{"at", [](const Of&, const InMemory& in) { return in.at; },
            "peak, oom, end; a number: at the end of this step of the profiler; +TIME: after the "
            "first event of each recording"},
      Field{"devices", &Of::devices},
      Field{"notes", &Of::notes},
  };
};

JsonWriter MemoryJson(const MemoryAnswer& answer, std::string_view by, std::string_view at,
                      std::size_t top) {
  return ToJson(answer, InMemory{by, at, top});
}
std::string MemorySchema() { return SchemaOf<MemoryAnswer, InMemory>("tlparse memory --json"); }

}  // namespace tlparse

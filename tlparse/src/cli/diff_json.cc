#include <algorithm>
#include <array>

#include "base/fields.h"
#include "cli/cause_fields.h"
#include "cli/compile_status_fields.h"
#include "cli/diff_measured_fields.h"
#include "cli/diff_output.h"
#include "cli/schemas.h"
#include "cli/vllm_start_output.h"

namespace tlparse {
namespace {

constexpr std::array<std::string_view, 7> kPhaseWords = {
    "total", "dynamo", "aot_autograd", "inductor", "code_gen", "triton", "backward"};
static_assert(std::size(kCompilePhases) == kPhaseWords.size());
constexpr std::string_view kLookupStates[] = {"hit",          "miss",   "guard_miss",
                                              "remote_error", "bypass", "disabled"};
constexpr std::string_view kDigestKinds[] = {"kernel", "choice", "output"};
constexpr std::string_view kSides[] = {"a", "b"};

std::optional<std::string_view> OnlyIn(const DigestChange& of) {
  if (of.is_only_a) return "a";
  return of.is_only_b ? std::optional<std::string_view>("b") : std::nullopt;
}

std::optional<std::int64_t> Duration(const UnmatchedCompile& of) {
  return of.duration_us == 0 ? std::nullopt : std::optional(of.duration_us);
}

// Whether two sides with logs are equal; null: a side has none.
std::optional<bool> IsEqualByLogs(const DiffAnswer& of) {
  return of.HasLogs() ? std::optional(of.IsEqual()) : std::nullopt;
}

std::optional<bool> AreEqualByLogs(const RunComparison& of) {
  const bool has_logs = std::all_of(of.comparisons.begin(), of.comparisons.end(),
                                    [](const RankComparison& one) { return one.diff.HasLogs(); });
  return has_logs ? std::optional(of.IsEqual()) : std::nullopt;
}

std::optional<std::string_view> TextOrNull(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

}  // namespace

template <>
struct FieldsOf<PhaseChange> {
  static constexpr FieldList list{
      Field{"phase", &PhaseChange::phase, "", kPhaseWords},
      Field{"a_us", &PhaseChange::a_us},
      Field{"b_us", &PhaseChange::b_us},
  };
};

template <>
struct FieldsOf<CacheChange> {
  using Of = CacheChange;
  static constexpr std::string_view no_lookup =
      "null: no lookup in the log, which may lack the record of one where this side's status is "
      "failed or unfinished";
  static constexpr FieldList list{
      Field{"lookup", &Of::title},
      Field{"a_state", OrNull{&Of::a_state}, no_lookup, kLookupStates},
      Field{"b_state", OrNull{&Of::b_state}, no_lookup, kLookupStates},
      Field{"has_same_key", &Of::has_same_key},
      Field{"fallback", OrNull{&Of::fallback}, "what was compared where components are missing"},
      Field{"causes", &Of::causes, "why the keys differ"},
  };
};

template <>
struct FieldsOf<CodeChange> {
  static constexpr FieldList list{
      Field{"graph", &CodeChange::title},
      Field{"diff", OrNull{&CodeChange::diff}, "unified, of the normalised codes; --code"},
  };
};

template <>
struct FieldsOf<CudaGraphSummary> {
  using Of = CudaGraphSummary;
  static constexpr std::string_view name = "recorded_cuda_graphs";
  static constexpr FieldList list{
      Field{"forward_count", AtLeast<0>(&Of::forward), "recordings"},
      Field{"backward_count", AtLeast<0>(&Of::backward)},
      Field{"skips", &Of::skips, "why none was recorded"},
  };
};

template <>
struct FieldsOf<CompileChange> {
  using Of = CompileChange;
  static constexpr std::string_view name = "compile_change";
  static constexpr std::string_view description =
      "a compile of both sides: of one function and graph, else of one function and label, else of "
      "one function";
  static constexpr FieldList list{
      Field{"a_label", &Of::a_label},
      Field{"b_label", &Of::b_label},
      Field{"function", &Of::function},
      Field{"a_status", &Of::a_status},
      Field{"b_status", &Of::b_status},
      Field{"is_equal", &Of::IsEqual, "in everything but times"},
      Field{"a_file", OrNull{&Of::a_file}, "of the function; null: unknown"},
      Field{"b_file", OrNull{&Of::b_file}},
      Field{"has_other_comments_only", &Of::has_other_comments_only,
            "the graphs differ, and are equal without their comments"},
      Field{"has_same_graph", &Of::has_same_graph},
      Field{"graph_difference", OrNull{&Of::graph_difference},
            "first differing node; null: the operations are equal"},
      Field{"phases", &Of::phases},
      Field{"new_recompiles", &Of::new_recompiles},
      Field{"vanished_recompiles", &Of::vanished_recompiles},
      Field{"new_graph_breaks", &Of::new_graph_breaks},
      Field{"vanished_graph_breaks", &Of::vanished_graph_breaks},
      Field{"changed_graph_breaks", &Of::changed_graph_breaks,
            "in the same place, with another cause"},
      Field{"a_guard_count", AtLeast<0>(&Of::a_guard_count)},
      Field{"b_guard_count", AtLeast<0>(&Of::b_guard_count)},
      Field{"a_kernel_count", AtLeast<0>(&Of::a_kernel_count)},
      Field{"b_kernel_count", AtLeast<0>(&Of::b_kernel_count)},
      Field{"new_guards", &Of::new_guards},
      Field{"vanished_guards", &Of::vanished_guards},
      Field{"changed_guards", &Of::changed_guards,
            "of the same value in the same line of code: before → after"},
      Field{"alike_guard_count", AtLeast<0>(&Of::alike_guard_count),
            "guards that differ in names of generated code only: no difference"},
      Field{"new_kernels", &Of::new_kernels},
      Field{"vanished_kernels", &Of::vanished_kernels},
      Field{"caches", &Of::caches, "lookups whose state or key differs"},
      Field{"codes", &Of::codes, "graphs whose generated code differs"},
      Field{"a_cuda_graphs", &Of::a_cuda_graphs, "that were recorded when it ran, or why none was"},
      Field{"b_cuda_graphs", &Of::b_cuda_graphs},
  };
};

template <>
struct FieldsOf<UnmatchedCompile> {
  using Of = UnmatchedCompile;
  static constexpr std::string_view name = "unmatched_compile";
  static constexpr FieldList list{
      Field{"label", &Of::label},
      Field{"function", &Of::function},
      Field{"status", &Of::status},
      Field{"duration_us", &Duration, "with its backward; null: unknown"},
      Field{"recompile_reasons", &Of::recompile_reasons},
  };
};

template <>
struct FieldsOf<DiffAnswer> {
  using Of = DiffAnswer;
  static constexpr FieldList list{
      Field{"a_rank", &Of::a_rank, "the one that is compared"},
      Field{"b_rank", &Of::b_rank},
      Field{"a", &Of::a_title},
      Field{"b", &Of::b_title},
      Field{"is_equal", &IsEqualByLogs,
            "in everything but times; null: a side has no log, only profiles are compared"},
      Field{"a_torch_version", OrNull{&Of::a_torch_version}, "null: not in the log"},
      Field{"b_torch_version", OrNull{&Of::b_torch_version}},
      Field{"a_python_version", OrNull{&Of::a_python_version}},
      Field{"b_python_version", OrNull{&Of::b_python_version}},
      Field{"finished_count", AtLeast<0>(&Of::timed_count),
            "compiles that both sides finished and whose times both logs have: phases are their "
            "sums"},
      Field{"phases", &Of::phases},
      Field{"compiles", &Of::compiles},
      Field{"only_a", &Of::only_a},
      Field{"only_b", &Of::only_b},
      Field{"measured", &Of::measured,
            "lines and kernels that profiles of both sides measured; null: a side has no profile"},
  };
};

template <>
struct FieldsOf<RankComparison> {
  using Of = RankComparison;
  static constexpr FieldList list{
      Field{"pair_count", AtLeast<1>(&Of::count),
            "pairs of ranks that are alike on each side; one is compared for all"},
      Field{"a_ranks", &Of::a_ranks, "\"0-3,6\""},
      Field{"b_ranks", &Of::b_ranks},
      Inlined{&Of::diff},
  };
};

template <>
struct FieldsOf<DigestChange> {
  using Of = DigestChange;
  static constexpr FieldList list{
      Field{"kind", &Of::kind, "", kDigestKinds},
      Field{"name", &Of::name, "of an output its position"},
      Field{"label", OrNull{&Of::label}, "compile id"},
      Field{"function", OrNull{&Of::function}},
      Field{"graph", OrNull{&Of::graph}},
      Field{"ranks", &Of::ranks, "of side a, in which it differs"},
      Field{"calls", AtLeast<1>(&Of::call_count), "in which it differs"},
      Field{"compared_calls", AtLeast<1>(&Of::compared_count)},
      Field{"first_call", &Of::first_call},
      Field{"a_value", OrNull{&Of::a_value}, "in that call: the type of an output, the choice"},
      Field{"b_value", OrNull{&Of::b_value}},
      Field{"only_in", &OnlyIn, "a part that one side lacks in that call", kSides},
  };
};

template <>
struct FieldsOf<DigestDifference> {
  using Of = DigestDifference;
  static constexpr FieldList list{
      Field{"calls", AtLeast<0>(&Of::call_count),
            "runs of graphs that were compared: same rank, compile id, graph and number"},
      Field{"kernels", AtLeast<0>(&Of::kernel_count), "how many were compared, over all calls"},
      Field{"choices", AtLeast<0>(&Of::choice_count)},
      Field{"outputs", AtLeast<0>(&Of::output_count)},
      Field{"only_a_calls", AtLeast<0>(&Of::only_a_call_count), "hashed on this side only"},
      Field{"only_b_calls", AtLeast<0>(&Of::only_b_call_count)},
      Field{"changes", &Of::changes},
  };
};

template <>
struct FieldsOf<MemoryChange> {
  using Of = MemoryChange;
  static constexpr FieldList list{
      Field{"file", [](const Of& of) { return TextOrNull(of.row.file); },
            "of the innermost Python line outside PyTorch"},
      Field{"line", [](const Of& of) { return of.row.line; }, "in b, or in a where b has none"},
      Field{"a_line", &Of::a_line, "where the line has moved; null: it has not"},
      Field{"function", [](const Of& of) { return TextOrNull(of.row.function); }},
      Field{"label", [](const Of& of) { return TextOrNull(of.row.label); }, "of the compile"},
      Field{"direction", [](const Of& of) { return TextOrNull(of.row.direction); }},
      Field{"reason", [](const Of& of) { return TextOrNull(of.row.reason); },
            "why it has no line or graph"},
      Field{"a_bytes", AtLeast<0>(&Of::a_bytes)},
      Field{"b_bytes", AtLeast<0>(&Of::b_bytes)},
  };
};

template <>
struct FieldsOf<MemoryDifference> {
  using Of = MemoryDifference;
  static constexpr FieldList list{
      Field{"a_path", [](const Of& of) { return of.a.path; }, "of the recording"},
      Field{"b_path", [](const Of& of) { return of.b.path; }},
      Field{"a_rank", [](const Of& of) { return of.a.rank; }},
      Field{"b_rank", [](const Of& of) { return of.b.rank; }},
      Field{"device", [](const Of& of) { return of.b.device; }, "null: CPU"},
      Field{"device_count", AtLeast<0>(&Of::device_count), "that both sides have"},
      Field{"a_peak_bytes", [](const Of& of) { return of.a.alive_bytes; }},
      Field{"b_peak_bytes", [](const Of& of) { return of.b.alive_bytes; }},
      Field{"changes", &Of::changes,
            "who holds memory at the peaks, which they sum to; the greatest increase first"},
  };
};

template <>
struct FieldsOf<RunComparison> {
  using Of = RunComparison;
  static constexpr FieldList list{
      Field{"is_equal", &AreEqualByLogs,
            "in everything but times and memory, on all ranks; null: a side has no log, only "
            "profiles are compared"},
      Field{"comparisons", &Of::comparisons, "most pairs first"},
      Field{"left_out", &Of::left_out, "comparisons beyond the first 16"},
      Field{"only_a_ranks", OrNull{&Of::only_a_ranks}, "ranks without a partner"},
      Field{"only_b_ranks", OrNull{&Of::only_b_ranks}},
      Field{"digests", &Of::digests,
            "whether runs of graphs that both sides hashed (libtrace_run_digest) used and gave the "
            "same; null: a side has hashed none"},
      Missable{"vllm_starts", &Of::starts, "the last start of vLLM of each side"},
      Field{"memory", &Of::memory,
            "the device whose peak grew most, of those of which both sides have a snapshot of the "
            "allocator or a profile with memory events; null: they have none in common"},
  };
};

JsonWriter DiffJson(const RunComparison& answer) { return ToJson(answer); }
std::string DiffSchema() { return SchemaOf<RunComparison>("tlparse diff --json"); }

}  // namespace tlparse

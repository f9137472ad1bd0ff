#include <algorithm>

#include "cli/diff_digests.h"
#include "cli/diff_measured.h"
#include "cli/diff_output.h"
#include "cli/rank_output.h"

namespace tlparse {
namespace {

void WriteTexts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  json.Key(key);
  WriteStrings(json, texts);
}

void WritePhases(JsonWriter& json, const std::vector<PhaseChange>& phases) {
  json.Key("phases").BeginArray();
  for (const PhaseChange& phase : phases) {
    json.BeginObject()
        .Key("phase")
        .String(phase.phase)
        .Key("a_us")
        .OptionalInt(phase.a_us)
        .Key("b_us")
        .OptionalInt(phase.b_us)
        .EndObject();
  }
  json.EndArray();
}

void WriteCaches(JsonWriter& json, const std::vector<CacheChange>& caches) {
  json.Key("caches").BeginArray();
  for (const CacheChange& cache : caches) {
    json.BeginObject()
        .Key("lookup")
        .String(cache.title)
        .Key("a_state")
        .OptionalString(NonEmpty(cache.a_state));
    json.Key("b_state")
        .OptionalString(NonEmpty(cache.b_state))
        .Key("has_same_key")
        .Bool(cache.has_same_key);
    json.Key("fallback").OptionalString(NonEmpty(cache.fallback)).Key("causes").BeginArray();
    for (const Cause& cause : cache.causes) {
      json.BeginObject();
      WriteCause(json, cause);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray();
}

void WriteCompile(JsonWriter& json, const CompileChange& change) {
  json.BeginObject()
      .Key("a_label")
      .String(change.a_label)
      .Key("b_label")
      .String(change.b_label)
      .Key("function")
      .String(change.function);
  json.Key("a_status")
      .String(Name(change.a_status))
      .Key("b_status")
      .String(Name(change.b_status))
      .Key("is_equal")
      .Bool(change.IsEqual());
  json.Key("a_file")
      .OptionalString(NonEmpty(change.a_file))
      .Key("b_file")
      .OptionalString(NonEmpty(change.b_file));
  json.Key("has_other_comments_only").Bool(change.has_other_comments_only);
  json.Key("has_same_graph")
      .Bool(change.has_same_graph)
      .Key("graph_difference")
      .OptionalString(NonEmpty(change.graph_difference));
  WritePhases(json, change.phases);
  WriteTexts(json, "new_recompiles", change.new_recompiles);
  WriteTexts(json, "vanished_recompiles", change.vanished_recompiles);
  WriteTexts(json, "new_graph_breaks", change.new_graph_breaks);
  WriteTexts(json, "vanished_graph_breaks", change.vanished_graph_breaks);
  WriteTexts(json, "changed_graph_breaks", change.changed_graph_breaks);
  json.Key("a_guard_count")
      .Int(change.a_guard_count)
      .Key("b_guard_count")
      .Int(change.b_guard_count);
  json.Key("a_kernel_count").Int(change.a_kernel_count);
  json.Key("b_kernel_count").Int(change.b_kernel_count);
  WriteTexts(json, "new_guards", change.new_guards);
  WriteTexts(json, "vanished_guards", change.vanished_guards);
  WriteTexts(json, "changed_guards", change.changed_guards);
  json.Key("alike_guard_count").Int(change.alike_guard_count);
  WriteTexts(json, "new_kernels", change.new_kernels);
  WriteTexts(json, "vanished_kernels", change.vanished_kernels);
  WriteCaches(json, change.caches);
  json.Key("codes").BeginArray();
  for (const CodeChange& code : change.codes) {
    json.BeginObject()
        .Key("graph")
        .String(code.title)
        .Key("diff")
        .OptionalString(NonEmpty(code.diff))
        .EndObject();
  }
  json.EndArray().EndObject();
}

void WriteComparison(JsonWriter& json, const RankComparison& one) {
  const DiffAnswer& answer = one.diff;
  json.BeginObject().Key("pair_count").Int(static_cast<std::int64_t>(one.count));
  json.Key("a_ranks")
      .String(one.a_ranks)
      .Key("b_ranks")
      .String(one.b_ranks)
      .Key("a_rank")
      .String(answer.a_rank)
      .Key("b_rank")
      .String(answer.b_rank);
  json.Key("a").String(answer.a_title).Key("b").String(answer.b_title).Key("is_equal");
  answer.HasLogs() ? json.Bool(answer.IsEqual()) : json.Null();
  json.Key("a_torch_version")
      .OptionalString(NonEmpty(answer.a_torch_version))
      .Key("b_torch_version")
      .OptionalString(NonEmpty(answer.b_torch_version));
  json.Key("a_python_version")
      .OptionalString(NonEmpty(answer.a_python_version))
      .Key("b_python_version")
      .OptionalString(NonEmpty(answer.b_python_version));
  json.Key("finished_count").Int(answer.timed_count);
  WritePhases(json, answer.phases);
  json.Key("compiles").BeginArray();
  for (const CompileChange& change : answer.compiles) WriteCompile(json, change);
  json.EndArray();
  for (const bool is_b : {false, true}) {
    json.Key(is_b ? "only_b" : "only_a").BeginArray();
    for (const UnmatchedCompile& compile : is_b ? answer.only_b : answer.only_a) {
      json.BeginObject()
          .Key("label")
          .String(compile.label)
          .Key("function")
          .String(compile.function)
          .Key("status")
          .String(Name(compile.status));
      json.Key("duration_us")
          .OptionalInt(compile.duration_us == 0 ? std::nullopt
                                                : std::optional(compile.duration_us));
      WriteTexts(json, "recompile_reasons", compile.recompile_reasons);
      json.EndObject();
    }
    json.EndArray();
  }
  WriteMeasured(json, answer.measured);
  json.EndObject();
}

}  // namespace

JsonWriter DiffJson(const RunComparison& answer) {
  JsonWriter json;
  const bool has_logs = std::all_of(answer.comparisons.begin(), answer.comparisons.end(),
                                    [](const RankComparison& one) { return one.diff.HasLogs(); });
  json.BeginObject().Key("is_equal");
  has_logs ? json.Bool(answer.IsEqual()) : json.Null();
  json.Key("comparisons").BeginArray();
  for (const RankComparison& one : answer.comparisons) WriteComparison(json, one);
  json.EndArray().Key("left_out").Int(static_cast<std::int64_t>(answer.left_out));
  json.Key("only_a_ranks")
      .OptionalString(NonEmpty(answer.only_a_ranks))
      .Key("only_b_ranks")
      .OptionalString(NonEmpty(answer.only_b_ranks));
  WriteDigests(json, answer.digests);
  json.EndObject();
  return json;
}

}  // namespace tlparse

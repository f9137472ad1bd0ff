// compilation_metrics and its variants: what PyTorch measured of a compile (CompilationMetrics in
// torch/_dynamo/utils.py), all in the metadata. It also shows whether a compile failed, and
// why it was restarted.
#include "rows/compilation_metrics.h"

#include <algorithm>

#include "artifacts/common/json_members.h"
#include "artifacts/common/text/observed_exception.h"
#include "artifacts/common/text/recompile_limit.h"
#include "rows/failure.h"

namespace tlparse {
namespace {

// The members that become columns or state. Members not listed are left to the view, which has the
// whole record.
struct Metrics {
  std::optional<std::string_view> co_name, co_filename, fail_type, fail_reason, fail_user_file,
      recompile_reason, cudagraph_skip_reason, torch_version, python_version;
  std::optional<std::int64_t> co_firstlineno, start_time_us, duration_us, dynamo_us,
      aot_autograd_us, inductor_us, code_gen_us, triton_us, backward_us, before_restart_us, gc_us,
      pre_grad_pass_us, joint_graph_pass_us, post_grad_pass_us, graph_op_count, graph_node_count,
      graph_input_count, guard_count, num_graph_breaks, cache_size, accumulated_cache_size,
      fail_user_line, end_time_us;
  // Seconds: the only spelling of early logs.
  std::optional<double> start_s, frame_s, backend_s, inductor_s, code_gen_s, before_restart_s,
      elapsed_s;
  std::optional<bool> has_guarded_code, is_forward;
  std::optional<simdjson::dom::array> restart_reasons;
};

struct StringField {
  std::string_view name;
  std::optional<std::string_view> Metrics::*field;
};
struct IntField {
  std::string_view name;
  std::optional<std::int64_t> Metrics::*field;
};
struct RealField {
  std::string_view name;
  std::optional<double> Metrics::*field;
};

constexpr StringField kStrings[] = {
    {"co_filename", &Metrics::co_filename},
    {"co_name", &Metrics::co_name},
    {"cudagraph_skip_reason", &Metrics::cudagraph_skip_reason},
    {"fail_reason", &Metrics::fail_reason},
    {"fail_type", &Metrics::fail_type},
    {"fail_user_frame_filename", &Metrics::fail_user_file},
    {"python_version", &Metrics::python_version},
    {"pytorch_version", &Metrics::torch_version},
    {"recompile_reason", &Metrics::recompile_reason},
};
constexpr IntField kInts[] = {
    {"accumulated_cache_size", &Metrics::accumulated_cache_size},
    {"aot_autograd_cumulative_compile_time_us", &Metrics::aot_autograd_us},
    {"backward_cumulative_compile_time_us", &Metrics::backward_us},
    {"cache_size", &Metrics::cache_size},
    {"co_firstlineno", &Metrics::co_firstlineno},
    {"duration_us", &Metrics::duration_us},
    {"dynamo_compile_time_before_restart_us", &Metrics::before_restart_us},
    {"dynamo_cumulative_compile_time_us", &Metrics::dynamo_us},
    {"end_time_us", &Metrics::end_time_us},
    {"fail_user_frame_lineno", &Metrics::fail_user_line},
    {"gc_time_us", &Metrics::gc_us},
    {"graph_input_count", &Metrics::graph_input_count},
    {"graph_node_count", &Metrics::graph_node_count},
    {"graph_op_count", &Metrics::graph_op_count},
    {"guard_count", &Metrics::guard_count},
    {"inductor_code_gen_cumulative_compile_time_us", &Metrics::code_gen_us},
    {"inductor_cumulative_compile_time_us", &Metrics::inductor_us},
    {"joint_graph_pass_time_us", &Metrics::joint_graph_pass_us},
    {"num_graph_breaks", &Metrics::num_graph_breaks},
    {"post_grad_pass_time_us", &Metrics::post_grad_pass_us},
    {"pre_grad_pass_time_us", &Metrics::pre_grad_pass_us},
    {"start_time_us", &Metrics::start_time_us},
    {"triton_compile_time_us", &Metrics::triton_us},
};
constexpr RealField kReals[] = {
    {"backend_compile_time_s", &Metrics::backend_s},
    {"code_gen_time_s", &Metrics::code_gen_s},
    {"dynamo_time_before_restart_s", &Metrics::before_restart_s},
    {"elapsed_time", &Metrics::elapsed_s},
    {"entire_frame_compile_time_s", &Metrics::frame_s},
    {"inductor_compile_time_s", &Metrics::inductor_s},
    {"start_time", &Metrics::start_s},
};

template <typename Field, std::size_t size>
const Field* Find(const Field (&fields)[size], std::string_view name) {
  const Field* found = std::lower_bound(
      std::begin(fields), std::end(fields), name,
      [](const Field& field, std::string_view wanted) { return field.name < wanted; });
  return found != std::end(fields) && found->name == name ? found : nullptr;
}

template <typename Field, std::size_t size>
constexpr bool IsSorted(const Field (&fields)[size]) {
  for (std::size_t index = 1; index < size; ++index) {
    if (!(fields[index - 1].name < fields[index].name)) return false;
  }
  return true;
}
static_assert(IsSorted(kStrings) && IsSorted(kInts) && IsSorted(kReals), "Find is a binary search");

// One pass over about a hundred members; one of a wrong type is logged and left out.
Metrics ReadMetrics(const simdjson::dom::object& object, IngestContext& context) {
  Metrics metrics;
  const JsonMembers members(object, context, ImportCode::kBadMetadata);
  for (const simdjson::dom::key_value_pair& member : object) {
    if (member.value.is_null()) continue;
    if (const StringField* field = Find(kStrings, member.key)) {
      std::string_view text;
      if (member.value.get(text) == simdjson::SUCCESS)
        metrics.*field->field = text;
      else
        members.Odd(member.key, "a string");
    } else if (const IntField* int_field = Find(kInts, member.key)) {
      metrics.*int_field->field = AsInt(member.value);
      if (!(metrics.*int_field->field)) members.Odd(member.key, "an integer");
    } else if (const RealField* real_field = Find(kReals, member.key)) {
      double real = 0;
      if (member.value.get(real) == simdjson::SUCCESS)
        metrics.*real_field->field = real;
      else
        members.Odd(member.key, "a number");
    } else if (member.key == "has_guarded_code") {
      metrics.has_guarded_code = members.Bool(member.key);
    } else if (member.key == "is_forward") {
      metrics.is_forward = members.Bool(member.key);
    } else if (member.key == "restart_reasons") {
      metrics.restart_reasons = members.Array(member.key);
    }
  }
  return metrics;
}

void FillFromSeconds(std::optional<std::int64_t>& us, std::optional<double> seconds) {
  if (us || !seconds || !(*seconds > -9e12 && *seconds < 9e12)) return;
  us = std::llround(*seconds * 1e6);
}

// Early logs have seconds only, and the early backward record calls its duration elapsed_time.
// Export and AOTInductor of 2.14 give the two ends and no duration. Early logs write the type of an
// exception as Python prints a class: <class 'torch._dynamo.exc.Unsupported'>.
void FillLegacy(Metrics& metrics) {
  constexpr std::string_view kClass = "<class '", kClassEnd = "'>";
  if (std::optional<std::string_view>& type = metrics.fail_type;
      type && type->starts_with(kClass) && type->ends_with(kClassEnd))
    type = type->substr(kClass.size(), type->size() - kClass.size() - kClassEnd.size());
  FillFromSeconds(metrics.start_time_us, metrics.start_s);
  FillFromSeconds(metrics.duration_us, metrics.frame_s);
  FillFromSeconds(metrics.duration_us, metrics.elapsed_s);
  if (!metrics.duration_us && metrics.start_time_us && metrics.end_time_us &&
      *metrics.end_time_us >= *metrics.start_time_us && *metrics.start_time_us >= 0) {
    metrics.duration_us = *metrics.end_time_us - *metrics.start_time_us;
  }
  FillFromSeconds(metrics.dynamo_us, metrics.frame_s);
  FillFromSeconds(metrics.aot_autograd_us, metrics.backend_s);
  FillFromSeconds(metrics.inductor_us, metrics.inductor_s);
  FillFromSeconds(metrics.code_gen_us, metrics.code_gen_s);
  FillFromSeconds(metrics.before_restart_us, metrics.before_restart_s);
}

class CompilationMetrics final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<CompilationMetricRow>();
    tables.Use<FailureRow>();
  }
  Result<void> Ingest(const Record& record, IngestContext& context) override;

 private:
  void AddRow(const Record& record, const Metrics& metrics, IngestContext& context);
  void AddFailures(const Record& record, const Metrics& metrics, IngestContext& context);
};

void CompilationMetrics::AddRow(const Record& record, const Metrics& m, IngestContext& context) {
  const auto text = [&](std::optional<std::string_view> value) {
    return context.OptionalText(value.value_or(""));
  };
  context.rows().Add(CompilationMetricRow{.record_id = record.id,
                                          .compile_id = record.compile_row_id(),
                                          .kind_id = context.Text(record.kind),
                                          .co_name_id = text(m.co_name),
                                          .co_filename_id = text(m.co_filename),
                                          .co_firstlineno = m.co_firstlineno,
                                          .start_time_us = m.start_time_us,
                                          .duration_us = m.duration_us,
                                          .dynamo_us = m.dynamo_us,
                                          .aot_autograd_us = m.aot_autograd_us,
                                          .inductor_us = m.inductor_us,
                                          .code_gen_us = m.code_gen_us,
                                          .triton_us = m.triton_us,
                                          .backward_us = m.backward_us,
                                          .before_restart_us = m.before_restart_us,
                                          .gc_us = m.gc_us,
                                          .graph_op_count = m.graph_op_count,
                                          .graph_node_count = m.graph_node_count,
                                          .graph_input_count = m.graph_input_count,
                                          .guard_count = m.guard_count,
                                          .num_graph_breaks = m.num_graph_breaks,
                                          .cache_size = m.cache_size,
                                          .accumulated_cache_size = m.accumulated_cache_size,
                                          .has_guarded_code = m.has_guarded_code,
                                          .fail_type_id = text(m.fail_type),
                                          .fail_reason_id = text(m.fail_reason),
                                          .recompile_reason_id = text(m.recompile_reason),
                                          .cudagraph_skip_reason_id = text(m.cudagraph_skip_reason),
                                          .pre_grad_pass_us = m.pre_grad_pass_us,
                                          .joint_graph_pass_us = m.joint_graph_pass_us,
                                          .post_grad_pass_us = m.post_grad_pass_us});
}

void CompilationMetrics::AddFailures(const Record& record, const Metrics& m,
                                     IngestContext& context) {
  if (m.fail_type || m.fail_reason) {
    context.rows().Add(
        FailureRow{.id = context.NextId<FailureRow>(),
                   .record_id = record.id,
                   .compile_id = record.compile_row_id(),
                   .attempt = record.attempt,
                   .kind_id = context.Text("failure"),
                   .type_id = context.OptionalText(m.fail_type.value_or("")),
                   .reason_id = context.OptionalText(m.fail_reason.value_or("")),
                   .user_file_id = context.OptionalText(m.fail_user_file.value_or("")),
                   .user_line = m.fail_user_line});
  }
  if (!m.restart_reasons || m.restart_reasons->size() == 0) return;
  // The reasons are a set: which one ended which attempt is known only if there is one reason.
  const bool is_only_one = m.restart_reasons->size() == 1;
  const std::int64_t last_attempt = record.attempt.value_or(0);
  for (const simdjson::dom::element& element : *m.restart_reasons) {
    std::string_view reason;
    if (element.get(reason) != simdjson::SUCCESS) {
      context.Log(ImportCode::kBadMetadata, "a restart reason is not a string");
      continue;
    }
    std::optional<std::int64_t> ended_attempt;
    if (is_only_one && last_attempt == 1) ended_attempt = 0;
    context.rows().Add(FailureRow{.id = context.NextId<FailureRow>(),
                                  .record_id = record.id,
                                  .compile_id = record.compile_row_id(),
                                  .attempt = ended_attempt,
                                  .kind_id = context.Text("restart"),
                                  .reason_id = context.Text(reason)});
    for (std::int64_t attempt = 1;
         is_only_one && record.compile != nullptr && attempt <= last_attempt && attempt < 1000;
         ++attempt) {
      record.compile->restart_reasons[attempt] = reason;
    }
  }
}

// What the compile's own row says. Runtime metrics tell of later work, except where nothing else is
// there (aot_compile of 2.14 writes its compile-time numbers under the runtime name).
void FillCompile(const Record& record, const Metrics& m, CompileState& compile) {
  const bool is_runtime = record.kind.ends_with("_runtime");
  // 2.6 names the refusal at the recompile limit "bwd_", as is_forward is null there.
  const bool is_backward =
      record.kind.starts_with("aot_autograd_backward") ||
      (record.kind.starts_with("bwd_") && (m.is_forward.has_value() || !m.fail_type));
  if (m.fail_type && !is_runtime) {
    compile.is_failed = true;
    compile.is_unsupported = m.fail_type->ends_with("Unsupported");
    compile.has_raised = compile.is_unsupported && IsObservedException(m.fail_reason.value_or(""));
    compile.is_refused = IsRecompileLimit(*m.fail_type, m.fail_reason.value_or("")) &&
                         !IsHardRecompileLimit(*m.fail_type);
  }
  if (is_backward) {
    // A compile has a backward for each of its graphs (the pieces of DDP).
    if (!is_runtime && m.duration_us)
      compile.backward_duration_us = compile.backward_duration_us.value_or(0) + *m.duration_us;
    return;
  }
  if (is_runtime && (compile.has_metrics || !compile.is_synthetic)) return;
  compile.has_metrics = true;
  compile.has_guarded_code = m.has_guarded_code.value_or(true);
  // Those of a capture tell of the part before the compiler.
  if (!compile.has_capture_time) {
    if (m.start_time_us) compile.start_time_us = m.start_time_us;
    if (m.duration_us) compile.duration_us = m.duration_us;
  }
  if (m.co_name) compile.function = *m.co_name;
  if (m.co_filename) compile.file = *m.co_filename;
  if (m.co_firstlineno) compile.line = m.co_firstlineno;
}

// Metrics are written when their compile ends: they set the clock of early logs, which have no
// events. A failed compile may not say how long it took.
void NoteEnd(const Metrics& m, IngestContext& context) {
  constexpr std::int64_t kMaxUs = 1LL << 61;
  const std::int64_t duration_us = m.duration_us.value_or(0);
  if (!m.start_time_us || *m.start_time_us <= 0 || *m.start_time_us > kMaxUs || duration_us < 0 ||
      duration_us > kMaxUs)
    return;
  context.NoteTime(*m.start_time_us + duration_us, IngestContext::TimeBasis::kCompilationMetrics);
}

Result<void> CompilationMetrics::Ingest(const Record& record, IngestContext& context) {
  ASSIGN_OR_RETURN(const simdjson::dom::object object, MetadataObject(context));
  Metrics metrics = ReadMetrics(object, context);
  FillLegacy(metrics);
  AddRow(record, metrics, context);
  AddFailures(record, metrics, context);
  NoteEnd(metrics, context);
  if (record.compile != nullptr) FillCompile(record, metrics, *record.compile);
  if (record.process->torch_version.empty())
    record.process->torch_version = metrics.torch_version.value_or("");
  if (record.process->python_version.empty())
    record.process->python_version = metrics.python_version.value_or("");
  return {};
}

}  // namespace

TLPARSE_ARTIFACT(compilation_metrics, CompilationMetrics, OpensStretch("compilation_metrics"),
                 OpensStretch("bwd_compilation_metrics"), "compilation_metrics_runtime",
                 "bwd_compilation_metrics_runtime",
                 OpensStretch("aot_autograd_backward_compilation_metrics"))

}  // namespace tlparse

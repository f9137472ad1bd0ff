// The JSON of `tlparse history`, and its schema.
#include <utility>
#include <vector>

#include "base/fields.h"
#include "cli/compile_status_fields.h"
#include "cli/history_output.h"
#include "cli/only_field.h"
#include "cli/schemas.h"
#include "cli/vllm_start_output.h"
#include "facts/compiles/recompile_reasons.h"
#include "facts/job/not_looked_for.h"

namespace tlparse {
namespace {

struct InHistory {
  QueryRows<CompileInHistory>& compiles;
  Database& database;
  Result<void>& state;
};

// The failed guards as the table has them, of all earlier compiles.
std::optional<std::string> GuardsInWords(const CompileInHistory& row, const InHistory& in) {
  Result<std::vector<FailedEntry>> entries = LoadFailedEntries(in.database, row.compile_id);
  if (!entries) in.state = tl::unexpected<Error>(std::move(entries).error());
  if (!entries || entries->empty()) return std::nullopt;
  return FailedEntriesText(*entries, "after ");
}

}  // namespace

template <>
struct FieldsOf<CompileInHistory> {
  using Of = CompileInHistory;
  static constexpr FieldList list{
      Field{"run", &Of::run},
      Field{"compile_id", &Of::compile_id},
      Field{"run_id", &Of::run_id},
      Field{"rank", &Of::rank},
      Field{"process_id", &Of::process_id},
      Field{"label", &Of::label},
      Field{"generation", &Of::generation, "how often the process had used the label before"},
      Field{"function", &Of::function},
      Field{"file", &Of::file},
      Field{"line", &Of::line},
      Field{"status", &StatusOf},
      Field{"start_time_us", &Of::start_time_us},
      Field{"duration_us", &Of::duration_us},
      Field{"backward_duration_us", &Of::backward_duration_us},
      Field{"total_us", &Of::total_us, "of the compile and its lazy backward"},
      Field{"dynamo_us", &Of::dynamo_us},
      Field{"aot_autograd_us", &Of::aot_autograd_us},
      Field{"inductor_us", &Of::inductor_us},
      Field{"code_gen_us", &Of::code_gen_us},
      Field{"triton_us", &Of::triton_us},
      Field{"before_restart_us", &Of::before_restart_us, "spent in attempts that were discarded"},
      Field{"graph_breaks", &Of::graph_breaks},
      Field{"restarts", &Of::restarts},
      Field{"recompile_reason", &Of::recompile_reason, "as in the log"},
      Field{"recompile_of", &Of::recompile_of, "label of the newest earlier compile"},
      Field{"caches", &Of::caches, "layers and states of its lookups"},
      Field{"graphs", &Of::graphs},
      Field{"graph_op_count", &Of::graph_op_count},
      Field{"guard_count", &Of::guard_count},
      Field{"fail_type", &Of::fail_type},
      Field{"fail_reason", &Of::fail_reason},
      Field{"backward_inductor_us", &Of::backward_inductor_us},
      Field{"launch", &Of::launch},
      Field{"pid", &Of::pid},
      Field{"child_kind", &Of::child_kind, "of a process that the rank started; null: the rank"},
      Field{"calls", &Of::calls, "in the profiles, of its graph that was called most"},
      Field{"run_us", &Of::run_us},
      Field{"device_us", &Of::device_us},
      Field{"ends_in_backward", &Of::ends_in_backward, "the log ends inside its backward"},
      Field{"cuda_graphs", &Of::cuda_graphs, "that were recorded when its code ran"},
      Field{"cuda_graph_skip", &Of::cuda_graph_skip, "why none was recorded, as in the log"},
      Field{"process_signal", &Of::process_signal, "that ended its process, by run.json"},
      Field{"process_exit_code", &Of::process_exit_code},
      Field{"failed_guards", &Of::failed_guards, "of all earlier compiles that were tried"},
      Field{"failed_guards_in_words", &GuardsInWords},
  };
};

template <>
struct FieldsOf<HistoryAnswer> {
  using Of = HistoryAnswer;
  static constexpr std::string_view description =
      "The compiles in order of time: the view compile_history, with the launch, the guards that "
      "failed, and calls of profiles. Times are microseconds since the epoch, UTC, durations "
      "microseconds; null: unknown.";
  static constexpr FieldList list{
      Field{"compiles", [](const Of&, const InHistory& in) { return EachRow(in.compiles); }},
      Missable{"compile_count", &Of::compile_count, "with --limit or --skip: of all compiles"},
      Missable{
          "vllm_starts",
          [](const Of& of) { return of.starts.empty() ? std::nullopt : std::optional(of.starts); },
          "how long vLLM took to start, by stage, as its own lines tell; of a text the first 1,000 "
          "starts"},
      Missable{"not_looked_for", OrNull{&Of::why_none}, kWhyNone},
      Missable{"only", OrNull{&Of::only}, kOnly},
  };
};

std::string HistorySchema() { return SchemaOf<HistoryAnswer, InHistory>("tlparse history --json"); }

Result<JsonWriter> HistoryJson(Database& database, QueryRows<CompileInHistory>& compiles,
                               const HistoryAnswer& answer) {
  Result<void> state;
  JsonWriter json = ToJson(answer, InHistory{compiles, database, state});
  RETURN_IF_ERROR(state);
  RETURN_IF_ERROR(compiles.Ended());
  return json;
}

}  // namespace tlparse

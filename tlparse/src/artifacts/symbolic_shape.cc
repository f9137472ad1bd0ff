// Symbolic shapes and the D records of TORCH_DTRACE (torch/fx/experimental,
// torch/_subclasses/fake_tensor.py). Everything they say is in their metadata, which the views of
// symbolic_shape.sql read: nothing is stored twice.
#include "artifacts/artifact.h"
#include "artifacts/common/json_members.h"

namespace tlparse {
namespace {

class SymbolicShapes final : public Ingestor {
 public:
  void Prepare(TableSet&) override {}

  // A compile ahead of time has no dynamo_start: its function is that of the outermost frame in
  // which one of its symbols was made. The line is not that of its definition.
  Result<void> Ingest(const Record& record, IngestContext& context) override {
    CompileState* const compile = record.compile;
    if (record.kind != "create_symbol" || record.process->capture_record_id == 0 ||
        compile == nullptr || compile->is_synthetic || compile->has_start ||
        !compile->function.empty())
      return {};
    ASSIGN_OR_RETURN(const simdjson::dom::object metadata, MetadataObject(context));
    simdjson::dom::object frame;
    std::string_view function;
    std::int64_t file = 0;
    if (metadata.at_key("user_stack").at(0).get(frame) != simdjson::SUCCESS ||
        frame.at_key("name").get(function) != simdjson::SUCCESS)
      return {};
    compile->function = function;
    if (frame.at_key("filename").get(file) == simdjson::SUCCESS)
      compile->file = record.process->String(file).value_or("");
    return {};
  }
};

}  // namespace

TLPARSE_ARTIFACT(symbolic_shape, SymbolicShapes, "create_symbol", "create_unbacked_symbol",
                 "guard_added", "guard_added_fast", "symbolic_shape_specialization",
                 "propagate_real_tensors", "propagate_real_tensors_provenance",
                 "guard_on_data_dependent_error", "expression_created", "missing_fake_kernel",
                 "mismatched_fake_kernel")

}  // namespace tlparse

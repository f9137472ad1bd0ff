// Symbolic shapes and the D records of TORCH_DTRACE (torch/fx/experimental,
// torch/_subclasses/fake_tensor.py). Everything they say is in their metadata, which the views of
// symbolic_shape.sql read: nothing is stored twice.
#include "artifacts/artifact.h"

namespace tlparse {
namespace {

class SymbolicShapes final : public Ingestor {
 public:
  void Prepare(TableSet&) override {}
  Result<void> Ingest(const Record&, IngestContext&) override { return {}; }
};

}  // namespace

TLPARSE_ARTIFACT(symbolic_shape, SymbolicShapes, "create_symbol", "create_unbacked_symbol",
                 "guard_added", "guard_added_fast", "symbolic_shape_specialization",
                 "propagate_real_tensors", "propagate_real_tensors_provenance",
                 "guard_on_data_dependent_error", "expression_created", "missing_fake_kernel",
                 "mismatched_fake_kernel")

}  // namespace tlparse

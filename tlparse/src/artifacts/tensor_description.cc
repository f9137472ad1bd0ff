// The inputs of a compile: describe_storage, describe_tensor, describe_source
// (torch/_subclasses/meta_utils.py). Their metadata says it all; tensor_description.sql has views
// over it.
#include "artifacts/artifact.h"

namespace tlparse {
namespace {

class TensorDescriptions final : public Ingestor {
 public:
  void Prepare(TableSet&) override {}
  Result<void> Ingest(const Record&, IngestContext&) override { return {}; }
};

}  // namespace

TLPARSE_ARTIFACT(tensor_description, TensorDescriptions, "describe_storage", "describe_tensor",
                 "describe_source")

}  // namespace tlparse

// torch_version: which PyTorch wrote the log; the second record of every file of recent versions
// (_log_torch_version in torch/_logging/_internal.py).
#include "artifacts/common/json_members.h"

namespace tlparse {
namespace {

class TorchVersion final : public Ingestor {
 public:
  void Prepare(TableSet&) override {}

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    ASSIGN_OR_RETURN(const simdjson::dom::object payload, PayloadObject(context));
    const JsonMembers members(payload, context, ImportCode::kBadPayload);
    if (const std::optional<std::string_view> version = members.String("pytorch_version")) {
      record.process->torch_version = *version;
    }
    return {};
  }
};

}  // namespace

TLPARSE_ARTIFACT(torch_version, TorchVersion, StandsAlone("artifact/torch_version"))

}  // namespace tlparse

#include "import/record_preparer.h"

#include <cstddef>
#include <optional>

#include "artifacts/artifact.h"

namespace tlparse {

void RecordPreparer::Prepare(const Window& window, std::vector<PreparedRecord>& prepared) {
  prepared.clear();
  prepared.resize(window.records.size());
  for (std::size_t index = 0; index < window.records.size(); ++index) {
    const LogRecord& record = window.records[index];
    const std::string_view to_parse =
        record.payload_state == PayloadState::kOk ? record.raw_payload : record.payload;
    if (to_parse.empty()) continue;
    const Envelope& envelope = record.envelope;
    const std::optional<std::size_t> family = finder_.Find(envelope.kind, envelope.name);
    if (!family) continue;
    if (const PrepareFunction prepare = AllArtifacts()[*family]->prepare; prepare != nullptr)
      prepare({envelope.kind, envelope.name, record.payload, to_parse}, buffer_, prepared[index]);
  }
}

}  // namespace tlparse

// vllm_piecewise_compile_start: vLLM compiles the next piece of the graph that it split, for one
// range of sizes (vllm/compilation/piecewise_backend.py). The graphs that follow are named after
// it: nothing else distinguishes them, because their records have no compile id. What else vLLM logs
// is read through views (vllm.sql).
#include <fmt/format.h>

#include "artifacts/artifact.h"
#include "artifacts/common/json_members.h"

namespace tlparse {
namespace {

class VllmPieces final : public Ingestor {
 public:
  void Prepare(TableSet&) override {}

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    ASSIGN_OR_RETURN(const simdjson::dom::object payload, PayloadObject(context));
    const JsonMembers members(payload, context, ImportCode::kBadPayload);
    const std::optional<std::string_view> submod = members.String("submod_name");
    const std::optional<std::int64_t> index = members.Int("piecewise_index");
    const std::optional<std::int64_t> start = members.Int("compile_range_start");
    const std::optional<std::int64_t> end = members.Int("compile_range_end");
    if (record.compile == nullptr || (!submod && !index)) return {};
    std::string& piece = record.compile->next_graph_name;
    piece = submod ? std::string(*submod) : fmt::format("piece {}", *index);
    if (start && end)
      piece +=
          start == end ? fmt::format(" size {}", *start) : fmt::format(" [{}, {}]", *start, *end);
    return {};
  }
};

}  // namespace

TLPARSE_ARTIFACT(vllm, VllmPieces, "artifact/vllm_piecewise_compile_start")

}  // namespace tlparse

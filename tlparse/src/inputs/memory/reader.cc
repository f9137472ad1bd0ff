// Snapshots of PyTorch's caching allocator: torch.cuda.memory._dump_snapshot, also those that are
// written when an allocation fails; JSON of _snapshot(). Names of members are those of
// torch/csrc/cuda/Module.cpp and memory_snapshot.cpp.
#include "inputs/reader.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "base/plural.h"
#include "inputs/common/pickle_machine.h"
#include "inputs/common/pickle_reader.h"
#include "inputs/memory/json_feed.h"
#include "inputs/memory/rows.h"
#include "inputs/memory/source.h"
#include "inputs/memory/values.h"
#include "inputs/recorder/name.h"
#include "rows/memory.h"

namespace tlparse {
namespace {

class MemoryReader final : public RuntimeReader {
 public:
  void Prepare(TableSet& tables) override {
    stacks_ = std::make_unique<StackPool>(tables);
    tables.Use<MemorySnapshotRow>();
    tables.Use<MemorySiteRow>();
    tables.Use<MemoryEventRow>();
    tables.Use<MemoryAllocationRow>();
    tables.Use<MemorySegmentRow>();
    tables.Use<MemoryBlockRow>();
    tables.Use<MemoryAnnotationRow>();
  }
  Result<bool> Read(RuntimeContext& context) override;

 private:
  std::unique_ptr<StackPool> stacks_;
};

// Its metadata: what else the file holds.
std::string SnapshotMetadata(const memory::Values& values, const std::optional<memory::Node>& root,
                             bool is_pickle) {
  JsonWriter json;
  json.BeginObject().Key("form").String(is_pickle ? "pickle" : "json");
  const std::optional<memory::Node> settings =
      root ? values.Member(*root, "allocator_settings") : std::nullopt;
  std::string text;
  if (settings && values.AppendJson(*settings, text)) json.Key("allocator_settings").Raw(text);
  return json.EndObject().Take();
}

void LogSnapshotProblem(const PlainProblem& problem, std::int64_t events, std::string_view text,
                        RuntimeContext& context) {
  ImportPlace place;
  place.byte_offset = problem.byte_offset;
  context.Log(problem.is_cut       ? ImportCode::kCutProfile
              : problem.is_refused ? ImportCode::kRefusedPickle
                                   : ImportCode::kBadRuntimeFile,
              fmt::format("{}; {} before it {} read", problem.message, Count(events, "event"),
                          events == 1 ? "was" : "were"),
              place, text);
}

Result<bool> MemoryReader::Read(RuntimeContext& context) {
  RETURN_IF_ERROR(stacks_->Load(context.database()));
  context.facts().kind = "memory_snapshot";
  context.facts().rank = RankFromDumpName(context.input().path);
  memory::StreamSource source(
      [&](char* buffer, std::size_t capacity) { return context.Read(buffer, capacity); });
  memory::SnapshotRows rows(context, *stacks_);
  memory::Values values(rows);
  rows.set_values(values);
  std::optional<memory::Node> root;
  std::optional<PlainProblem> problem;
  const bool is_pickle = LooksLikePickle(source.Ahead(3));
  if (is_pickle) {
    PickleMachine<memory::StreamSource, memory::Values> machine(source, values);
    while (!rows.error() && machine.Step()) {
      if (rows.IsFull()) machine.Stop("more blocks live at once than are followed");
    }
    machine.Finish();
    root = machine.root();
    problem = std::move(machine.problem());
  } else {
    memory::JsonResult json = memory::ReadSnapshotJson(
        source, values, [&] { return rows.IsFull() || rows.error().has_value(); });
    root = json.root;
    problem = std::move(json.problem);
  }
  const std::string latest(source.Latest());
  source.PassOver();
  if (source.error()) return tl::unexpected<Error>(*source.error());
  context.facts().event_count = rows.events();
  context.facts().metadata = SnapshotMetadata(values, root, is_pickle);
  RETURN_IF_ERROR(rows.Finish(!problem));
  if (problem) LogSnapshotProblem(*problem, rows.events(), latest, context);
  return true;
}

}  // namespace

std::unique_ptr<RuntimeReader> MakeMemoryReader() { return std::make_unique<MemoryReader>(); }

}  // namespace tlparse

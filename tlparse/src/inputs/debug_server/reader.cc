// Stacks of all ranks by the debug server of torch.distributed.
#include "inputs/reader.h"

#include <fmt/format.h>

#include "artifacts/common/text/python_stack.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "inputs/common/line_stream.h"
#include "inputs/debug_server/text.h"
#include "rows/debug_server.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostServerLine = std::size_t{64} << 10;

class DebugServerReader final : public RuntimeReader {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<DebugServerDumpRow>();
    tables.Use<DebugServerRankRow>();
  }

  Result<bool> Read(RuntimeContext& context) override {
    context.facts().kind = "debug_server";
    LineStream lines(context, kMostServerLine);
    DebugServerText text;
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<LineStream::Line> line, lines.Next());
      if (!line) break;
      ++context.facts().event_count;
      if (!line->is_too_long) text.Add(SanitizeUtf8(line->text), line->number);
    }
    if (text.ranks.empty()) return true;
    const std::string endpoint = text.ranks.front().endpoint;
    const std::string taken_at = DebugServerTime(context.input().path);
    DebugServerDumpRow dump{.id = context.NextId<DebugServerDumpRow>(),
                            .profile_id = context.profile_id(),
                            .endpoint = endpoint};
    if (!taken_at.empty()) dump.taken_at = taken_at;
    context.rows().Add(dump);
    for (const DebugServerRank& rank : text.ranks) {
      AddRank(rank, dump.id.value(), context);
      RETURN_IF_ERROR(context.Flush());
    }
    return true;
  }

 private:
  static void AddRank(const DebugServerRank& rank, std::int64_t dump_id, RuntimeContext& context) {
    ++context.facts().kept_count;
    DebugServerRankRow row{.id = context.NextId<DebugServerRankRow>(),
                           .profile_id = context.profile_id(),
                           .dump_id = dump_id,
                           .line = rank.line,
                           .rank = rank.rank,
                           .address = rank.address,
                           .is_in_collective = IsInCollective(rank.stacks) ? 1 : 0};
    const std::string stopped_at = MainFrame(rank.stacks);
    if (!rank.error.empty()) row.error = rank.error;
    if (!stopped_at.empty()) row.stopped_at = stopped_at;
    if (rank.error.empty()) row.stacks = rank.stacks;
    context.rows().Add(row);
  }
};

}  // namespace

std::unique_ptr<RuntimeReader> MakeDebugServerReader() {
  return std::make_unique<DebugServerReader>();
}

}  // namespace tlparse

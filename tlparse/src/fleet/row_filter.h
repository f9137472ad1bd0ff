// Selects the rows of a table that are pushed.
#pragma once

#include <string>

#include "fleet/fleet_schema.h"
#include "fleet/id_set.h"
#include "fleet/push_context.h"
#include "fleet/row_source.h"

namespace tlparse {

// SQL condition of the rows `r` that answers read; empty: all. Left out are most short
// events and records of the frequent kinds; events that never ended and the last records are kept:
// they show where a process stopped.
std::string RowsThatAnswersRead(const FleetTable& table, const RowOptions& options);

// Selects rows of a pool or of the run's own tables by their columns.
class RowFilter {
 public:
  RowFilter(PushContext& context, const FleetTable& table)
      : context_(context),
        table_(table),
        run_at_(table.FindSqlite("run_id")),
        log_at_(table.FindSqlite("log_file_id")),
        id_at_(table.FindSqlite("id")) {
    for (const SelectedLog& log : context.run().logs) logs_.Add(log.id);
  }

  bool WantsPool(const Statement& row) const {
    if (table_.name == "payload_content")
      return context_.used.payloads.Has(row.Int(table_.FindSqlite("payload_id")));
    if (context_.run().is_everything) return true;
    const std::int64_t id = row.Int(id_at_);
    if (table_.name == "text") return context_.used.texts.Has(id);
    if (table_.name == "cache_key") return context_.used.keys.Has(id);
    if (table_.name == "stack_frame") return context_.used.stacks.Has(id);
    if (table_.name == "content") return context_.used.contents.Has(id);
    return true;
  }

  // Of a fact that belongs to no process.
  bool WantsOther(const Statement& row) const {
    const RunSelection& run = context_.run();
    if (run.is_everything) return true;
    if (table_.name == "run") return row.Int(id_at_) == run.run_id;
    if (table_.name == "log_file") return logs_.Has(row.Int(id_at_));
    if (log_at_ >= 0 && !row.IsNull(log_at_)) return logs_.Has(row.Int(log_at_));
    if (run_at_ >= 0 && !row.IsNull(run_at_)) return row.Int(run_at_) == run.run_id;
    return false;
  }

 private:
  PushContext& context_;
  const FleetTable& table_;
  int run_at_, log_at_, id_at_;
  IdSet logs_;
};

}  // namespace tlparse

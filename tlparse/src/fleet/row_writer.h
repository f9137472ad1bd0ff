#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/fleet_schema.h"
#include "fleet/push_context.h"
#include "fleet/row_binary.h"
#include "fleet/row_source.h"
#include "store/database.h"

namespace tlparse {

// Writes rows of one table of the database in the columns of its table in a fleet.
class RowWriter {
 public:
  RowWriter(PushContext& context, const FleetTable& table, const RowOptions& options,
            const std::set<std::string>& columns_there);

  // "SELECT …" of the table's columns as r.
  const std::string& select() const { return select_; }
  bool has_owner() const { return !owners_.empty(); }

  // The process that the row belongs to; PushContext::kNone: none.
  Result<std::int64_t> ProcessOf(const Statement& row);
  // Appends the columns of the row.
  Result<void> Write(const Statement& row, std::int64_t process, std::string& out);

 private:
  // How one column of a fleet's table gets its value.
  struct Step {
    const FleetColumn* column = nullptr;
    ColumnReference reference = ColumnReference::kNone;
    const std::string* referenced = nullptr;
    int at = -1;  // column of the statement
    bool is_hidden = false;
    bool is_json = false;  // hidden: an empty object
  };

  // Finds the process of a row.
  struct Owner {
    enum class Kind { kProcess, kCompile, kGraph, kRecord, kTable } kind;
    int at;
    std::string table;
  };

  void FindOwners();
  std::int64_t CompileOf(const Statement& row) const;
  std::int64_t GraphOf(const Statement& row) const;
  void WriteOptional(std::int64_t value, bool is_null, RowBinaryWriter& write);
  Result<void> WriteColumn(const Statement& row, const Step& step, RowBinaryWriter& write);
  Result<void> WriteHash(const Statement& row, const Step& step, RowBinaryWriter& write);
  void NoteUse(const Step& step, std::int64_t id);
  Result<void> WriteValue(const Statement& row, const Step& step, RowBinaryWriter& write);
  static void WriteText(std::string_view text, const Step& step, RowBinaryWriter& write);

  PushContext& context_;
  const FleetTable& table_;
  std::string select_;
  std::vector<Step> steps_;
  std::vector<Owner> owners_;
  std::int64_t process_ = PushContext::kNone;
  int compile_at_ = -1;
  int graph_at_ = -1;
  int layer_at_ = -1;
  int id_at_ = -1;
};

}  // namespace tlparse

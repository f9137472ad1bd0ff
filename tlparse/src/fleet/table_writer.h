#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "fleet/fleet_schema.h"
#include "fleet/pull_facts.h"
#include "fleet/pull_ids.h"
#include "fleet/row_binary.h"
#include "store/database.h"
#include "store/hash128.h"

namespace tlparse {

// Writes the rows of one table of a load into a pulled database.
class TableWriter {
 public:
  // `contents`: of the database, for rows that refer to rows below one. What is given by reference
  // must outlive the writer.
  TableWriter(PulledRun& run, const FleetTable& table, std::size_t load, LoadIds& ids,
              const std::string& host, const ContentIds& contents);

  // Before the first row.
  Result<void> Prepare();
  // Reads one row of the server's answer and inserts it, unless another load brought it.
  Result<void> Read(RowBinaryReader& reader);
  // Rows of other log files are left out; null: none are. The set must outlive the writer.
  void SetLogs(const std::set<std::int64_t>* logs) { logs_ = logs; }

 private:
  // A value of a row as it came.
  struct Value {
    bool is_null = false;
    std::int64_t integer = 0;
    double real = 0;
    std::string_view text;
    Hash128 hash;
  };

  // How one column of the database is made from the columns of the fleet's table.
  struct Target {
    const SqliteColumn* column = nullptr;
    int value = -1;  // index of the value; -1: the server has none
    int hash = -1;   // index of the hash beside it
    int is_blob = -1;
    FleetColumn::Type type = FleetColumn::Type::kInt;
    bool is_own_id = false;
  };

  static void ReadValue(RowBinaryReader& reader, const FleetColumn& column, Value& value);
  const Value& ValueOf(std::string_view column) const;

  bool WantsLog(std::int64_t id) const { return logs_ == nullptr || logs_->count(id) > 0; }

  bool InternContent();
  bool InternKey();
  // All loads are of one run.
  bool InternRun();
  std::int64_t Shift(std::string_view table);
  Result<std::int64_t> Translate(const Target& target, std::int64_t id);
  Hash128 HashBeside(const Target& target) const;
  std::int64_t ContentBeside(const Target& target) const;
  Result<void> Bind(int parameter, const Target& target);
  // Hosts may have logs of one name.
  void BindPath(int parameter, std::string_view path);

  const ContentIds& contents_;
  PulledRun& run_;
  const FleetTable& table_;
  std::size_t load_;
  LoadIds& ids_;
  const std::string& host_;
  std::vector<Target> targets_;
  std::vector<Value> values_;
  Statement insert_;
  bool is_pool_ = false;
  std::int64_t own_id_ = 0;
  std::string path_;
  const std::set<std::int64_t>* logs_ = nullptr;
};

}  // namespace tlparse

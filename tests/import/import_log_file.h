// Ingests logs that a test writes, and says what the database holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/importer.h"
#include "tests/catch2.h"
#include "tests/log/read_log.h"
#include "tests/store/scratch_database.h"

namespace tlparse {

struct Ingest {
  TempDirectory directory;
  std::string database_path = directory.path() + "/trace.db";

  std::string Write(const std::string& name, std::string_view text) {
    return directory.Write(name, text);
  }
  Result<ImportSummary> Run(const std::vector<std::string>& paths, bool append,
                            std::string run_name = "run") {
    ImportOptions options;
    options.database_path = database_path;
    options.run_name = std::move(run_name);
    options.append = append;
    std::vector<FoundLog> logs;
    for (const std::string& path : paths) logs.push_back({path, RankFromFileName(path), -1});
    return ImportLogs(logs, {}, options);
  }
  Lines Rows(std::string_view sql) {
    Database database = OpenOrThrow(database_path, Database::Mode::kReadOnly);
    Result<Statement> statement = database.Prepare(sql);
    if (!statement) throw std::runtime_error(statement.error().message);
    Lines rows;
    while (*statement->Step()) {
      std::string row;
      for (int column = 0; column < statement->column_count(); ++column) {
        row += (column > 0 ? "|" : "") + statement->OptionalText(column).value_or("NULL");
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }
};

}  // namespace tlparse

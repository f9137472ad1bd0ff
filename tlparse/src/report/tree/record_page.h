// Pages that show the metadata of one record: metrics, guards, symbols.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "report/tree/lenient_json.h"
#include "report/tree/stack_text.h"
#include "store/database.h"

namespace tlparse {

class FileWriter;

// Reads metadata and stacks of single records.
class RecordPages {
 public:
  static Result<RecordPages> Open(Database& database);

  // A page with every member of the record's metadata and with its stacks.
  Result<void> AppendMetadataPage(std::int64_t record_id, std::string_view title,
                                  std::string_view path_to_tree, FileWriter& out);

 private:
  Database* database_ = nullptr;
  StackReader stacks_;
  LenientParser parser_;
};

// dynamo_guards: `payload` is a list of objects with `code`; anything else is shown as text.
void AppendGuardsPage(std::string_view payload, std::string_view title, FileWriter& out);

// inductor_provenance_tracking_kernel_stack_traces: kernel → list of stacks.
void AppendStackTracesPage(std::string_view payload, std::string_view title, FileWriter& out);

}  // namespace tlparse

// JSON Schemas of what answers write with --json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tlparse {

// Answers with a schema, sorted: "bisect", "cache", …
std::vector<std::string_view> AnswersWithSchema();
// Empty: there is no such answer.
std::string AnswerSchema(std::string_view answer);

// Of answers whose fields are declared (base/fields.h), each beside its fields.
std::string AutotuneSchema();
std::string BisectSchema();
std::string CacheSchema();
std::string CheckSchema();
std::string CollectivesSchema();
std::string CompileSchema();
std::string CostSchema();
std::string DiffSchema();
std::string DoctorSchema();
std::string ExecutionSchema();
std::string ExplainSchema();
std::string FindingsSchema();
std::string HistorySchema();
std::string MemorySchema();
std::string ProvenanceSchema();
std::string RanksSchema();
std::string RecompilesSchema();
std::string RedactSchema();
std::string SourceSchema();
std::string StatusSchema();
std::string TrySchema();
std::string UnknownNamesSchema();
std::string WatchSchema();

}  // namespace tlparse

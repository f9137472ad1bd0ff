#include "inputs/join/recorder_code.h"

#include <algorithm>
#include <utility>

namespace tlparse {

std::string ReduceOp(std::string_view op, std::string_view arguments) {
  if (op.find("reduce") == std::string_view::npos) return {};
  const std::size_t begin = arguments.find_first_of("'\"");
  if (begin == std::string_view::npos) return {};
  const std::size_t end = arguments.find(arguments[begin], begin + 1);
  const std::string_view word = arguments.substr(begin + 1, end - begin - 1);
  // Anything else in quotes is the name of the group.
  constexpr std::string_view kOps[] = {"sum",  "avg", "product", "min",       "max",
                                       "band", "bor", "bxor",    "premul_sum"};
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return std::find(std::begin(kOps), std::end(kOps), lower) == std::end(kOps) ? std::string()
                                                                              : lower;
}

bool IsGeneratedFile(std::string_view file) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  return name.size() == 55 && name.front() == 'c' && name.ends_with(".py") &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567") == 52;
}

Result<void> RecorderCode::Load(Database& database, std::optional<std::int64_t> process_id) {
  if (!process_id) return {};
  std::map<std::int64_t, std::pair<std::string, RecordedCode>> by_record;
  ASSIGN_OR_RETURN(
      Statement codes,
      database.Prepare("SELECT o.record_id, o.graph_id, o.path, r.time_us "
                       "FROM process p JOIN output_code o "
                       "ON o.record_id BETWEEN p.first_record_id AND p.last_record_id "
                       "JOIN record r ON r.id = o.record_id "
                       "WHERE p.id = ?1 AND r.process_id = ?1 AND o.path IS NOT NULL"));
  codes.Bind(1, *process_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, codes.Step());
    if (!has_row) break;
    by_record[codes.Int(0)] = {std::string(codes.Text(2)),
                               RecordedCode{codes.Int(0), codes.Int(1), codes.Int(3), {}}};
  }
  ASSIGN_OR_RETURN(
      Statement collectives,
      database.Prepare("SELECT op, group_name, shape, arguments, code_line FROM collective "
                       "WHERE record_id = ? AND source = 'code' AND is_wait = 0 ORDER BY ordinal"));
  for (auto& [record_id, code] : by_record) {
    collectives.Bind(1, record_id);
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, collectives.Step());
      if (!has_row) break;
      code.second.collectives.push_back(
          {std::string(collectives.Text(0)), std::string(collectives.Text(1)),
           std::string(collectives.Text(2)), std::string(collectives.Text(3)), collectives.Int(4)});
    }
    by_path_[code.first].push_back(std::move(code.second));
  }
  return {};
}

const RecordedCode* RecorderCode::At(const std::string& path, std::int64_t created_ns) const {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return nullptr;
  constexpr std::int64_t kSlackUs = 5000;  // the log's clock ticks in milliseconds
  const RecordedCode* latest = nullptr;
  for (const RecordedCode& code : found->second) {
    if (latest == nullptr || code.time_us <= created_ns / 1000 + kSlackUs) latest = &code;
  }
  return latest;
}

}  // namespace tlparse

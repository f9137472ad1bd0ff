#include "inputs/join/recorder_code.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "queries/inputs/join/recorder_code.h"

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
  const std::string lower = InLowerCase(word);
  return std::find(std::begin(kOps), std::end(kOps), lower) == std::end(kOps) ? std::string()
                                                                              : lower;
}

bool IsGeneratedFile(std::string_view file) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  return name.size() == 55 && name.front() == 'c' && name.ends_with(".py") &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567") == 52;
}

bool IsFrameOfTorch(std::string_view file) {
  if (file.find("/lib/python3") != std::string_view::npos &&
      file.find("-packages/") == std::string_view::npos)
    return true;
  for (const std::string_view part :
       {"/torch/distributed/", "/torch/_", "/torch/nn/", "/torch/autograd/", "/torch/utils/",
        "/torch/fx/", "/torch/optim/", "/torch/cuda/", "/torch/compiler/", "/torch/export/"}) {
    if (file.find(part) != std::string_view::npos) return true;
  }
  return file.empty() || file.front() == '<' || file == "??";
}

Result<void> RecorderCode::Load(Database& database, std::optional<std::int64_t> process_id) {
  if (!process_id) return {};
  std::map<std::int64_t, std::pair<std::string, RecordedCode>> by_record;
  FOR_EACH_ROW(const CodeOfProcess& row,
               Query<CodeOfProcess>(database, {.process_id = *process_id})) {
    by_record[row.record_id] = {std::string(row.path),
                                RecordedCode{row.record_id, row.graph_id, row.time_us, {}}};
  }
  ASSIGN_OR_RETURN(PreparedQuery<CollectiveOfCode> collectives,
                   PreparedQuery<CollectiveOfCode>::Make(database));
  for (auto& [record_id, code] : by_record) {
    FOR_EACH_ROW(const CollectiveOfCode& row, collectives.Run({.record_id = record_id})) {
      code.second.collectives.push_back({std::string(row.op), std::string(row.group_name),
                                         std::string(row.shape), std::string(row.arguments),
                                         row.code_line});
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

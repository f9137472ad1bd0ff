// The generated code of a process, indexed for the joins of recorder dumps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// The code of one graph, as the log recorded it.
struct RecordedCode {
  struct Collective {
    std::string op;
    std::string group;
    std::string shape;
    std::string arguments;
    std::int64_t line = 0;
  };
  std::int64_t record_id = 0;
  std::int64_t graph_id = 0;
  std::int64_t time_us = 0;
  std::vector<Collective> collectives;  // without waits
};

class RecorderCode {
 public:
  // Nothing if the process is unknown.
  Result<void> Load(Database& database, std::optional<std::int64_t> process_id);
  // The latest code at that path when the collective was issued.
  const RecordedCode* At(const std::string& path, std::int64_t created_ns) const;
  // By path, in order of time.
  const std::map<std::string, std::vector<RecordedCode>>& by_path() const { return by_path_; }

 private:
  std::map<std::string, std::vector<RecordedCode>> by_path_;
};

// "'sum', '1'" → "sum"; empty if the op reduces nothing.
std::string ReduceOp(std::string_view op, std::string_view arguments);

// Files that Inductor generates: <cache>/<2 letters>/c<51 letters and digits>.py.
bool IsGeneratedFile(std::string_view file);

// Files of PyTorch and of Python's own library: the user's line is the innermost one outside them.
bool IsFrameOfTorch(std::string_view file);

}  // namespace tlparse

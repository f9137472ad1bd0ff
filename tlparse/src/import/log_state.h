// State of the typing step for one log while it is read. Logs that grow are read in turn, each
// with its own state.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "artifacts/common/graph/graph_tracker.h"
#include "import/process_table.h"
#include "log/import_code.h"
#include "store/text_pool.h"

namespace tlparse {

// What is known of a file before it is read.
struct FileInfo {
  std::string path;
  std::optional<std::int64_t> name_rank;
  std::int64_t mtime_us = 0;
  bool has_mtime = false;
};

// Payloads of unfinished lookups (IngestContext::KeepPayload), at most 4 MiB: the oldest are dropped first. When another log's turn
// comes, SetAside drops the texts, which are then in the database, and Find reads them from there.
class KeptPayloads {
 public:
  using Load = std::function<std::string(std::int64_t payload_id)>;
  // Empty: not kept. `load` reads a text that was set aside.
  std::string_view Find(std::int64_t payload_id, const Load& load);
  bool Has(std::int64_t payload_id) const { return texts_.contains(payload_id); }
  void Add(std::int64_t payload_id, std::string_view text);
  void Release(std::int64_t payload_id);
  void SetAside();

 private:
  static constexpr std::size_t kMostBytes = 4 << 20;
  struct Text {
    std::size_t size = 0;
    std::optional<std::string> text;  // nothing: set aside
  };
  std::unordered_map<std::int64_t, Text> texts_;
  std::deque<std::int64_t> order_;
  std::size_t bytes_ = 0;
};

// A name that this version does not know and that differs in one character from one it knows.
struct SimilarUse {
  std::string known;
  ImportPlace place;  // of the first record with it
  std::int64_t count = 0;
};

struct LogState {
  LogState(FileInfo info, std::int64_t& next_process_id, std::int64_t& next_compile_id)
      : file(std::move(info)),
        processes(next_process_id, next_compile_id, file.mtime_us, file.has_mtime) {}

  FileInfo file;
  std::int64_t id = 0;      // log_file.id
  bool is_in_turn = false;  // was set aside
  std::int64_t first_record_id = 1;
  std::int64_t next_record_id = 1;    // while it is set aside
  std::int64_t first_content_id = 1;  // the next one when the log was begun
  ProcessTable processes;
  GraphTracker::LogGraphs graphs;
  KeptPayloads kept;
  std::unordered_set<TextId> reported_unknown;
  std::unordered_set<std::string> reported_once;
  std::map<std::string, SimilarUse, std::less<>> similar_names;  // by the unknown name
};

}  // namespace tlparse

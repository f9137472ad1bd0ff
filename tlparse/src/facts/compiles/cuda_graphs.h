// CUDA graphs of compiles: those that were recorded, and why none was.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Of one direction of a compile.
struct CudaGraphRecordings {
  bool is_backward = false;
  std::int64_t count = 0;
  double seconds = 0;
};

// Why a compile runs without a CUDA graph (cudagraph_skip_reason of its metrics).
struct CudaGraphSkip {
  std::string reason;  // "cpu device (primals_1)"
  std::string file;    // of the user's, innermost; empty: not in the message
  std::int64_t line = 0;
  std::string advice;      // empty: nothing is known
  bool is_chosen = false;  // the program asks for none
};
CudaGraphSkip ReadCudaGraphSkip(std::string_view text);

struct CudaGraphs {
  std::vector<CudaGraphRecordings> recordings;
  std::vector<CudaGraphSkip> skips;
  std::vector<std::string> sizes;  // of the recordings, where a text of TORCH_LOGS tells them
};
Result<CudaGraphs> LoadCudaGraphs(Database& database, std::int64_t compile_id);

// What of it is compared with another run or rank.
struct CudaGraphSummary {
  std::int64_t forward = 0, backward = 0;             // recordings
  std::vector<std::string> skips;                     // "cpu device (primals_1) at train.py:8"
  bool IsAlike(const CudaGraphSummary& other) const;  // but for names of nodes
  bool IsEmpty() const { return forward == 0 && backward == 0 && skips.empty(); }
};
std::string CudaGraphText(const CudaGraphSummary& graphs);  // "2 of the forward recorded"

// Recordings of all compiles of a process.
Result<std::map<std::int64_t, CudaGraphSummary>> LoadRecordedCudaGraphs(Database& database,
                                                                        std::int64_t process_id);
Result<std::vector<std::string>> LoadCudaGraphSkips(Database& database, std::int64_t compile_id);

}  // namespace tlparse

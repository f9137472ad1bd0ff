// Lines of NCCL itself (NCCL_DEBUG): its warnings, and which rank a process is. As NCCL 2.10 to 2.28 prints them (src/debug.cc, src/init.cc).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tlparse {

struct NcclWarning {
  std::int64_t line = 0;
  std::string host;
  std::int64_t pid = 0, device = 0;
  std::optional<std::int64_t> rank;
  bool is_of_peer = false;  // it says that another process was gone or did not answer
  std::string text;
};

// The lines of one file.
class NcclDebugText {
 public:
  // Whether the line is a warning.
  bool Add(std::string_view line, std::int64_t number);
  // With the ranks of their processes: what the largest communicator says, if it says one.
  std::vector<NcclWarning> Warnings() const;

 private:
  struct Member {
    std::int64_t size = 0;
    std::optional<std::int64_t> rank;
  };
  std::vector<NcclWarning> warnings_;
  std::map<std::pair<std::string, std::int64_t>, Member> members_;  // by host and pid
};

}  // namespace tlparse

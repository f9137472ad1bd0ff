// Stacks of all ranks as the debug server of torch.distributed writes them: a head for each rank, behind
// it what faulthandler or py-spy says of its process (torch/distributed/debug/_debug_handlers.py,
// StacksHandler and PySpyHandler). A page of the server that was saved has the same in HTML.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tlparse {

struct DebugServerRank {
  std::int64_t line = 0;  // 1-based: its head
  std::int64_t rank = 0;
  std::string address;   // "http://node3:36153"
  std::string endpoint;  // "dump_traceback", "pyspy_dump"
  std::string error;     // it gave no stacks; empty: it did
  std::string stacks;    // cut after kMostStackBytes
};
inline constexpr std::size_t kMostStackBytes = std::size_t{64} << 10;

// Whether a text holds the head of a rank.
bool HasDebugServerHead(std::string_view text);

// The lines of one file, in order.
class DebugServerText {
 public:
  // False: the line belongs to no rank.
  bool Add(std::string_view line, std::int64_t number);
  std::vector<DebugServerRank> ranks;
};

// When it was written, of a name that ends with "_20261201_045723.txt": "2026-12-01 04:57:23". Empty:
// the name does not say it.
std::string DebugServerTime(std::string_view path);

}  // namespace tlparse

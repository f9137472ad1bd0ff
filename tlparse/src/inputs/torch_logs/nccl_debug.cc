#include "inputs/torch_logs/nccl_debug.h"

#include <re2/re2.h>

#include <algorithm>

namespace tlparse {
namespace {

bool SaysPeerGone(std::string_view text) {
  for (const std::string_view part :
       {"closed by remote peer", "reset by peer", "ocket recv failed",
        "Failed to execute operation", "Proxy Call to rank", "Could not receive type from",
        "Connection refused", "Connection timed out", "Software caused connection abort",
        "Broken pipe"})
    if (text.find(part) != text.npos) return true;
  return false;
}

}  // namespace

bool NcclDebugText::Add(std::string_view line, std::int64_t number) {
  static const re2::RE2 kWarning(
      R"((?:\[[\d :.-]+\] )?([^\s:]+):(\d+):\d+ \[(-?\d+)\] (?:\S+:\d+ )?NCCL WARN (.+))"),
      kMember(
          R"(([^\s:]+):(\d+):\d+ \[-?\d+\] NCCL INFO .*comm 0x[0-9a-f]+ rank (\d+) n[rR]anks (\d+) )");
  if (line.find(" NCCL ") == line.npos) return false;
  const re2::StringPiece text(line.data(), line.size());
  NcclWarning warning;
  if (re2::RE2::FullMatch(text, kWarning, &warning.host, &warning.pid, &warning.device,
                          &warning.text)) {
    warning.line = number;
    warning.is_of_peer = SaysPeerGone(warning.text);
    warnings_.push_back(std::move(warning));
    return true;
  }
  std::string host;
  std::int64_t pid = 0, rank = 0, size = 0;
  if (!re2::RE2::PartialMatch(text, kMember, &host, &pid, &rank, &size)) return false;
  Member& member = members_[{host, pid}];
  if (size < member.size) return false;
  if (size > member.size)
    member = {size, rank};
  else if (member.rank != rank)
    member.rank.reset();
  return false;
}

std::vector<NcclWarning> NcclDebugText::Warnings() const {
  std::vector<NcclWarning> all = warnings_;
  for (NcclWarning& one : all) {
    const auto member = members_.find({one.host, one.pid});
    if (member != members_.end()) one.rank = member->second.rank;
  }
  return all;
}

}  // namespace tlparse

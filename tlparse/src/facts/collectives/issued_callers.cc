#include "facts/collectives/issued_callers.h"

#include "artifacts/common/text/python_traceback.h"
#include "inputs/join/recorder_code.h"
#include "queries/facts/collectives/issued.h"

namespace tlparse {

Result<void> IssuedCallers::Set(Database& database, std::int64_t stack_id, IssuedCollective& call) {
  if (stack_id == 0 || call.file.empty() || IsUserFile(call.file)) return {};
  const auto [found, is_new] = by_stack_.try_emplace(stack_id);
  auto& [file, line] = found->second;
  if (is_new) {
    FOR_EACH_ROW(const FrameOfCall& frame,
                 KeptQuery<FrameOfCall>(database, {.stack_id = stack_id})) {
      if (!IsUserFile(frame.file) || IsFrameOfTorch(frame.file) || !file.empty()) continue;
      file = frame.file;
      line = frame.line;
    }
  }
  call.caller_file = file;
  call.caller_line = line;
  return {};
}

const IssuedCollective* NewCall(const IssuedGroup& group, const IssuedCollective& a,
                                const IssuedCollective& b) {
  bool has_a = false, has_b = false;
  for (const std::vector<IssuedCollective>& issued : group.issued) {
    for (const IssuedCollective& one : issued) {
      if (one.sequence >= a.sequence) continue;
      has_a |= one.MayBeCallOf(a);
      has_b |= one.MayBeCallOf(b);
    }
  }
  return has_a == has_b ? nullptr : has_a ? &b : &a;
}

}  // namespace tlparse

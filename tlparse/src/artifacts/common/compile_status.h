// How a compile ended: compile.status.
#pragma once

#include <cstdint>
#include <string_view>

namespace tlparse {

enum class CompileStatus : std::uint8_t {
  kOk,
  kRestarted,   // ok after an attempt that ended with a graph break or a restart
  kEmpty,       // it made no graph
  kSkipped,     // the frame runs without compiled code
  kLoaded,      // precompiled code came from a store: Dynamo traced nothing
  kFailed,      // with an exception
  kUnfinished,  // the log ends inside it
};

// As in the database.
constexpr std::string_view Name(CompileStatus status) {
  switch (status) {
    case CompileStatus::kOk:
      return "ok";
    case CompileStatus::kRestarted:
      return "restarted";
    case CompileStatus::kEmpty:
      return "empty";
    case CompileStatus::kSkipped:
      return "skipped";
    case CompileStatus::kLoaded:
      return "loaded";
    case CompileStatus::kFailed:
      return "failed";
    case CompileStatus::kUnfinished:
      break;
  }
  return "unfinished";
}
// The inverse; kOk for a text that no tlparse writes.
constexpr CompileStatus CompileStatusFrom(std::string_view name) {
  for (const CompileStatus status :
       {CompileStatus::kRestarted, CompileStatus::kEmpty, CompileStatus::kSkipped,
        CompileStatus::kLoaded, CompileStatus::kFailed, CompileStatus::kUnfinished})
    if (Name(status) == name) return status;
  return CompileStatus::kOk;
}

// Whether it neither failed nor was under way where its log ends.
constexpr bool IsFinished(CompileStatus status) {
  return status != CompileStatus::kFailed && status != CompileStatus::kUnfinished;
}

}  // namespace tlparse

// The functions of the subcommands, one file each.
#pragma once

#include <span>
#include <string>

namespace tlparse {

int RunSql(std::span<const std::string> arguments);
int RunCost(std::span<const std::string> arguments);
int RunAutotune(std::span<const std::string> arguments);
int RunMemory(std::span<const std::string> arguments);
int RunTimeline(std::span<const std::string> arguments);
int RunHistory(std::span<const std::string> arguments);
int RunExecution(std::span<const std::string> arguments);
int RunCollectives(std::span<const std::string> arguments);
int RunRanks(std::span<const std::string> arguments);
int RunCheckCommand(std::span<const std::string> arguments);
int RunDiff(std::span<const std::string> arguments);
int RunCache(std::span<const std::string> arguments);
int RunFindings(std::span<const std::string> arguments);
int RunStatus(std::span<const std::string> arguments);
int RunRecompiles(std::span<const std::string> arguments);
int RunProvenance(std::span<const std::string> arguments);
int RunSource(std::span<const std::string> arguments);
int RunImportLog(std::span<const std::string> arguments);
int RunPush(std::span<const std::string> arguments);
int RunPull(std::span<const std::string> arguments);
int RunFleet(std::span<const std::string> arguments);
int RunCommandRecorded(std::span<const std::string> arguments);
int RunTry(std::span<const std::string> arguments);
int RunBisect(std::span<const std::string> arguments);
int RunDoctor(std::span<const std::string> arguments);
int RunExplain(std::span<const std::string> arguments);
int RunMcp(std::span<const std::string> arguments);
int RunCompletion(std::span<const std::string> arguments);
int RunManual(std::span<const std::string> arguments);
int RunSchema(std::span<const std::string> arguments);
int RunServe(std::span<const std::string> arguments);

}  // namespace tlparse

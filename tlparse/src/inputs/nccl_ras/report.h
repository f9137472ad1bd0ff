// A report of NCCL's RAS subsystem, as `ncclras` prints it: src/ras/client_support.cc of NCCL 2.24 to
// 2.31.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tlparse {

// The columns of nccl_ras_process, nccl_ras_group and nccl_ras_state.
struct RasProcess {
  std::optional<std::int64_t> line;
  bool is_dead = false;
  std::int64_t count = 1;
  std::optional<std::int64_t> pid;
  std::string node, gpus;
};
struct RasGroup {
  std::int64_t number = 0, communicator_count = 0, rank_count = 0;
  std::string status, errors;
};
struct RasState {
  std::optional<std::int64_t> line;
  std::string communicator;
  std::optional<std::int64_t> size;
  std::string_view topic;
  std::string operation;
  std::optional<std::int64_t> rank;
  std::int64_t rank_count = 1;
  std::optional<std::int64_t> launched;
  std::string text;
  std::optional<std::int64_t> pid;
  std::string node, gpu;
};

struct RasReport {
  std::optional<std::int64_t> line;
  std::string nccl_version, taken_at;
  std::optional<std::int64_t> process_count, gpu_count, timeout_count;
  std::vector<RasProcess> processes;
  std::vector<RasGroup> groups;
  std::vector<RasState> states;
};

// The head of a file is that of a report in text.
bool BeginsRasText(std::string_view head);

// Reads reports in text, line by line.
class RasText {
 public:
  // False: the line is of no known form.
  bool Add(std::string_view line, std::int64_t number);
  // The reports that are complete: all but the last until Finish.
  std::vector<RasReport> Take();
  void Finish();

 private:
  enum class Section : std::uint8_t { kNone, kSummary, kGroups, kDetails };

  bool AddHeading(std::string_view line, std::int64_t number);
  bool AddSummary(std::string_view line);
  bool AddGroup(std::string_view line);
  bool AddDetail(std::string_view line);
  bool AddProcess(std::string_view line);
  bool AddRank(std::string_view line);
  bool AddCount(std::string_view line);
  void BeginCommunicator(std::string_view line);
  void EndCount();

  std::vector<RasReport> done_;
  std::optional<RasReport> report_;
  Section section_ = Section::kNone;
  std::string version_;
  std::optional<RasProcess> processes_;  // that are counted, whose names may follow
  std::int64_t number_ = 0;              // of the line
  RasState state_;                       // communicator and topic of the lines that follow
  std::optional<RasState> counted_;      // ranks whose names may follow
};

}  // namespace tlparse

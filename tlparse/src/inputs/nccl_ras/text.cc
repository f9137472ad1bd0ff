#include <array>
#include <charconv>
#include <utility>

#include "base/ascii.h"
#include "inputs/nccl_ras/report.h"

namespace tlparse {
namespace {

// Takes `word` off the front of `text`.
bool TakeWord(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<std::int64_t> TakeNumber(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// The fields of a table's line, at most eight.
struct Fields {
  std::array<std::string_view, 8> text;
  std::size_t count = 0;

  explicit Fields(std::string_view line) {
    for (line = Trimmed(line); !line.empty(); line = Trimmed(line)) {
      const std::size_t end = line.find(' ');
      const std::string_view field = line.substr(0, end);
      if (count < text.size()) text[count] = field;
      ++count;
      line.remove_prefix(field.size());
    }
  }
  std::optional<std::int64_t> Number(std::size_t index) const {
    std::string_view field = text[index];
    const std::optional<std::int64_t> number = TakeNumber(field);
    return field.empty() ? number : std::nullopt;
  }
};

// "GPU 5 managed by process 3487984 on node 172.16.64.213"
void ReadHolder(std::string_view text, RasState& state) {
  constexpr std::string_view kManaged = " managed by process ", kNode = " on node ";
  const std::size_t managed = text.find(kManaged);
  if (!TakeWord(text, "GPU ") || managed == text.npos) return;
  state.gpu = text.substr(0, managed - 4);
  text.remove_prefix(managed - 4 + kManaged.size());
  state.pid = TakeNumber(text);
  if (TakeWord(text, kNode)) state.node = text;
}

constexpr std::string_view kLaunched = "launched", kStatus = "status", kMissing = "missing",
                           kError = "error";

// "launched up to operation 60", "have status RUNNING", "reported Remote process error": what follows
// "Rank 7 " or "6 ranks ".
bool ReadState(std::string_view text, RasState& state) {
  if (TakeWord(text, "have ") || TakeWord(text, "has ")) {
    if (TakeWord(text, "launched up to operation ")) {
      state.launched = TakeNumber(text);
      return state.launched && text.empty();
    }
    if (text == "not launched any operations") {
      state.launched = 0;
      return true;
    }
    if (!TakeWord(text, "status ")) return false;
  } else if (!TakeWord(text, "reported ")) {
    return false;
  }
  state.text = text;
  return true;
}

}  // namespace

bool BeginsRasText(std::string_view head) {
  return head.find("\nCommunicators...") != head.npos &&
         (head.starts_with("Job summary\n===") || head.find("\nJob summary\n===") != head.npos);
}

std::vector<RasReport> RasText::Take() { return std::exchange(done_, {}); }

void RasText::Finish() {
  EndCount();
  if (report_) done_.push_back(std::move(*report_));
  report_.reset();
}

bool RasText::Add(std::string_view line, std::int64_t number) {
  const std::string_view text = Trimmed(line);
  number_ = number;
  if (text.empty() || text.find_first_not_of('=') == text.npos) return true;
  if (AddHeading(text, number)) return true;
  if (!report_) return false;
  switch (section_) {
    case Section::kSummary:
      return AddSummary(text);
    case Section::kGroups:
      return AddGroup(text);
    case Section::kDetails:
      return AddDetail(text);
    case Section::kNone:
      break;
  }
  return false;
}

bool RasText::AddHeading(std::string_view line, std::int64_t number) {
  std::string_view rest = line;
  if (TakeWord(rest, "NCCL version ")) {
    Finish();
    version_ = rest.substr(0, rest.find(' '));
    return true;
  }
  if (line.starts_with("CUDA runtime version ")) return true;
  if (line == "Job summary") {
    Finish();
    report_.emplace();
    report_->line = number;
    report_->nccl_version = std::exchange(version_, {});
    section_ = Section::kSummary;
    return true;
  }
  if (!report_) return false;
  if (line.starts_with("Communicators...")) {
    section_ = Section::kGroups;
  } else if (line == "Errors" || line == "Warnings") {
    EndCount();
    section_ = Section::kDetails;
    state_ = {};
  } else {
    return false;
  }
  return true;
}

// "4  8  1  32  32": nodes, processes of each, GPUs of each process, processes, GPUs.
bool RasText::AddSummary(std::string_view line) {
  if (line.starts_with("Nodes ") || line.starts_with("(total)")) return true;
  const Fields fields(line);
  if (fields.count != 5 || !fields.Number(0)) return false;
  const std::optional<std::int64_t> processes = fields.Number(3), gpus = fields.Number(4);
  if (!processes || !gpus) return false;
  report_->process_count = report_->process_count.value_or(0) + *processes;
  report_->gpu_count = report_->gpu_count.value_or(0) + *gpus;
  return true;
}

// "0  1  4  7-8  32  31  RUNNING  INCOMPLETE"
bool RasText::AddGroup(std::string_view line) {
  if (line.starts_with("Group ") || line.starts_with("# ") ||
      line.starts_with("No communicator data"))
    return true;
  const Fields fields(line);
  if (fields.count != 8) return false;
  const std::optional<std::int64_t> number = fields.Number(0), count = fields.Number(1),
                                    ranks = fields.Number(4);
  if (!number || !count || !ranks) return false;
  report_->groups.push_back(
      {*number, *count, *ranks, std::string(fields.text[6]), std::string(fields.text[7])});
  return true;
}

bool RasText::AddDetail(std::string_view line) {
  std::string_view rest = line;
  if (line == "DEAD" || line == "INCOMPLETE" || line == "TIMEOUT") {
    EndCount();
    state_ = {};
    processes_.emplace();
    processes_->is_dead = line == "DEAD";
    processes_->count = 0;
    return true;
  }
  if (line.starts_with('#')) {
    BeginCommunicator(line);
    return !state_.communicator.empty();
  }
  if (TakeWord(rest, "Encountered ")) {
    report_->timeout_count = TakeNumber(rest);
    return report_->timeout_count.has_value();
  }
  if (state_.communicator.empty()) return AddProcess(line);
  if (TakeWord(rest, "Communicator ranks have different ")) {
    EndCount();
    const std::size_t end = rest.find(" operation counts");
    state_.topic = end == rest.npos ? kStatus : kLaunched;
    state_.operation = end == rest.npos ? "" : rest.substr(0, end);
    return true;
  }
  if (TakeWord(rest, "Initialization error") || TakeWord(rest, "Asynchronous error")) {
    EndCount();
    state_.topic = kError;
    return true;
  }
  return AddRank(line) || AddCount(line);
}

// "Process 3487984 on node 172.16.64.213 managing GPU 5", or how many processes there are.
bool RasText::AddProcess(std::string_view line) {
  if (!processes_) return false;
  RasProcess one = *processes_;
  one.line = number_;
  if (!TakeWord(line, "Process ")) {
    if (line.starts_with("[could not find")) return true;
    TakeWord(line, "Missing communicator data from ");
    const std::optional<std::int64_t> count = TakeNumber(line);
    if (!count || !line.starts_with(" job process")) return false;
    processes_->line = number_;
    processes_->count = *count;
    return true;
  }
  one.count = 1;
  one.pid = TakeNumber(line);
  constexpr std::string_view kGpu = " managing GPU";
  const std::size_t gpus = line.find(kGpu);
  if (!one.pid || gpus == line.npos || !TakeWord(line, " on node ")) return false;
  one.node = line.substr(0, line.find(kGpu));
  line.remove_prefix(one.node.size() + kGpu.size());
  TakeWord(line, "s");
  one.gpus = Trimmed(line);
  if (processes_->count > 0) --processes_->count;
  report_->processes.push_back(std::move(one));
  return true;
}

// "#0-0 (27a079b828ff1a75) MISMATCH"
void RasText::BeginCommunicator(std::string_view line) {
  EndCount();
  state_ = {};
  const std::size_t open = line.find('('), close = line.find(')');
  if (open == line.npos || close == line.npos || close < open) return;
  state_.communicator = line.substr(open + 1, close - open - 1);
  line.remove_prefix(1);
  const std::optional<std::int64_t> group = TakeNumber(line);
  // NCCL numbers the groups from 0 in the order in which it prints them.
  const std::size_t at = static_cast<std::size_t>(group.value_or(0));
  if (group && at < report_->groups.size() && report_->groups[at].number == *group)
    state_.size = report_->groups[at].rank_count;
}

// "Rank 7 has launched up to operation 60 -- GPU 3 managed by process 165 on node n", "Rank 7 -- …",
// "The missing ranks: 21,22".
bool RasText::AddRank(std::string_view line) {
  if (TakeWord(line, "The missing rank: ") || TakeWord(line, "The missing ranks: ")) {
    counted_.reset();
    while (const std::optional<std::int64_t> rank = TakeNumber(line)) {
      state_.rank = rank;
      state_.line = number_;
      report_->states.push_back(state_);
      while (line.starts_with(',') || line.starts_with(' ')) line.remove_prefix(1);
    }
    state_.rank.reset();
    return line.empty();
  }
  if (!TakeWord(line, "Rank ")) return false;
  RasState state = counted_ ? *counted_ : state_;
  state.line = number_;
  state.rank = TakeNumber(line);
  state.rank_count = 1;
  const std::size_t dashes = line.find("-- ");
  if (!state.rank || dashes == line.npos) return false;
  const std::string_view said = Trimmed(line.substr(0, dashes));
  ReadHolder(line.substr(dashes + 3), state);
  if (!said.empty()) {
    EndCount();
    if (!ReadState(said, state)) return false;
  } else if (counted_ && --counted_->rank_count == 0) {
    counted_.reset();
  }
  report_->states.push_back(std::move(state));
  return true;
}

// "6 ranks have launched up to operation 6649", "Missing communicator data from 1 rank"
bool RasText::AddCount(std::string_view line) {
  EndCount();
  RasState state = state_;
  state.line = number_;
  if (TakeWord(line, "Missing communicator data from ")) {
    state.topic = state_.topic = kMissing;
    const std::optional<std::int64_t> count = TakeNumber(line);
    if (!count) return false;
    state.rank_count = *count;
  } else {
    const std::optional<std::int64_t> count = TakeNumber(line);
    if (!count || !TakeWord(line, " ranks ") || !ReadState(line, state)) return false;
    state.rank_count = *count;
  }
  if (state.rank_count > 0) counted_ = std::move(state);
  return true;
}

// Ranks and processes that were counted and whose names did not follow.
void RasText::EndCount() {
  if (report_) {
    if (counted_) report_->states.push_back(std::move(*counted_));
    if (processes_ && processes_->count > 0) report_->processes.push_back(std::move(*processes_));
  }
  counted_.reset();
  processes_.reset();
}

}  // namespace tlparse

// Reports of NCCL's RAS subsystem: text (report.h), or the JSON of `ncclras -f json` (NCCL 2.28.7 and
// newer).
#include "inputs/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/plural.h"
#include "base/utf8.h"
#include "inputs/common/line_stream.h"
#include "inputs/common/plain_json.h"
#include "inputs/nccl_ras/report.h"
#include "rows/nccl_ras.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostReportBytes = std::size_t{64} << 20;
constexpr std::size_t kMostTextLine = std::size_t{64} << 10;

std::string Gpu(const PlainValue& of) {
  const std::optional<std::int64_t> device = of["cuda_dev"].Int();
  if (!device) return {};
  const std::int64_t cuda = *device, nvml = of["nvml_dev"].Int().value_or(cuda);
  return cuda == nvml ? fmt::format("{}", cuda) : fmt::format("{} (NVML {})", cuda, nvml);
}

// As NCCL's text names a rank's status (rasClientRunComms).
std::string_view StatusOf(const PlainValue& status) {
  if (status["abort_flag"].Bool().value_or(false)) return "ABORT";
  if (status["finalize_called"].Bool().value_or(false) ||
      status["destroy_flag"].Bool().value_or(false))
    return "FINALIZE";
  return status["init_state"].Int().value_or(0) == 0 ? "RUNNING" : "INIT";
}

// ncclResult_t; empty: success, or in progress.
std::string ErrorOf(const PlainValue& result) {
  constexpr std::array<std::string_view, 8> kNames = {"",
                                                      "Unhandled CUDA error",
                                                      "System error",
                                                      "Internal error",
                                                      "Invalid argument",
                                                      "Invalid usage",
                                                      "Remote process error",
                                                      ""};
  const std::int64_t code = result.Int().value_or(0);
  if (code >= 0 && code < static_cast<std::int64_t>(kNames.size()))
    return std::string(kNames[static_cast<std::size_t>(code)]);
  return fmt::format("ncclResult_t {}", code);
}

// One property of the ranks of a communicator: those that share the most frequent value are counted,
// the others are named.
class RankValues {
 public:
  void Add(RasState state, std::string value) {
    by_value_[std::move(value)].push_back(std::move(state));
  }
  void Flush(bool says_equal, std::vector<RasState>& out) {
    if (by_value_.size() > 1 || says_equal) {
      const auto most = std::max_element(
          by_value_.begin(), by_value_.end(),
          [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      for (auto& [value, states] : by_value_) {
        if (&states == &most->second) {
          RasState& one = states.front();
          if (states.size() > 1) {
            one.rank.reset();
            one.pid.reset();
            one.node.clear();
            one.gpu.clear();
            one.rank_count = static_cast<std::int64_t>(states.size());
          }
          states.resize(1);
        }
        for (RasState& one : states) out.push_back(std::move(one));
      }
    }
    by_value_.clear();
  }

 private:
  std::map<std::string, std::vector<RasState>> by_value_;
};

using KnownProcesses = std::set<std::pair<std::int64_t, std::string>>;  // pid, node

void AddJsonCommunicator(const PlainValue& communicator, KnownProcesses& known, RasReport& report) {
  RasState state;
  state.communicator = TextOf(communicator["hash"]).value_or("");
  if (state.communicator.starts_with("0x")) state.communicator.erase(0, 2);
  state.size = communicator["size"].Int();
  const auto of_rank = [&](const PlainValue& rank, std::string_view topic) {
    RasState one = state;
    one.topic = topic;
    one.rank = rank["rank"].Int();
    one.pid = rank["pid"].Int();
    one.node = TextOf(rank["host"]).value_or("");
    one.gpu = Gpu(rank);
    return one;
  };
  RankValues status;
  std::map<std::string, RankValues> launched;
  const PlainValue ranks = communicator["ranks"];
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const PlainValue rank = ranks.At(i);
    RasState of_status = of_rank(rank, "status");
    of_status.text = StatusOf(rank["status"]);
    const std::string value = of_status.text;
    status.Add(std::move(of_status), value);
    for (const std::string_view key : {"init_state", "async_error"}) {
      RasState error = of_rank(rank, "error");
      error.text = ErrorOf(rank["status"][key]);
      if (!error.text.empty()) report.states.push_back(std::move(error));
    }
    const PlainValue counts = rank["collective_counts"];
    for (std::size_t j = 0; j < counts.size(); ++j) {
      const auto [name, count] = counts.Member(j);
      RasState one = of_rank(rank, "launched");
      one.operation = TextOf(name).value_or("");
      one.launched = count.Int();
      if (!one.launched) continue;
      const std::string number = fmt::format("{}", *one.launched);
      const std::string operation = one.operation;
      launched[operation].Add(std::move(one), number);
    }
  }
  status.Flush(false, report.states);
  for (auto& [operation, values] : launched) values.Flush(true, report.states);
  const PlainValue missing = communicator["missing_ranks"];
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const PlainValue rank = missing.At(i);
    RasState one = of_rank(rank, "missing");
    RasProcess process;
    process.is_dead = rank["status"]["considered_dead"].Bool().value_or(false);
    process.pid = one.pid;
    process.node = one.node;
    process.gpus = one.gpu;
    if (known.emplace(process.pid.value_or(-1), process.node).second)
      report.processes.push_back(std::move(process));
    report.states.push_back(std::move(one));
  }
}

RasReport ReportOf(const PlainValue& root) {
  RasReport report;
  report.nccl_version = TextOf(root["nccl_version"]).value_or("");
  report.taken_at = TextOf(root["timestamp"]).value_or("");
  report.timeout_count = root["ras"]["timeouts_count"].Int();
  KnownProcesses known;
  const PlainValue communicators = root["communicators"];
  for (std::size_t i = 0; i < communicators.size(); ++i)
    AddJsonCommunicator(communicators.At(i), known, report);
  return report;
}

std::optional<RowText> Optional(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return RowText(text);
}

class NcclRasReader final : public RuntimeReader {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<NcclRasReportRow>();
    tables.Use<NcclRasProcessRow>();
    tables.Use<NcclRasGroupRow>();
    tables.Use<NcclRasStateRow>();
  }

  Result<bool> Read(RuntimeContext& context) override {
    context.facts().kind = "nccl_ras";
    LineStream lines(context, kMostReportBytes);
    RasText text;
    std::string json;
    std::int64_t others = 0, first_other = 0;
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<LineStream::Line> next, lines.Next());
      if (!next) break;
      const std::string_view line = next->text;
      if (!json.empty() || (next->number == 1 && line.starts_with('{'))) {
        if (json.size() < kMostReportBytes) json.append(line).push_back('\n');
        continue;
      }
      ++context.facts().event_count;
      if (line.size() > kMostTextLine || next->is_too_long ||
          !text.Add(SanitizeUtf8(line), next->number)) {
        if (others++ == 0) first_other = next->number;
      }
      for (const RasReport& report : text.Take()) RETURN_IF_ERROR(Add(report, context));
    }
    text.Finish();
    for (const RasReport& report : text.Take()) RETURN_IF_ERROR(Add(report, context));
    if (others > 0) {
      ImportPlace place;
      place.line = first_other;
      context.Log(ImportCode::kForeignLine,
                  fmt::format("{} of no form that is known of NCCL's RAS", Count(others, "line")),
                  place, {}, others);
    }
    if (json.empty()) return true;
    const PlainDocument document = ReadPlainJson(json);
    if (document.problem) context.Log(ImportCode::kDamagedInput, document.problem->message, {}, {});
    ++context.facts().event_count;
    RETURN_IF_ERROR(Add(ReportOf(document.tree.root()), context));
    return true;
  }

 private:
  Result<void> Add(const RasReport& report, RuntimeContext& context) {
    ++context.facts().kept_count;
    context.facts().format_version = report.nccl_version;
    const std::int64_t id = context.NextId<NcclRasReportRow>();
    NcclRasReportRow row{.id = id, .profile_id = context.profile_id(), .number = ++count_};
    row.line = report.line;
    row.nccl_version = Optional(report.nccl_version);
    row.taken_at = Optional(report.taken_at);
    row.process_count = report.process_count;
    row.gpu_count = report.gpu_count;
    row.timeout_count = report.timeout_count;
    context.rows().Add(row);
    for (const RasProcess& one : report.processes) {
      NcclRasProcessRow process{.id = context.NextId<NcclRasProcessRow>(),
                                .profile_id = context.profile_id(),
                                .report_id = id,
                                .state = RowText(one.is_dead ? "dead" : "no_data"),
                                .process_count = one.count};
      process.line = one.line;
      process.pid = one.pid;
      process.node = Optional(one.node);
      process.gpus = Optional(one.gpus);
      context.rows().Add(process);
    }
    for (const RasGroup& one : report.groups)
      context.rows().Add(NcclRasGroupRow{.id = context.NextId<NcclRasGroupRow>(),
                                         .report_id = id,
                                         .number = one.number,
                                         .communicator_count = one.communicator_count,
                                         .rank_count = one.rank_count,
                                         .status = RowText(one.status),
                                         .errors = RowText(one.errors)});
    for (const RasState& one : report.states) {
      NcclRasStateRow state{.id = context.NextId<NcclRasStateRow>(),
                            .profile_id = context.profile_id(),
                            .report_id = id,
                            .communicator = RowText(one.communicator),
                            .topic = RowText(one.topic),
                            .rank_count = one.rank_count};
      state.line = one.line;
      state.size = one.size;
      state.operation = Optional(one.operation);
      state.rank = one.rank;
      state.launched = one.launched;
      state.text = Optional(one.text);
      state.pid = one.pid;
      state.node = Optional(one.node);
      state.gpu = Optional(one.gpu);
      context.rows().Add(state);
      RETURN_IF_ERROR(context.Flush());
    }
    return context.Flush();
  }

  std::int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<RuntimeReader> MakeNcclRasReader() { return std::make_unique<NcclRasReader>(); }

}  // namespace tlparse

// run.json of `tlparse run`: the command, its processes and how each of them ended.
#include "inputs/reader.h"

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "inputs/common/exception_row.h"
#include "inputs/common/plain_json.h"
#include "rows/command.h"
#include "rows/uncaught_exception.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostRunFileBytes = std::size_t{64} << 20;

Result<std::string> ReadRunFile(RuntimeContext& context) {
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (text.size() < kMostRunFileBytes) {
    ASSIGN_OR_RETURN(const std::size_t count, context.Read(buffer.data(), buffer.size()));
    if (count == 0) break;
    text.append(buffer.data(), count);
  }
  return text;
}

class RunFileReader final : public RuntimeReader {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<RunCommandRow>();
    tables.Use<RunProcessRow>();
    tables.Use<UncaughtExceptionRow>();
    tables.Use<PrintedAbortRow>();
  }

  Result<bool> Read(RuntimeContext& context) override {
    ASSIGN_OR_RETURN(const std::string text, ReadRunFile(context));
    const PlainDocument document = ReadPlainJson(text);
    if (document.problem) context.Log(ImportCode::kDamagedInput, document.problem->message, {}, {});
    const PlainValue root = document.tree.root();
    AddCommand(root, context);
    const PlainValue aborts = root["printed_aborts"];
    for (std::size_t i = 0; i < aborts.size(); ++i) {
      const PlainValue abort = aborts.At(i);
      AddAbort(context, {0, abort["rank"].Int(), TextOf(abort["text"]).value_or(""),
                         abort["signal"].Int().value_or(0), TextOf(abort["at"]).value_or(""),
                         TextOf(abort["thread"]).value_or("")});
    }
    const PlainValue processes = root["processes"];
    for (std::size_t i = 0; i < processes.size(); ++i) {
      AddProcess(processes, i, context);
      RETURN_IF_ERROR(context.Flush());
    }
    return true;
  }

 private:
  static void AddCommand(const PlainValue& root, RuntimeContext& context) {
    ProfileFacts& facts = context.facts();
    facts.kind = "run";
    facts.host = TextOf(root["host"]).value_or("");
    facts.format_version = std::to_string(root["version"].Int().value_or(0));
    const std::optional<std::int64_t> started_us = root["started_us"].Int();
    const std::optional<std::int64_t> ended_us = root["ended_us"].Int();
    const std::optional<std::string> command = JsonOf(root["command"]);
    const std::optional<std::string> directory = TextOf(root["directory"]);
    const std::optional<std::string> host = TextOf(root["host"]);
    const std::optional<std::string> environment = JsonOf(root["environment"]);
    const std::optional<std::string> recorded = JsonOf(root["recorded"]);
    const std::optional<std::string> hangs = JsonOf(root["hangs"]);
    RunCommandRow row{.profile_id = context.profile_id()};
    row.command = command;
    row.directory = directory;
    row.host = host;
    row.started_us = started_us;
    row.ended_us = ended_us;
    row.exit_code = root["exit_code"].Int();
    row.environment = environment;
    row.recorded = recorded;
    row.hangs = hangs;
    context.rows().Add(row);
  }

  // What a child of a rank had started, and left behind: it has the RANK that it inherited, and its parent
  // is that of the command, which adopted it. A rank is started when the one before it has ended.
  static bool IsLeftBehind(const PlainValue& processes, std::size_t index) {
    const PlainValue one = processes.At(index);
    const std::optional<std::int64_t> rank = one["rank"].Int(), parent = one["parent_pid"].Int();
    const std::optional<std::int64_t> started_us = one["started_us"].Int();
    if (index == 0 || !rank || !parent || !started_us ||
        parent != processes.At(0)["parent_pid"].Int())
      return false;
    for (std::size_t i = 0; i < processes.size(); ++i) {
      const PlainValue other = processes.At(i);
      const bool is_rank = i != index && other["rank"].Int() == rank;
      const std::optional<std::int64_t> ended_us = other["ended_us"].Int();
      if (is_rank && other["parent_pid"].Int() != parent &&
          other["started_us"].Int().value_or(INT64_MAX) < *started_us &&
          ended_us.value_or(INT64_MAX) > *started_us)
        return true;
    }
    return false;
  }

  static void AddProcess(const PlainValue& processes, std::size_t index, RuntimeContext& context) {
    const PlainValue process = processes.At(index);
    const std::int64_t ordinal = static_cast<std::int64_t>(index);
    ++context.facts().event_count;
    const std::optional<std::int64_t> pid = process["pid"].Int();
    if (!pid) return;
    ++context.facts().kept_count;
    const std::optional<std::string> command = TextOf(process["command"]);
    const std::optional<std::string> stopped_at = TextOf(process["at"]);
    const std::optional<std::string> fault_thread = TextOf(process["fault_thread"]);
    RunProcessRow row{.profile_id = context.profile_id(), .ordinal = ordinal, .pid = *pid};
    row.parent_pid = process["parent_pid"].Int();
    if (!IsLeftBehind(processes, index)) row.rank = process["rank"].Int();
    row.command = command;
    row.exit_code = process["exit_code"].Int();
    row.signal = process["signal"].Int();
    row.stopped_at = stopped_at;
    row.fault_thread = fault_thread;
    row.started_us = process["started_us"].Int();
    row.ended_us = process["ended_us"].Int();
    context.rows().Add(row);
    if (const std::optional<std::string> text = TextOf(process["traceback"]); text)
      AddException(context,
                   {.ordinal = ordinal, .rank = row.rank, .raised_us = process["raised_us"].Int()},
                   *text);
    const PlainValue in_threads = process["raised_in_threads"];
    for (std::size_t i = 0; i < in_threads.size(); ++i) {
      const PlainValue one = in_threads.At(i);
      AddException(context,
                   {.ordinal = ordinal,
                    .rank = row.rank,
                    .raised_us = one["raised_us"].Int(),
                    .thread = TextOf(one["thread"]).value_or(""),
                    .is_of_task = one["is_of_task"].Bool().value_or(false)},
                   TextOf(one["traceback"]).value_or(""));
    }
  }
};

}  // namespace

std::unique_ptr<RuntimeReader> MakeRunFileReader() { return std::make_unique<RunFileReader>(); }

}  // namespace tlparse

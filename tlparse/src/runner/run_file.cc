#include "runner/run_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/json_writer.h"
#include "base/version.h"

namespace tlparse {

namespace {

constexpr std::size_t kMostProcesses = 10'000;

bool IsTold(const RunFacts& facts, const WatchedProcess& process, std::size_t index) {
  const bool was_short = process.ended_us && *process.ended_us - process.started_us < 1'000'000;
  const bool was_fine =
      process.raised_in_threads.empty() &&
      (process.exit_code == 0 || (!process.exit_code && !process.signal && !process.raised));
  return index < kMostProcesses &&
         (process.rank || process.pid == facts.processes.front().pid || !was_short || !was_fine);
}

void WriteProcesses(JsonWriter& json, const RunFacts& facts) {
  std::int64_t left_out = 0;
  json.Key("processes").BeginArray();
  for (std::size_t i = 0; i < facts.processes.size(); ++i) {
    const WatchedProcess& process = facts.processes[i];
    if (!IsTold(facts, process, i)) {
      ++left_out;
      continue;
    }
    json.BeginObject().Key("pid").Int(process.pid).Key("parent_pid").Int(process.parent_pid);
    json.Key("rank").OptionalInt(process.rank).Key("command").String(process.command);
    json.Key("exit_code").OptionalInt(process.exit_code);
    json.Key("signal").OptionalInt(process.signal);
    json.Key("started_us").Int(process.started_us);
    json.Key("ended_us").OptionalInt(process.ended_us);
    if (!process.at.empty()) json.Key("at").String(process.at);
    if (!process.fault_thread.empty()) json.Key("fault_thread").String(process.fault_thread);
    if (process.raised) {
      json.Key("raised_us").Int(process.raised->raised_us);
      json.Key("traceback").String(process.raised->traceback);
    }
    json.Key("raised_in_threads").BeginArray();
    for (const UncaughtException& raised : process.raised_in_threads) {
      json.BeginObject().Key("thread").String(raised.thread);
      json.Key("raised_us").Int(raised.raised_us);
      if (raised.is_of_task) json.Key("is_of_task").Bool(true);
      json.Key("traceback").String(raised.traceback).EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().Key("processes_left_out").Int(left_out);
}

void WriteTexts(JsonWriter& json, const std::vector<std::string>& texts) {
  json.BeginArray();
  for (const std::string& text : texts) json.String(text);
  json.EndArray();
}

}  // namespace

std::string RunFileText(const RunFacts& facts) {
  JsonWriter json;
  json.BeginObject().Key("version").Int(1).Key("tool").String("tlparse run");
  json.Key("tool_version").String(kVersion).Key("command");
  WriteTexts(json, facts.command);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  json.Key("directory").String(facts.directory).Key("host").String(host);
  json.Key("started_us").Int(facts.started_us).Key("ended_us").Int(facts.ended_us);
  json.Key("exit_code").Int(facts.exit_code);
  json.Key("environment").BeginObject();
  for (const JobEnvironment::Setting& one : facts.environment) json.Key(one.name).String(one.value);
  json.EndObject();
  WriteProcesses(json, facts);
  json.Key("recorded").BeginObject();
  for (const JobEnvironment::Setting& one : facts.recorded) {
    json.Key(one.name).BeginObject().Key("value").String(one.value);
    json.Key("is_users").Bool(one.is_users).EndObject();
  }
  json.EndObject().Key("hangs").BeginArray();
  for (const HangReport& hang : facts.hangs) {
    json.BeginObject().Key("time_us").Int(hang.time_us).Key("why").String(hang.why).Key("taken");
    WriteTexts(json, hang.taken);
    json.Key("missing");
    WriteTexts(json, hang.missing);
    json.Key("was_ended").Bool(hang.was_ended);
    json.Key("busy").BeginArray();
    for (const std::int64_t rank : hang.busy) json.Int(rank);
    json.EndArray();
    json.EndObject();
  }
  json.EndArray().Key("printed_aborts").BeginArray();
  for (const AbortText& abort : facts.aborts) {
    json.BeginObject().Key("rank").OptionalInt(abort.rank).Key("text").String(abort.text);
    if (abort.signal != 0)
      json.Key("signal")
          .Int(abort.signal)
          .Key("at")
          .String(abort.stopped_at)
          .Key("thread")
          .String(abort.fault_thread);
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

Result<void> WriteRunFile(const std::string& path, std::string_view text) {
  const std::string draft = path + ".part";
  std::FILE* const file = std::fopen(draft.c_str(), "wbe");
  bool is_written = file != nullptr &&
                    std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                    std::fputc('\n', file) != EOF;
  if (file != nullptr) is_written = std::fclose(file) == 0 && is_written;
  if (is_written && std::rename(draft.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  unlink(draft.c_str());
  return Fail(ErrorCode::kIo, fmt::format("cannot write '{}': {}", path, std::strerror(error)));
}

}  // namespace tlparse

// raw.jsonl: the interned strings, then the envelope of every record with where and when it was
// logged and where its payload went.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <limits>
#include <map>
#include <unordered_map>

#include "base/json_writer.h"
#include "report/report_context.h"
#include "report/tree/json_format.h"
#include "report/tree/lenient_json.h"
#include "report/tree/record_scan.h"
#include "store/database.h"
#include "store/text_pool.h"

namespace tlparse {
namespace {

using Strings = std::map<std::int64_t, std::string>;  // by interned id

// A hostile id must not make a table of four billion nulls.
constexpr std::int64_t kMaxHoles = 1 << 16;

// {"1": "a", …}
std::string StringsObject(const Strings& strings) {
  JsonWriter json;
  json.BeginObject();
  for (const auto& [id, string] : strings) json.Key(std::to_string(id)).String(string);
  return json.EndObject().Take();
}

std::string StringArray(const Strings& strings, Strings& outside) {
  JsonWriter json;
  json.BeginArray();
  std::int64_t next = 0;
  const std::int64_t limit = static_cast<std::int64_t>(strings.size()) + kMaxHoles;
  for (const auto& [id, string] : strings) {
    if (id < 0 || id >= limit) {
      outside.emplace(id, string);
      continue;
    }
    for (; next < id; ++next) json.Null();
    json.String(string);
    ++next;
  }
  if (next == 0) json.Null();
  return json.EndArray().Take();
}

// Interned strings per process, in order of the processes.
Result<std::map<std::int64_t, Strings>> ReadStrings(const ReportContext& context) {
  std::map<std::int64_t, Strings> by_process;
  ASSIGN_OR_RETURN(RecordScan scan, RecordScan::Open(context.database, context.participant,
                                                     "r.process_id, r.envelope", "",
                                                     fmt::format("r.kind_id = {}", int{kTextStr})));
  LenientParser parser;
  FOR_EACH_ROW(const AnyRow& row, std::move(scan)) {
    if (!parser.Parse(row.Text("envelope"))) continue;
    simdjson::dom::array pair;
    std::string_view text;
    std::int64_t id = 0;
    if (parser.root()["str"].get(pair) != simdjson::SUCCESS ||
        pair.at(0).get(text) != simdjson::SUCCESS || pair.at(1).get(id) != simdjson::SUCCESS) {
      continue;
    }
    by_process[row.Int("process_id")][id] = text;
  }
  return by_process;
}

// One table, as ids are per process and most logs have one; where several processes wrote, what the
// first one did not define comes from the others (forked children share their parent's ids), and
// what they define otherwise is in string_tables by pid.
std::string StringTableLine(const Participant& participant,
                            std::map<std::int64_t, Strings> by_process) {
  Strings merged;
  JsonWriter others;
  bool has_others = false;
  others.BeginObject();
  for (auto& [process_id, strings] : by_process) {
    if (merged.empty()) {
      merged = std::move(strings);
      continue;
    }
    Strings different;
    for (const auto& [id, string] : strings) {
      const auto at = merged.emplace(id, string).first;
      if (at->second != string) different.emplace(id, string);
    }
    const ReportProcess* const process = participant.Process(process_id);
    if (different.empty() || process == nullptr) continue;
    others.Key(fmt::format("{}", process->pid)).Raw(StringsObject(different));
    has_others = true;
  }
  Strings outside;
  JsonWriter line;
  line.BeginObject().Key("string_table").Raw(StringArray(merged, outside));
  if (!outside.empty()) line.Key("string_table_outside").Raw(StringsObject(outside));
  if (has_others) line.Key("string_tables").Raw(others.EndObject().text());
  return line.EndObject().Take() + "\n";
}

// Times as "2026-11-21T08:30:01.123000Z"; records of one second follow each other.
class IsoTime {
 public:
  void Append(std::int64_t time_us, std::string& out) {
    constexpr std::int64_t kSecond = 1'000'000;
    std::int64_t second = time_us / kSecond;
    std::int64_t us = time_us % kSecond;
    if (us < 0) us += kSecond, --second;
    if (second != second_) SetSecond(second);
    fmt::format_to(std::back_inserter(out), "\"{}.{:06}Z\"", text_, us);
  }

 private:
  void SetSecond(std::int64_t second) {
    second_ = second;
    const auto time = static_cast<std::time_t>(second);
    std::tm parts{};
    gmtime_r(&time, &parts);
    text_ = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", parts.tm_year + 1900,
                        parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
  }
  std::int64_t second_ = std::numeric_limits<std::int64_t>::min();
  std::string text_;
};

class RawWriter {
 public:
  RawWriter(const ReportContext& context, const TreePlan& plan) : context_(context), plan_(plan) {
    for (const PlannedFile& file : plan.files) {
      if (file.is_artifact_of_record) files_.emplace_back(file.record_id, &file);
    }
    // Late files are the only ones out of order.
    std::sort(files_.begin(), files_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    next_file_ = files_.begin();
  }

  Result<void> Run() {
    RETURN_IF_ERROR(out_.Open(context_.directory, "raw.jsonl"));
    ASSIGN_OR_RETURN(auto strings, ReadStrings(context_));
    out_.Append(StringTableLine(context_.participant, std::move(strings)));
    ASSIGN_OR_RETURN(texts_, TextCache::Open(context_.database));
    ASSIGN_OR_RETURN(
        RecordScan scan,
        RecordScan::Open(
            context_.database, context_.participant,
            "r.id, r.process_id, r.local_us, r.source_file_id, r.source_line, r.envelope", "",
            fmt::format("r.kind_id IS NOT {} AND r.kind_id IS NOT {}", int{kTextStr},
                        int{kTextChromiumEvent})));
    FOR_EACH_ROW(const AnyRow& row, std::move(scan)) {
      RETURN_IF_ERROR(AppendRecord(row));
    }
    return out_.Close();
  }

 private:
  Result<void> AppendRecord(const AnyRow& row) {
    if (!parser_.Parse(row.Text("envelope"))) return {};  // not JSON: import_log has it
    const std::string_view envelope = parser_.strict_text();
    simdjson::dom::object members;
    if (parser_.root().get(members) != simdjson::SUCCESS) return {};
    line_.assign(envelope.substr(0, envelope.rfind('}')));
    is_empty_ = members.size() == 0;
    const ReportProcess* const process = context_.participant.Process(row.Int("process_id"));
    const bool has_time = process != nullptr && process->time_shift_us.has_value();
    if (BeginMember(members, "timestamp")) {
      has_time ? time_.Append(row.Int("local_us") + *process->time_shift_us, line_)
               : void(line_ += "null");
    }
    if (BeginMember(members, "thread")) AppendInt(process == nullptr ? 0 : process->pid);
    if (BeginMember(members, "pathname")) {
      ASSIGN_OR_RETURN(const std::string* const path, PathName(row.Int("source_file_id")));
      line_ += *path;
    }
    if (BeginMember(members, "lineno")) AppendInt(row.Int("source_line"));
    const std::int64_t id = row.Int("id");
    while (next_file_ != files_.end() && next_file_->first < id) ++next_file_;
    if (next_file_ != files_.end() && next_file_->first == id) {
      if (BeginMember(members, "payload_filename")) {
        AppendJsonString(plan_.Path(*next_file_->second), line_);
      }
    }
    line_ += "}\n";
    out_.Append(line_);
    return {};
  }

  // False: the envelope has the member already, and its own wins.
  bool BeginMember(const simdjson::dom::object& members, std::string_view name) {
    simdjson::dom::element own;
    if (members.at_key(name).get(own) == simdjson::SUCCESS) return false;
    if (!is_empty_) line_ += ", ";
    is_empty_ = false;
    line_ += '"';
    line_ += name;
    line_ += "\": ";
    return true;
  }
  void AppendInt(std::int64_t value) {
    const fmt::format_int digits(value);
    line_.append(digits.data(), digits.size());
  }
  // A source file as JSON, with the space that stands before it in the log, which readers of this
  // file know.
  Result<const std::string*> PathName(std::int64_t text_id) {
    auto known = path_names_.find(text_id);
    if (known == path_names_.end()) {
      ASSIGN_OR_RETURN(const std::string_view source_file, texts_.Get(text_id));
      known = path_names_.emplace(text_id, JsonString(fmt::format(" {}", source_file))).first;
    }
    return &known->second;
  }

  const ReportContext& context_;
  const TreePlan& plan_;
  std::vector<std::pair<std::int64_t, const PlannedFile*>> files_;
  std::vector<std::pair<std::int64_t, const PlannedFile*>>::const_iterator next_file_;
  FileWriter out_;
  TextCache texts_;
  LenientParser parser_;
  IsoTime time_;
  std::unordered_map<std::int64_t, std::string> path_names_;  // by text id
  std::string line_;
  bool is_empty_ = false;
};

}  // namespace

Result<void> WriteRawJsonl(const ReportContext& context, const TreePlan& plan) {
  return RawWriter(context, plan).Run();
}

}  // namespace tlparse

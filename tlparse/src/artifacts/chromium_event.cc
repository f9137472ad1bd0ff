// chromium_event: what the compiler timed (torch/_dynamo/utils.py, ChromiumEventLogger). Payload:
// one event with name, ts (µs since the epoch), ph (B, E, i), args. The most frequent record of a
// log, so it is kept short here.
#include "rows/chromium_event.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "artifacts/artifact.h"
#include "artifacts/common/cache/cache_events.h"
#include "artifacts/common/event_scan.h"
#include "artifacts/common/graph/graph_tracker.h"
#include "base/json_count.h"
#include "base/json_repair.h"
#include "base/json_text.h"

namespace tlparse {
namespace {

using simdjson::dom::element;

// How far among the open events an E looks for its B: events nest some ten deep, and what was never
// ended must not slow down the rest.
constexpr std::ptrdiff_t kMaxOpenBetween = 4096;

// aot_compile (torch/_dynamo/aot_compile.py): Dynamo's part has ids, what follows has none.
constexpr std::string_view kCapture = "fullgraph_capture";

// A compile of Dynamo is one kDynamo, in it kFrame. Code that CompilePackage.install takes from a
// store (torch/_dynamo/package.py, _compile_frame_context) has kFrame alone, and no metrics.
constexpr std::string_view kDynamo = "dynamo", kFrame = "entire_frame_compile";

struct OpenEvent {
  TextId name_id;
  std::int64_t record_id;
  double start_us;
  CompileState* compile;
  std::int64_t thread;        // tid; 0 in PyTorch's logs
  std::string compile_label;  // args.compile_id: distinguishes threads where tids do not
  bool is_written = false;    // its row is in the database for now
};

struct ProcessEvents {
  std::vector<OpenEvent> open;        // latest last
  std::vector<CompileState*> active;  // compiles with open events, latest last
};

struct Event {
  std::string_view name;
  TextId name_id = 0;
  double ts_us = 0;
  std::optional<double> duration_us;  // of an X
  char phase = 0;
  std::int64_t thread = 0;
  simdjson::dom::object args;
  bool has_args = false;
  std::string_view compile_label;
};

class ChromiumEvent final : public Ingestor {
 public:
  static void PrepareRecord(const RecordToPrepare& record, std::string&, PreparedRecord& prepared) {
    prepared.event = ScanEvent(record.payload_to_parse);
  }

  void Prepare(TableSet& tables) override { tables.Use<ChromiumEventRow>(); }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    std::string repaired_args;
    ASSIGN_OR_RETURN(Event event, Parse(context, repaired_args));
    event.name_id = context.Text(event.name);
    if (std::fabs(event.ts_us) < 9e18) {
      context.NoteTime(static_cast<std::int64_t>(event.ts_us),
                       IngestContext::TimeBasis::kChromiumEvent);
    }
    ProcessEvents& events = processes_[record.process->id];
    CompileState* compile = record.compile;
    if (compile == nullptr && !events.active.empty()) compile = events.active.back();
    switch (event.phase) {
      case 'B':
        events.open.push_back({event.name_id, record.id, event.ts_us, compile, event.thread,
                               std::string(event.compile_label), false});
        if (record.compile != nullptr) {
          events.active.push_back(record.compile);
          if (event.name == kDynamo) record.compile->is_traced = true;
        }
        if (event.name == kCapture) record.process->capture_record_id = record.id;
        return {};
      case 'E':
        End(record, event, compile, events, repaired_args, context);
        return {};
      case 'i':
      case 'I':
        Add(context, record.id, std::nullopt, event.name_id, 'i', event.ts_us, std::nullopt,
            compile, event.thread, repaired_args);
        if (event.has_args) NoteInstantCacheEvent(record, event.name, event.args, context);
        if (record.compile != nullptr && event.name.starts_with("fx_graph_cache_"))
          CloseGraph(record, context);
        return {};
      default:
        Add(context, record.id, std::nullopt, event.name_id, event.phase, event.ts_us,
            event.phase == 'X' ? event.duration_us : std::nullopt, compile, event.thread,
            repaired_args);
        return {};
    }
  }

  Result<void> ProcessPaused(ProcessState& process, IngestContext& context) override {
    const auto found = processes_.find(process.id);
    if (found == processes_.end()) return {};
    for (OpenEvent& event : found->second.open) {
      if (event.compile != nullptr && !event.compile->ends_inside_event) {
        event.compile->ends_inside_event = true;
        process.Touch(*event.compile);
      }
      if (event.is_written) continue;
      event.is_written = true;
      AddOpen(event, context);
    }
    return {};
  }

  Result<void> ProcessEnded(ProcessState& process, IngestContext& context) override {
    auto found = processes_.find(process.id);
    if (found == processes_.end()) return {};
    const std::vector<OpenEvent>& open = found->second.open;
    for (const OpenEvent& event : open) {
      if (event.compile != nullptr) event.compile->ends_inside_event = true;
      if (!event.is_written) AddOpen(event, context);
    }
    if (!open.empty()) {
      context.Log(ImportCode::kOpenEvent,
                  "process " + std::to_string(process.pid) + ": " + std::to_string(open.size()) +
                      " timed events were begun and never ended (chromium_event.phase = 'B')");
    }
    processes_.erase(found);
    return {};
  }

 private:
  void AddOpen(const OpenEvent& event, IngestContext& context) {
    Add(context, event.record_id, std::nullopt, event.name_id, 'B', event.start_us, std::nullopt,
        event.compile, event.thread, {});
  }

  // An event whose row is in the database has ended.
  static void Withdraw(ProcessState& process, const OpenEvent& event, IngestContext& context) {
    context.Withdraw(ChromiumEventRow::kTable, event.record_id);
    if (event.compile == nullptr) return;
    event.compile->ends_inside_event = false;  // the next pause sets it where another one is open
    process.Touch(*event.compile);
  }

  Result<Event> Parse(IngestContext& context, std::string& repaired_args) {
    const std::string_view text = context.PayloadToParse();
    std::optional<ScannedEvent> scanned = context.prepared().event;
    if (!scanned) scanned = ScanEvent(text);
    // Instants and inductor_compile are asked for their arguments; of everything else the few
    // members below are all that is needed.
    if (scanned && (scanned->phase == 'B' || scanned->phase == 'E') &&
        scanned->name != "inductor_compile") {
      Event event;
      event.name = scanned->name;
      event.ts_us = scanned->ts_us;
      event.phase = scanned->phase;
      event.thread = scanned->thread;
      event.compile_label = scanned->compile_label;
      return event;
    }
    if (HasTooManyJsonValues(text)) {
      context.Log(ImportCode::kPayloadTooLarge,
                  fmt::format("the event has {} bytes and more than {} values", text.size(),
                              kMostJsonValues));
      return Fail(ErrorCode::kBadJson, "the event has too many values to be parsed");
    }
    ASSIGN_OR_RETURN(const element root, ParseJson(text, context, repaired_args));
    simdjson::dom::object object;
    if (root.get(object) != simdjson::SUCCESS)
      return Fail(ErrorCode::kBadJson, "the event is not a JSON object");
    return ReadMembers(object);
  }

  Result<element> ParseJson(std::string_view text, IngestContext& context,
                            std::string& repaired_args) {
    element root;
    if (parser_.parse(text.data(), text.size(), false).get(root) != simdjson::SUCCESS) {
      Result<RepairedJson> repaired = RepairJson(context.Payload());
      if (!repaired)
        return Fail(ErrorCode::kBadJson, "the event is not JSON: " + repaired.error().message);
      repaired_args = std::string(MemberText(repaired->text, "args"));
      if (parser_.parse(WithoutBigIntegers(repaired->text)).get(root) != simdjson::SUCCESS) {
        return Fail(ErrorCode::kBadJson, "the event is not JSON");
      }
    }
    return root;
  }

  static Result<Event> ReadMembers(const simdjson::dom::object& object) {
    Event event;
    bool has_time = false;
    for (const simdjson::dom::key_value_pair field : object) {
      std::string_view string;
      if (field.key == "name") {
        if (field.value.get(string) == simdjson::SUCCESS) event.name = string;
      } else if (field.key == "ts") {
        has_time = field.value.get(event.ts_us) == simdjson::SUCCESS;
      } else if (field.key == "ph") {
        if (field.value.get(string) == simdjson::SUCCESS && !string.empty())
          event.phase = string.front();
      } else if (field.key == "dur") {
        double duration_us = 0;
        if (field.value.get(duration_us) == simdjson::SUCCESS) event.duration_us = duration_us;
      } else if (field.key == "tid") {
        if (field.value.get(event.thread) != simdjson::SUCCESS) event.thread = 0;
      } else if (field.key == "args") {
        event.has_args = field.value.get(event.args) == simdjson::SUCCESS;
      }
    }
    if (event.name.data() == nullptr || event.phase == 0 || !has_time) {
      return Fail(ErrorCode::kBadJson, "the event lacks name, ph or ts");
    }
    if (event.has_args &&
        event.args.at_key("compile_id").get(event.compile_label) != simdjson::SUCCESS)
      event.compile_label = {};
    return event;
  }

  static void EndCapture(const Record& record, double start_us, double end_us) {
    record.process->capture_record_id = 0;
    constexpr double kMaxUs = 9e18;
    if (record.compile == nullptr || record.compile->captured == nullptr || start_us < 0 ||
        end_us < start_us || end_us > kMaxUs)
      return;
    record.compile->start_time_us = static_cast<std::int64_t>(start_us);
    record.compile->duration_us = static_cast<std::int64_t>(end_us - start_us);
    record.compile->has_capture_time = true;
  }

  static void EndLoad(const Record& record, double start_us, double end_us) {
    CompileState* compile = record.compile;
    constexpr double kMaxUs = 9e18;
    if (compile == nullptr || compile->is_traced || !compile->has_start || compile->has_metrics)
      return;
    compile->is_loaded = true;
    if (start_us < 0 || end_us < start_us || end_us > kMaxUs) return;
    compile->start_time_us = static_cast<std::int64_t>(start_us);
    compile->duration_us = static_cast<std::int64_t>(end_us - start_us);
  }

  // Pairs an E with the innermost B of its name and thread. PyTorch writes 0 for every thread:
  // among those it is the one of the same compile, if there is one.
  void End(const Record& record, const Event& event, CompileState* compile, ProcessEvents& events,
           const std::string& repaired_args, IngestContext& context) {
    if (record.compile != nullptr) {
      auto active = std::find(events.active.rbegin(), events.active.rend(), record.compile);
      if (active != events.active.rend()) events.active.erase(std::next(active).base());
    }
    std::vector<OpenEvent>& open = events.open;
    const auto last = open.rbegin() + std::min(std::ssize(open), kMaxOpenBetween);
    auto begin = last;
    for (auto candidate = open.rbegin(); candidate != last; ++candidate) {
      if (candidate->name_id != event.name_id || candidate->thread != event.thread) continue;
      const bool is_same_compile = candidate->compile_label == event.compile_label;
      if (is_same_compile || begin == last) begin = candidate;
      if (is_same_compile) break;
    }
    if (begin == last) {
      Add(context, record.id, std::nullopt, event.name_id, 'E', event.ts_us, std::nullopt, compile,
          event.thread, repaired_args);
      context.Log(ImportCode::kOrphanEvent,
                  "event '" + std::string(event.name) + "' ends but never began");
    } else {
      if (record.compile == nullptr) compile = begin->compile;
      if (begin->is_written) Withdraw(*record.process, *begin, context);
      if (event.name == kCapture) EndCapture(record, begin->start_us, event.ts_us);
      if (event.name == kFrame) EndLoad(record, begin->start_us, event.ts_us);
      Add(context, record.id, begin->record_id, event.name_id, 'X', begin->start_us,
          event.ts_us - begin->start_us, compile, event.thread, repaired_args);
      open.erase(std::next(begin).base());
    }
    if (record.compile != nullptr && event.name == kDynamo)
      record.compile->end_place = {record.id, record.line, record.byte_offset, {}};
    if (record.compile == nullptr || !event.has_args) return;
    if (event.name == "inductor_compile") {
      bool is_backward = false;
      std::string_view key;
      if (event.args.at_key("key").get(key) != simdjson::SUCCESS) key = {};
      if (event.args.at_key("is_backward").get(is_backward) == simdjson::SUCCESS) {
        context.graphs().SetDirection(*record.compile, key, is_backward);
      }
      CloseGraph(record, context);
    }
  }

  static void CloseGraph(const Record& record, IngestContext& context) {
    GraphState* graph = context.graphs().Current(record);
    if (graph != nullptr && graph->is_open)
      context.graphs().Close(*record.compile, *graph, context);
  }

  void Add(IngestContext& context, std::int64_t record_id,
           std::optional<std::int64_t> begin_record_id, TextId name_id, char phase, double start_us,
           std::optional<double> duration_us, const CompileState* compile, std::int64_t thread,
           const std::string& repaired_args) {
    // Times at the ends of double's range have a difference beyond it.
    if (duration_us && !std::isfinite(*duration_us)) duration_us.reset();
    const std::optional<std::int64_t> compile_id =
        compile == nullptr ? std::nullopt : std::optional(compile->id);
    const std::optional<std::string_view> args =
        repaired_args.empty() ? std::nullopt : std::optional<std::string_view>(repaired_args);
    context.rows().Add(ChromiumEventRow{.record_id = record_id,
                                        .begin_record_id = begin_record_id,
                                        .name_id = name_id,
                                        .phase = phase,
                                        .start_us = start_us,
                                        .duration_us = duration_us,
                                        .compile_id = compile_id,
                                        .args = args,
                                        .tid = thread == 0 ? std::nullopt : std::optional(thread)});
  }

  simdjson::dom::parser parser_;
  std::unordered_map<std::int64_t, ProcessEvents> processes_;
};

}  // namespace

TLPARSE_ARTIFACT(chromium_event, ChromiumEvent, StandsAlone("chromium_event"))

}  // namespace tlparse

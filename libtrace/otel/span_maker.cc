#include "otel/span_maker.h"

#include <utility>

#include "core/clock.h"
#include "core/json_reader.h"
#include "libtrace/compile_id.h"
#include "libtrace/log_format.h"
#include "libtrace/traceparent.h"

namespace libtrace::otel {
namespace {

constexpr size_t kMaxCompiles = 4096;  // open ones, and ended ones
constexpr size_t kTraceOffset = 3, kTraceSize = 32, kSpanOffset = 36, kSpanSize = 16;

bool ReadInt(JsonReader& json, std::optional<int64_t>& value) {
  if (json.Peek() == 'n') return json.Skip();
  int64_t read = 0;
  if (!json.Int(read)) return false;
  value = read;
  return true;
}
bool ReadText(JsonReader& json, std::string& value) {
  return json.Peek() == '"' ? json.String(value) : json.Skip();
}

// Since the epoch, from the prefix (`V1121 08:30:01.123000 `, local time without a year): the last
// such moment before `now_ns`.
int64_t TimeOfPrefix(std::string_view record, int64_t now_ns) {
  constexpr int64_t kDayUs = int64_t{86'400} * 1'000'000;
  if (record.size() < detail::kPrefixTimeSize) return now_ns;
  const auto number = [&](size_t at, size_t count) {
    int64_t value = 0;
    for (size_t i = at; i < at + count; ++i) value = value * 10 + (record[i] - '0');
    return value;
  };
  const int64_t of_day_us =
      ((number(6, 2) * 60 + number(9, 2)) * 60 + number(12, 2)) * 1'000'000 + number(15, 6);
  const int64_t local_us = now_ns / 1000 + detail::UtcOffsetS(now_ns / 1'000'000'000) * 1'000'000;
  const int64_t age_us = ((local_us - of_day_us) % kDayUs + kDayUs) % kDayUs;
  return age_us > kDayUs / 2 ? now_ns : now_ns - age_us * 1000;  // the clock was set back
}

SpanId NewId() {
  const std::string fresh = NewTraceparent();
  return {fresh.substr(kTraceOffset, kTraceSize), fresh.substr(kSpanOffset, kSpanSize)};
}

}  // namespace

struct SpanMaker::Envelope {
  std::string artifact, traceparent, label;  // label of the compile, "" = none
  bool is_metrics = false, is_start = false;
  // Of compilation_metrics.
  std::string function, fail_type, fail_reason;
  std::optional<int64_t> start_us, end_us;

  bool Read(std::string_view text);

 private:
  bool ReadMetrics(JsonReader& json);
};

bool SpanMaker::Envelope::ReadMetrics(JsonReader& json) {
  is_metrics = true;
  return json.Object([&](std::string_view member) {
    if (member == "co_name") return ReadText(json, function);
    if (member == "fail_type") return ReadText(json, fail_type);
    if (member == "fail_reason") return ReadText(json, fail_reason);
    if (member == "start_time_us") return ReadInt(json, start_us);
    if (member == "end_time_us") return ReadInt(json, end_us);
    return json.Skip();
  });
}

bool SpanMaker::Envelope::Read(std::string_view text) {
  JsonReader json(text);
  std::optional<int64_t> autograd, frame, compile;
  const bool is_whole = json.Object([&](std::string_view member) {
    if (member == format::kArtifact) {
      return json.Object([&](std::string_view name) {
        return name == format::kArtifactName ? json.String(artifact) : json.Skip();
      });
    }
    if (member == "compilation_metrics") return ReadMetrics(json);
    if (member == format::kDynamoStart) is_start = true;
    if (member == "traceparent") return ReadText(json, traceparent);
    if (member == format::kCompiledAutogradId) return ReadInt(json, autograd);
    if (member == format::kFrameId) return ReadInt(json, frame);
    if (member == format::kFrameCompileId) return ReadInt(json, compile);
    return json.Skip();
  });
  if (!IsTraceparent(traceparent)) traceparent.clear();
  CompileId id;
  if (autograd) id.compiled_autograd_id = static_cast<uint32_t>(*autograd);
  if (frame) id.frame_id = static_cast<uint32_t>(*frame);
  if (compile) id.frame_compile_id = static_cast<uint32_t>(*compile);
  if (!id.empty()) label = ToString(id);
  return is_whole;
}

SpanMaker::Compile& SpanMaker::CompileOf(const Envelope& envelope) {
  const auto known = open_.find(envelope.label);
  if (known != open_.end()) return known->second;
  if (open_.size() >= kMaxCompiles) open_.erase(open_.begin());  // of compiles without an end
  Compile compile;
  compile.id = NewId();
  if (const std::string_view request = envelope.traceparent; !request.empty()) {
    compile.id.trace = request.substr(kTraceOffset, kTraceSize);
    compile.parent_span = request.substr(kSpanOffset, kSpanSize);
    compile.is_sampled = IsSampled(request);
  }
  return open_.emplace(envelope.label, std::move(compile)).first->second;
}

void SpanMaker::Remember(const std::string& label, const SpanId& id) {
  if (ended_labels_.size() >= kMaxCompiles) {
    ended_.erase(ended_labels_.front());
    ended_labels_.pop_front();
  }
  if (ended_.insert_or_assign(label, id).second) ended_labels_.push_back(label);
}

std::optional<Span> SpanMaker::Begin(const Envelope& envelope) {
  Span span;
  span.id = NewId();
  if (!envelope.label.empty()) {
    const Compile& compile = CompileOf(envelope);
    if (!compile.is_sampled) return {};
    span.id.trace = compile.id.trace;
    span.parent_span = compile.id.span;
    span.attributes.emplace_back("libtrace.compile_id", envelope.label);
  } else if (const std::string_view request = envelope.traceparent; !request.empty()) {
    if (!IsSampled(request)) return {};
    span.id.trace = request.substr(kTraceOffset, kTraceSize);
    span.parent_span = request.substr(kSpanOffset, kSpanSize);
  }
  return span;
}

std::optional<Span> SpanMaker::OfCompile(const Envelope& envelope) {
  if (envelope.label.empty() || !envelope.start_us || !envelope.end_us) return {};
  const Compile compile = CompileOf(envelope);
  open_.erase(envelope.label);
  if (!compile.is_sampled) return {};
  Remember(envelope.label, compile.id);
  Span span;
  span.id = compile.id;
  span.parent_span = compile.parent_span;
  span.name = "compile " + envelope.function;
  span.start_ns = *envelope.start_us * 1000;
  span.end_ns = *envelope.end_us * 1000;
  span.attributes.emplace_back("libtrace.compile_id", envelope.label);
  if (!envelope.fail_type.empty()) span.error = envelope.fail_type + ": " + envelope.fail_reason;
  return span;
}

std::optional<Span> SpanMaker::OfCacheLookup(const Envelope& envelope, std::string_view payload) {
  std::optional<int64_t> time_ns, waited_ns;
  std::string key, state, answered_by;
  JsonReader json(payload);
  const bool is_whole = json.Object([&](std::string_view member) {
    if (member == "cache_event_time") return ReadInt(json, time_ns);
    if (member == "waited_ns") return ReadInt(json, waited_ns);
    if (member == "key") return ReadText(json, key);
    if (member == "cache_state") return ReadText(json, state);
    if (member == "answered_by") return ReadText(json, answered_by);
    return json.Skip();
  });
  std::optional<Span> span;
  if (!is_whole || !time_ns || !(span = Begin(envelope))) return {};
  const std::string_view name = envelope.artifact;
  span->name = "cache lookup " + std::string(name.substr(0, name.rfind("_cache_")));
  span->end_ns = *time_ns;
  span->start_ns = *time_ns - waited_ns.value_or(0);
  span->attributes.emplace_back("libtrace.cache.state", state);
  if (!key.empty()) span->attributes.emplace_back("libtrace.cache.key", key);
  if (!answered_by.empty())
    span->attributes.emplace_back("libtrace.cache.answered_by", answered_by);
  return span;
}

std::optional<Span> SpanMaker::OfModelLoad(const Envelope& envelope, std::string_view payload,
                                           int64_t time_ns) {
  std::optional<int64_t> duration_ns;
  std::string model, state;
  JsonReader json(payload);
  const bool is_whole = json.Object([&](std::string_view member) {
    if (member == "duration_ns") return ReadInt(json, duration_ns);
    if (member == "model") return ReadText(json, model);
    if (member == "state") return ReadText(json, state);
    return json.Skip();
  });
  std::optional<Span> span;
  if (!is_whole || !duration_ns || !(span = Begin(envelope))) return {};
  span->name = "model load " + model;
  span->end_ns = time_ns;
  span->start_ns = time_ns - *duration_ns;
  span->attributes.emplace_back("libtrace.model.state", state);
  return span;
}

std::optional<Span> SpanMaker::OfGraphCall(const Envelope& envelope, std::string_view payload) {
  std::optional<int64_t> time_us, duration_ns;
  std::string label, compile;
  JsonReader json(payload);
  const bool is_whole = json.Object([&](std::string_view member) {
    if (member == "time_us") return ReadInt(json, time_us);
    if (member == "duration_ns") return ReadInt(json, duration_ns);
    if (member == "label") return ReadText(json, label);
    if (member == "compile_id") return ReadText(json, compile);
    return json.Skip();
  });
  std::optional<Span> span;
  if (!is_whole || !time_us || !duration_ns || !(span = Begin(envelope))) return {};
  span->name = "graph call " + (label.empty() ? compile : label);
  span->end_ns = *time_us * 1000;
  span->start_ns = span->end_ns - *duration_ns;
  if (!compile.empty()) {
    span->attributes.emplace_back("libtrace.runs_compile_id", compile);
    if (const auto ended = ended_.find(compile); ended != ended_.end()) span->link = ended->second;
  }
  return span;
}

std::optional<Span> SpanMaker::Add(std::string_view record, int64_t now_ns) {
  const size_t line_end = record.find('\n');
  const std::string_view header = record.substr(0, line_end);
  const size_t begin = header.find("] {");
  if (begin == std::string_view::npos) return {};
  const std::string_view text = header.substr(begin + 2);
  // Most records are none of these, and large: they are not parsed.
  const bool is_wanted = text.rfind("{\"dynamo_start\"", 0) == 0 ||
                         text.rfind("{\"compilation_metrics\"", 0) == 0 ||
                         text.rfind("{\"artifact\"", 0) == 0;
  if (!is_wanted) return {};
  Envelope envelope;
  if (!envelope.Read(text)) return {};
  if (envelope.is_metrics) return OfCompile(envelope);
  if (envelope.is_start) {
    if (!envelope.label.empty()) CompileOf(envelope);
    return {};
  }
  const std::string_view name = envelope.artifact;
  const bool is_lookup = name.size() > 11 && (name.substr(name.size() - 10) == "_cache_hit" ||
                                              name.substr(name.size() - 11) == "_cache_miss");
  const bool is_bypass = name.size() > 13 && name.substr(name.size() - 13) == "_cache_bypass";
  const bool is_load = name == "libtrace_model_load", is_call = name == "libtrace_graph_execution";
  if (!is_lookup && !is_bypass && !is_load && !is_call) return {};
  const std::string_view payload =  // white space in front of each line
      line_end == std::string_view::npos ? std::string_view() : record.substr(line_end);
  if (is_load) return OfModelLoad(envelope, payload, TimeOfPrefix(record, now_ns));
  return is_call ? OfGraphCall(envelope, payload) : OfCacheLookup(envelope, payload);
}

}  // namespace libtrace::otel

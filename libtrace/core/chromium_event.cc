#include "libtrace/chromium_event.h"

#include <memory>
#include <utility>

#include "core/clock.h"
#include "core/errno_scope.h"
#include "core/thread_id.h"
#include "core/trace_state.h"
#include "libtrace/log_format.h"
#include "libtrace/scope.h"

namespace libtrace {
namespace {

constexpr std::string_view kCategory = "dynamo_timed";

struct Event {
  std::string_view name;
  char phase;
  std::string_view fn_name;
  std::string_view args;  // `, "name": value` pieces
};

std::string ArgsObject(const Event& event, ArgsBuilder build_args) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject();
  if (!event.fn_name.empty()) json.Field("fn_name", event.fn_name);
  json.Field("compile_id", ToString(CurrentContext().compile_id));
  if (build_args) build_args(json);
  json.Finish();
  if (!event.args.empty()) {
    text.pop_back();
    text.append(event.args).append("}");
  }
  return text;
}

void WriteEvent(const Event& event, ArgsBuilder build_args, std::string& out) {
  const int64_t now_ns = detail::NowNs();
  const char phase[] = {event.phase, '\0'};
  JsonWriter json(out, JsonStyle::kLinePerToken);
  json.BeginObject().Field("name", event.name);
  json.Field("ts", static_cast<double>(now_ns) / 1000.0);
  json.Key("args").Json(ArgsObject(event, build_args));
  json.Field("ph", phase).Field("cat", kCategory).Field("tid", detail::ThreadId());
  json.Field("pid", detail::ProcessId());
  if (event.phase == 'i') json.Field("s", "p");
  json.EndObject();
}

void EmitEvent(const Event& event, ArgsBuilder args, CallSite location) {
  EmitOptions options;
  options.expects_compile_id = event.phase == 'i';
  Emit(
      format::kChromiumEvent, [](MetadataWriter&) {},
      [&](Payload& payload) { WriteEvent(event, args, payload.text()); }, options, location);
}

// Whether Options::limits lets an event of this name pass.
bool Admit(std::string_view name) noexcept {
  detail::Trace* const trace = detail::TraceForRecord();
  if (trace == nullptr || trace->limits.empty() || trace->limits.Admit(name)) return true;
  trace->ledger.LeftOut(name);
  return false;
}

}  // namespace

void EmitInstant(std::string_view name, ArgsBuilder args, CallSite location) noexcept {
  if (IsEnabled() && Admit(name)) EmitEvent({name, 'i', {}, {}}, args, location);
}

TimedSpan::Active* TimedSpan::Begin(std::string_view name, std::string_view fn_name,
                                    const CallSite& location) noexcept {
  const detail::ErrnoScope keeps_errno;
  if (!Admit(name)) return nullptr;
  Active* active = nullptr;
  try {
    active = new Active{std::string(name), std::string(fn_name), {}, location};
  } catch (...) {  // no memory: no span
    return nullptr;
  }
  EmitEvent({active->name, 'B', active->fn_name, {}}, {}, location);
  return active;
}

void TimedSpan::AppendArg(std::string_view name, ArgsBuilder write, std::string& args) noexcept {
  const detail::ErrnoScope keeps_errno;
  const size_t size = args.size();
  try {
    args += ", ";
    AppendJsonString(name, args);
    args += ": ";
    JsonWriter json(args);
    write(json);
  } catch (...) {  // no memory: the event goes without this arg
    args.resize(size);
  }
}

void TimedSpan::Finish(Active* ended) noexcept {
  const detail::ErrnoScope keeps_errno;
  const std::unique_ptr<Active> active(ended);
  if (!IsEnabled()) return;
  EmitEvent({active->name, 'E', active->fn_name, active->args}, {}, active->location);
}

}  // namespace libtrace

#include "libtrace/compile.h"

#include <utility>

#include "core/clock.h"
#include "libtrace/log_format.h"

namespace libtrace {

Compile::Compile(Frame& frame, CompileDescription description, CallSite location) noexcept
    : Compile(frame.NextCompile(), std::move(description), location) {}

Compile::Compile(const CompileId& compile_id, CompileDescription description,
                 CallSite location) noexcept
    : scope_(compile_id),
      location_(location),
      start_us_(detail::NowUs()),
      span_("libtrace_compile", description.function, location) {
  if (!IsEnabled()) return;
  try {
    Begin(description);
  } catch (...) {  // no memory: the records above say that much
  }
}

void Compile::Begin(const CompileDescription& description) {
  metrics_.co_name = description.function;
  if (!description.file.empty()) metrics_.co_filename = description.file;
  if (description.line) metrics_.co_firstlineno = *description.line;
  metrics_.cache_size = scope_.id().frame_compile_id.value_or(0);
  metrics_.accumulated_cache_size = metrics_.cache_size;
  if (!description.recompile_reasons.empty()) {
    metrics_.recompile_reason = description.recompile_reasons.front();
    EmitJsonArtifact(
        "recompile_reasons", JsonStyle::kLinePerElement,
        [&](JsonWriter& json) { json.Value(description.recompile_reasons); }, {}, location_);
  }
  Stack stack = description.callers;
  stack.push_back({description.file, description.line, description.function, std::nullopt});
  Emit(
      format::kDynamoStart,
      [&](MetadataWriter& json) {
        json.BeginObject().Key("stack");
        json.Frames(stack).EndObject();
      },
      {}, location_);
}

Compile::~Compile() {
  span_.End();
  if (!IsEnabled()) return;
  metrics_.start_time_us = start_us_;
  metrics_.end_time_us = detail::NowUs();
  metrics_.duration_us = *metrics_.end_time_us - start_us_;
  if (!metrics_.has_guarded_code) metrics_.has_guarded_code = !metrics_.fail_type.has_value();
  EmitCompilationMetrics(metrics_, location_);
}

void Compile::Restart(std::string_view reason) noexcept {
  scope_.Restart();
  if (!IsEnabled()) return;
  try {
    if (!metrics_.restart_reasons) metrics_.restart_reasons.emplace();
    metrics_.restart_reasons->emplace_back(reason);
    metrics_.dynamo_time_before_restart_s = static_cast<double>(detail::NowUs() - start_us_) / 1e6;
  } catch (...) {  // no memory: the attempt counts all the same
  }
}

void Compile::Fail(std::string_view type, std::string_view reason, std::string_view user_file,
                   std::optional<uint32_t> user_line) noexcept {
  if (metrics_.fail_type) return;
  try {
    metrics_.fail_type = type;
    metrics_.fail_reason = reason;
    if (!user_file.empty()) metrics_.fail_user_frame_filename = user_file;
    if (user_line) metrics_.fail_user_frame_lineno = *user_line;
  } catch (...) {
  }
}

}  // namespace libtrace

#include "libtrace/compile.h"

#include <cstddef>
#include <exception>
#include <new>
#include <utility>

#include "core/clock.h"
#include "core/errno_scope.h"
#include "core/exception_text.h"
#include "libtrace/log_format.h"

namespace libtrace {

Compile::Compile(const CompileId& compile_id, const CompileDescription& description,
                 CallSite location) noexcept
    : scope_(compile_id), location_(location) {
  if (IsEnabled()) Begin(description);
}

Compile::Compile(const CompileId& compile_id, DescriptionBuilder describe,
                 CallSite location) noexcept
    : scope_(compile_id), location_(location) {
  if (!IsEnabled()) return;
  const detail::ErrnoScope keeps_errno;
  CompileDescription description;
  try {
    describe(description);
  } catch (...) {  // a compile without the rest of its description
  }
  Begin(description);
}

void Compile::Begin(const CompileDescription& description) noexcept {
  const detail::ErrnoScope keeps_errno;
  try {
    metrics_ = std::make_unique<CompilationMetrics>();
    is_traced_ = true;
    uncaught_count_ = std::uncaught_exceptions();
    metrics_->start_time_us = detail::NowUs();
    span_ = TimedSpan("libtrace_compile", description.function, location_);
    metrics_->co_name = description.function;
    if (!description.file.empty()) metrics_->co_filename = description.file;
    if (description.line) metrics_->co_firstlineno = *description.line;
    metrics_->cache_size = scope_.id().frame_compile_id.value_or(0);
    metrics_->accumulated_cache_size = metrics_->cache_size;
    if (!description.recompile_reasons.empty()) {
      metrics_->recompile_reason = description.recompile_reasons.front();
      EmitJsonArtifact(
          "recompile_reasons", JsonStyle::kLinePerElement,
          [&](JsonWriter& json) { json.Value(description.recompile_reasons); }, {}, location_);
    }
    Stack stack = description.callers;
    stack.push_back({std::string(description.file), description.line,
                     std::string(description.function), std::nullopt});
    Emit(
        format::kDynamoStart,
        [&](MetadataWriter& json) {
          json.BeginObject().Key("stack");
          json.Frames(stack).EndObject();
        },
        {}, location_);
  } catch (...) {  // no memory: the records above say that much
  }
}

Compile::~Compile() { End(); }

void Compile::End() noexcept {
  if (!is_traced_) return;
  const detail::ErrnoScope keeps_errno;
  // An inner compile that has not ended, or another thread: both only from C.
  std::optional<ContextScope> own;
  if (CurrentContext().compile_id != scope_.id())
    own.emplace(Context{scope_.id(), scope_.attempt(), {}});
  if (std::uncaught_exceptions() > uncaught_count_) {
    std::string type;
    try {
      type = detail::RethrownExceptionType();
    } catch (...) {  // no memory
    }
    Fail(type.empty() ? "exception" : type,
         "left by a C++ exception; Compile::Run records its type and message");
  }
  is_traced_ = false;
  span_.End();
  if (!IsEnabled()) return;
  CompilationMetrics& m = *metrics_;
  m.end_time_us = detail::NowUs();
  m.duration_us = *m.end_time_us - m.start_time_us.value_or(*m.end_time_us);
  if (!m.has_guarded_code) m.has_guarded_code = !m.fail_type.has_value();
  EmitCompilationMetrics(m, location_);
}

CompilationMetrics& Compile::Unwritten() noexcept {
  const detail::ErrnoScope keeps_errno;
  metrics_.reset(new (std::nothrow) CompilationMetrics);
  if (metrics_ != nullptr) return *metrics_;
  // Without memory the caller still needs an object to write to. It is never destroyed, because a
  // destructor that runs at exit may use it.
  alignas(CompilationMetrics) static std::byte storage[sizeof(CompilationMetrics)];
  static auto* const shared_metrics = new (storage) CompilationMetrics;
  return *shared_metrics;
}

void Compile::Restart(std::string_view reason) noexcept {
  scope_.Restart();
  if (!is_traced_) return;
  const detail::ErrnoScope keeps_errno;
  try {
    CompilationMetrics& m = *metrics_;
    if (!m.restart_reasons) m.restart_reasons.emplace();
    m.restart_reasons->emplace_back(reason);
    const int64_t now_us = detail::NowUs();
    m.dynamo_time_before_restart_s =
        static_cast<double>(now_us - m.start_time_us.value_or(now_us)) / 1e6;
  } catch (...) {  // no memory: the attempt counts all the same
  }
}

void Compile::Fail(std::string_view type, std::string_view reason, std::string_view user_file,
                   std::optional<uint32_t> user_line) noexcept {
  if (!is_traced_ || metrics_->fail_type) return;
  const detail::ErrnoScope keeps_errno;
  try {
    metrics_->fail_type = type;
    metrics_->fail_reason = reason;
    if (!user_file.empty()) metrics_->fail_user_frame_filename = user_file;
    if (user_line) metrics_->fail_user_frame_lineno = *user_line;
  } catch (...) {
  }
}

void Compile::FailWithCurrentException() noexcept {
  if (!is_traced_) return;
  const detail::ErrnoScope keeps_errno;
  try {
    Fail(detail::CurrentExceptionType(), detail::CurrentExceptionMessage());
  } catch (...) {  // no memory: a failure without its type
    Fail("exception", "");
  }
}

}  // namespace libtrace

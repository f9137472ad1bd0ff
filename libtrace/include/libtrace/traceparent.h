// The request that this thread works for, as W3C Trace Context names it
// (https://www.w3.org/TR/trace-context/, header `traceparent`).
//
//   libtrace::TraceparentScope request(http_request.Header("traceparent"));
//   model.Run(inputs);                    // its records have the member "traceparent"
//   onward.SetHeader("traceparent", libtrace::CurrentTraceparent());
//
// Records of this thread carry it in their envelope, so that the trace of a request leads to the
// compile, lookup or load that it waited for; libtrace/otel/otel_sink.h makes spans of them. Costs a
// few ns when tracing is off.
#pragma once

#include <string>
#include <string_view>

#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

// Whether `header` is a traceparent: version 00, or the members of it in a later version; lower case;
// trace and parent id not zero.
bool IsTraceparent(std::string_view header) noexcept;

// Whether the caller records the request: the flag `sampled`. False for what is not a traceparent.
bool IsSampled(std::string_view traceparent) noexcept;

// A traceparent of a new trace, sampled, for requests that came without one.
std::string NewTraceparent();

// "" = none. Valid until the thread's innermost scope changes. Hand it to other threads as text.
std::string_view CurrentTraceparent() noexcept;

// What is not a traceparent counts as none. Scopes of a thread end in reverse order.
class TraceparentScope {
 public:
  explicit TraceparentScope(std::string_view header) noexcept;
  ~TraceparentScope();
  TraceparentScope(const TraceparentScope&) = delete;
  TraceparentScope& operator=(const TraceparentScope&) = delete;

 private:
  friend std::string_view CurrentTraceparent() noexcept;
  static constexpr int kSize = 55;  // 00-<32 digits>-<16 digits>-<2 digits>

  char text_[kSize];
  bool is_set_ = false;
  TraceparentScope* outer_;
};

}  // namespace LIBTRACE_EXPORT

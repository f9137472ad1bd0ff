// Makes spans of the records that say when something began and ended.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "otel/span.h"

namespace libtrace::otel {

// Not thread-safe. Functions may throw std::bad_alloc.
class SpanMaker {
 public:
  // `record` as a sink gets it, at `now_ns` since the epoch. Empty: no span is made of it, or its
  // trace is not sampled.
  std::optional<Span> Add(std::string_view record, int64_t now_ns);

 private:
  struct Envelope;
  struct Compile {
    SpanId id;
    std::string parent_span;
    bool is_sampled = true;
  };

  Compile& CompileOf(const Envelope& envelope);
  std::optional<Span> OfCompile(const Envelope& envelope);
  std::optional<Span> OfCacheLookup(const Envelope& envelope, std::string_view payload);
  std::optional<Span> OfModelLoad(const Envelope& envelope, std::string_view payload,
                                  int64_t time_ns);
  std::optional<Span> OfGraphCall(const Envelope& envelope, std::string_view payload);
  // Ids, from the compile or request in which the record was emitted. Empty: not sampled.
  std::optional<Span> Begin(const Envelope& envelope);
  void Remember(const std::string& label, const SpanId& id);

  std::map<std::string, Compile> open_;   // by label
  std::map<std::string, SpanId> ended_;   // compiles, for links of graph calls
  std::deque<std::string> ended_labels_;  // the oldest first
};

}  // namespace libtrace::otel

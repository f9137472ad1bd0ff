// The running trace.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "core/async_queue.h"
#include "core/loss_ledger.h"
#include "core/record_limits.h"
#include "core/record_writer.h"
#include "libtrace/options.h"

namespace libtrace::detail {

// Made by Start, never freed: another thread may be about to emit into it.
struct Trace {
  Trace(Options options_in, std::shared_ptr<Sink> sink);

  // Passes the record to the queue or to the sink. False if this trace has ended; the record is
  // then unchanged.
  bool Submit(PendingRecord& record, FramedRecord& framed) noexcept;

  const Options options;
  const int pid;
  const std::string pid_text;
  LossLedger ledger;
  RecordLimits limits;
  RecordWriter writer;
  AsyncQueue* const queue;    // null = synchronous
  Trace* previous = nullptr;  // keeps ended traces reachable for leak checkers
};

Trace* CurrentTrace() noexcept;    // null = off
Trace* TraceForRecord() noexcept;  // the same; starts the trace of a child that has just forked

}  // namespace libtrace::detail

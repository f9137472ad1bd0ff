// A sink of spdlog as a sink of libtrace. Only this header needs spdlog; libtrace itself does not.
//
//   auto file = std::make_shared<spdlog::sinks::basic_file_sink_st>("trace.log");
//   options.sink = libtrace::MakeSpdlogSink(std::move(file));
#pragma once

#include <spdlog/common.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>

#include <memory>
#include <string_view>
#include <utility>

#include "libtrace/export.h"
#include "libtrace/sink.h"

namespace libtrace LIBTRACE_EXPORT {

class SpdlogSink : public Sink {
 public:
  // Sets a pattern that adds nothing to a record. `_st` sinks will do.
  explicit SpdlogSink(std::shared_ptr<spdlog::sinks::sink> sink) : sink_(std::move(sink)) {
    sink_->set_formatter(
        std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::local, ""));
  }

  void Write(std::string_view record) override {
    spdlog::details::log_msg message;
    message.level = spdlog::level::debug;
    message.payload = spdlog::string_view_t(record.data(), record.size());
    sink_->log(message);
  }
  void Flush() override { sink_->flush(); }

 private:
  std::shared_ptr<spdlog::sinks::sink> sink_;
};

inline std::shared_ptr<Sink> MakeSpdlogSink(std::shared_ptr<spdlog::sinks::sink> sink) {
  return std::make_shared<SpdlogSink>(std::move(sink));
}

}  // namespace LIBTRACE_EXPORT

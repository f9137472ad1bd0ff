#include "log/window_settler.h"

#include <mutex>
#include <string_view>
#include <utility>

namespace tlparse {

Result<void> WindowSettler::Settle(Window& window) {
  if (window.file_offset == 0) {
    line_feeds_ = line_count_ = 0;
    last_time_us_.reset();
  }
  SetLines(window);
  SetTimes(window);
  return SetIds(window);
}

void WindowSettler::SetLines(Window& window) {
  if (line_feeds_ > 0) {
    for (LogRecord& record : window.records) record.line += line_feeds_;
    for (ImportProblem& problem : window.problems) problem.line += line_feeds_;
  }
  const std::string_view bytes = window.bytes.view().substr(0, window.end);
  line_feeds_ += window.line_feeds;
  line_count_ = line_feeds_ + (!bytes.empty() && bytes.back() != '\n' ? 1 : 0);
  if (window.input_error) {
    window.input_error->line = line_count_;
    window.problems.push_back(std::move(*window.input_error));
    window.input_error.reset();
  }
}

void WindowSettler::SetTimes(Window& window) {
  const std::optional<PrefixTimeUs> neighbour = last_time_us_;
  for (std::size_t index = 0; index < window.timeless_count; ++index) {
    PrefixTimeUs& time_us = window.records[index].prefix.time_us;
    if (neighbour) {
      time_us = *neighbour;
    } else if (window.timeless_count < window.records.size()) {
      time_us = window.records[window.timeless_count].prefix.time_us;
    }
  }
  if (window.last_time_us) last_time_us_ = window.last_time_us;
}

Result<void> WindowSettler::SetIds(Window& window) {
  if (!window.candidates.empty()) {
    const std::unique_lock lock(shared_.index_mutex);
    for (const Window::Candidate& candidate : window.candidates) {
      LogRecord& record = window.records[candidate.record];
      if (const auto known = shared_.index->Find(record.payload_md5)) {
        record.payload_id = known->id;
        continue;
      }
      record.payload_id = shared_.next_payload_id++;
      record.payload_is_new = true;
      RETURN_IF_ERROR(shared_.index->Insert({record.payload_md5, candidate.fingerprint,
                                             static_cast<std::uint32_t>(record.payload_id)}));
    }
  }
  for (const Window::Repeat& repeat : window.repeats)
    window.records[repeat.record].payload_id = window.records[repeat.original].payload_id;
  return {};
}

}  // namespace tlparse

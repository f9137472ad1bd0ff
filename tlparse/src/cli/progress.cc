#include "cli/progress.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/plural.h"
#include "cli/terminal.h"

namespace tlparse {

namespace {
using Seconds = std::chrono::duration<double>;
constexpr Seconds kQuiet(0.5);
constexpr Seconds kInterval(0.15);
}  // namespace

ProgressLine::ProgressLine(std::size_t log_count)
    : log_count_(log_count), start_(std::chrono::steady_clock::now()), last_(start_) {}

ProgressLine::~ProgressLine() {
  if (is_shown_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::Show(const ImportProgress& progress) {
  if (!Terminal::Err().is_terminal) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - start_ < kQuiet || now - last_ < kInterval) return;
  last_ = now;
  const double elapsed = Seconds(now - start_).count();
  const double rate = static_cast<double>(progress.bytes_done) / elapsed;
  std::string line =
      fmt::format("{}, {}", Count(progress.records, "record"), HumanBytes(progress.bytes_done));
  if (progress.bytes_total > 0) {
    line += fmt::format(" of {} ({:.0f} %)", HumanBytes(progress.bytes_total),
                        100.0 * static_cast<double>(progress.bytes_done) /
                            static_cast<double>(progress.bytes_total));
  }
  line += fmt::format(", {}/s", HumanBytes(static_cast<std::int64_t>(rate)));
  if (progress.bytes_total > progress.bytes_done && rate > 0) {
    line += fmt::format(
        ", {} left",
        HumanDuration(static_cast<double>(progress.bytes_total - progress.bytes_done) / rate));
  }
  if (log_count_ > 1) line += "  " + Printable(progress.path);
  std::fprintf(stderr, "\r\x1b[K%.*s", Terminal::Err().width > 1 ? Terminal::Err().width - 1 : 79,
               line.c_str());
  std::fflush(stderr);
  is_shown_ = true;
}

}  // namespace tlparse

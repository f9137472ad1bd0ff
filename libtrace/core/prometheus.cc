#include "libtrace/prometheus.h"

#include <cstdint>
#include <string_view>

#include "core/errno_scope.h"

namespace libtrace {
namespace {

void AppendHead(std::string_view name, std::string_view help, std::string& out) {
  out.append("# HELP ").append(name).append(" ").append(help).append("\n");
  out.append("# TYPE ").append(name).append(" counter\n");
}

void AppendCounter(std::string_view name, std::string_view help, uint64_t value, std::string& out) {
  AppendHead(name, help, out);
  out.append(name).append(" ").append(std::to_string(value)).append("\n");
}

}  // namespace

std::string PrometheusText(const Stats& stats) {
  const detail::ErrnoScope keeps_errno;
  std::string out;
  AppendCounter("libtrace_records_total", "Records handed to the sink.", stats.record_count, out);
  AppendCounter("libtrace_bytes_total", "Bytes of these records.", stats.size_bytes, out);
  constexpr std::string_view kLost = "libtrace_lost_records_total";
  AppendHead(kLost, "Records that could not be written, and options that were not understood.",
             out);
  for (int kind = 0; kind < kLossKindCount; ++kind) {
    out.append(kLost).append("{kind=\"").append(ToString(static_cast<LossKind>(kind)));
    out.append("\"} ").append(std::to_string(stats.lost_by_kind[static_cast<size_t>(kind)]));
    out.append("\n");
  }
  AppendCounter("libtrace_repaired_payloads_total", "Payloads that were not UTF-8.",
                stats.repaired_payload_count, out);
  AppendCounter("libtrace_files_total", "Log files opened by this process.", stats.file_count, out);
  return out;
}

}  // namespace libtrace

// Counters of libtrace as text of Prometheus (exposition format 0.0.4), to be appended to what a
// server's /metrics says.
#pragma once

#include <string>

#include "libtrace/export.h"
#include "libtrace/loss.h"

namespace libtrace LIBTRACE_EXPORT {

// libtrace_records_total, libtrace_bytes_total, libtrace_lost_records_total{kind="…"},
// libtrace_repaired_payloads_total, libtrace_files_total. Content type: `text/plain; version=0.0.4`.
std::string PrometheusText(const Stats& stats);

}  // namespace LIBTRACE_EXPORT

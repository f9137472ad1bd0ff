// Writes the viewer into an output directory: index.html and data/*.js, which together open from
// file:// without a server.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "report/output_directory.h"
#include "report/report.h"
#include "report/task_pool.h"
#include "store/database.h"

namespace tlparse {

// The page, as bundled when tlparse was built; empty if it was built without
// (TRACEKIT_BUILD_VIEWER=OFF, or no node). Data is not part of it.
std::string_view ViewerPage();

// Name of the plain index of the report if index.html is the viewer; the viewer links to it.
inline constexpr const char* kPlainIndexName = "files.html";

// Writes index.html, with options.custom_header_html unescaped at the top of its body, and adds
// tasks that write data/, for a run of `database`. The page's policy disables scripts and styles of
// that HTML. `directory` must outlive the pool's run. kNotFound if ViewerPage() is empty or
// there is no such run.
Result<void> AddViewerTasks(TaskPool& pool, Database& database, const Directory& directory,
                            std::int64_t run_id, const ReportOptions& options);

}  // namespace tlparse

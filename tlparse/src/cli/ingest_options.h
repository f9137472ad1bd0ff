#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace tlparse {

// The arguments of `tlparse <log | directory | -> …`.
struct IngestOptions {
  std::vector<std::string> inputs;
  std::string output = "tl_out";
  std::optional<std::string> database;
  std::optional<std::string> run;
  std::string custom_header_html;
  std::string only;
  bool keep_python_frames = false;
  bool db_only = false;
  bool overwrite = false;
  bool latest = false;
  bool strict = false;
  bool strict_compile_id = false;
  bool browser = false;
  bool no_browser = false;
  bool verbose = false;
  bool version = false;
  bool plain_text = false;
  bool with_profile = false;
  bool export_report = false;
  bool inductor_provenance = false;
  bool all_ranks_html = false;
  bool serve = false;
  std::optional<std::string> port;
  std::optional<std::int64_t> world_size;
  int threads = 0;
};

// Declares them, with the help of the whole program.
void Describe(Arguments& app, IngestOptions& options);

}  // namespace tlparse

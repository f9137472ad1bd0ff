#include "cli/ingest_options.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/commands.h"

namespace tlparse {

void Describe(Arguments& app, IngestOptions& options) {
  app.Add("input", options.inputs,
          "logs, profiles and recorder dumps, directories of them, or - for standard input; what a "
          "file is, gzip and zstd are recognised by content");
  app.Add("-o,--output", options.output, "output directory").ShowDefault();
  app.Flag("--overwrite", options.overwrite,
           "replace the output directory, if an earlier tlparse wrote it");
  app.Flag("--db-only", options.db_only, "write the database and no report");
  app.Add("--db", options.database,
          "add to this database instead of writing trace.db in the output directory");
  app.Add("--run", options.run, "name of the run in the database (default: the input's path)");
  app.Add("--only", options.only,
          "logs: leave profiles and recorder dumps out; profiles: leave the logs out")
      .OneOf({"logs", "profiles"});
  app.Flag("--keep-python-frames", options.keep_python_frames,
           "keep all Python frames of profiles, not only those of generated code");
  app.Flag("--latest", options.latest, "only the log of each directory that was written last");
  app.Flag("--strict", options.strict, "exit with 1 if the import log has an error or a warning");
  app.Flag("--strict-compile-id", options.strict_compile_id,
           "exit with 1 if a record that belongs to a compile has no compile id");
  app.Flag("--with-profile", options.with_profile,
           "also write the measurements of profiles to chromium_events.json");
  app.Flag("-p,--plain-text", options.plain_text, "generated code as .txt instead of HTML");
  app.Flag("-e,--export", options.export_report,
           "report on a torch.export: problems, guards, expressions");
  app.Flag("-i,--inductor-provenance", options.inductor_provenance,
           "pages that join graphs, generated code and source lines");
  app.Flag("--all-ranks-html", options.all_ranks_html, "a directory per rank even for one log");
  app.Add("--custom-header-html", options.custom_header_html,
          "HTML put at the top of the index pages");
  app.Add("--world-size", options.world_size,
          "expected number of ranks, for findings (default: as many as the inputs show)")
      .Positive();
  app.Add(
         "--threads", options.threads,
         "maximum number of threads (default: one for each core); the output does not depend on it")
      .Between(1, 1024);
  app.Flag("-v,--verbose", options.verbose, "print what was ingested and how fast");
  app.Flag("--browser", options.browser, "open the report in a browser");
  app.Flag("--serve", options.serve,
           "then serve the report over HTTP on this machine (see 'tlparse serve')");
  app.Add("--port", options.port, "port of --serve");
  app.Flag("--no-browser", options.no_browser, "open no browser (the default)");
  app.Flag("-V,--version", options.version,
           "print the version; with --verbose also those of the schema and of the libraries");
  std::string commands = "Subcommands, each with --help and --json:\n";
  for (const Command& command : Commands()) {
    commands +=
        fmt::format("  tlparse {} {}\n      {}\n", command.name, command.usage, command.summary);
  }
  app.SetFooter(commands +
                "\nA database that will take more than 1 GB is announced on standard error before "
                "the load, with its estimated size.\nExit codes: 0 done, 1 the answer is no "
                "(check, --strict), 2 usage or unreadable "
                "input, 3 internal error.");
}

}  // namespace tlparse

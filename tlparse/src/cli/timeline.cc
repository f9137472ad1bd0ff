// tlparse timeline <db> -o FILE: a file for Perfetto.
#include "report/timeline/timeline.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "base/gzip_body.h"
#include "base/human_bytes.h"
#include "base/remove_on_signal.h"
#include "cli/answer.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/rank_output.h"
#include "cli/shares.h"
#include "cli/steps.h"
#include "cli/terminal.h"
#include "facts/job/participants.h"

namespace tlparse {
namespace {

// A new file, which has its name when it is whole.
class TimelineFile {
 public:
  static Result<std::unique_ptr<TimelineFile>> Create(const std::string& path) {
    if (access(path.c_str(), F_OK) == 0)
      return Fail(ErrorCode::kRefused, fmt::format("'{}' exists; give another name", path));
    std::unique_ptr<TimelineFile> file(new TimelineFile(path));
    file->file_ =
        FileDescriptor(open(file->draft_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file->file_.is_open()) return file->Error();
    return file;
  }
  ~TimelineFile() {
    if (!is_whole_ && file_.is_open()) unlink(draft_.c_str());
  }

  Result<void> Write(std::string_view piece) {
    if (!gzip_) return WriteBytes(piece);
    gzip_->Append(piece);
    return WriteBytes(gzip_->TakePart());
  }

  Result<std::int64_t> Close() {
    if (gzip_) RETURN_IF_ERROR(WriteBytes(gzip_->Take()));
    if (rename(draft_.c_str(), path_.c_str()) != 0) return Error();
    is_whole_ = true;
    return bytes_;
  }

 private:
  explicit TimelineFile(const std::string& path)
      : path_(path), draft_(path + ".part"), remove_(draft_) {
    if (path.ends_with(".gz")) gzip_.emplace();
  }

  tl::unexpected<tlparse::Error> Error() const {
    return Fail(ErrorCode::kIo, fmt::format("'{}': {}", path_, std::strerror(errno)));
  }

  Result<void> WriteBytes(std::string_view bytes) {
    bytes_ += static_cast<std::int64_t>(bytes.size());
    while (!bytes.empty()) {
      const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Error();
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  }

  std::string path_, draft_;
  RemoveOnSignal remove_;
  FileDescriptor file_;
  std::optional<GzipBody> gzip_;
  std::int64_t bytes_ = 0;
  bool is_whole_ = false;
};

Result<void> WriteTimelineFile(Database& database, const TimelineOptions& options,
                               const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TimelineFile> file, TimelineFile::Create(path));
  ASSIGN_OR_RETURN(
      const TimelineSummary summary,
      WriteTimeline(database, options, [&](std::string_view piece) { return file->Write(piece); }));
  ASSIGN_OR_RETURN(const std::int64_t bytes, file->Close());
  PrintLine(
      fmt::format("{}: {}, {}; open it in ui.perfetto.dev", path,
                  Count(static_cast<std::size_t>(summary.events), "event"), HumanBytes(bytes)),
      0);
  if (summary.left_out > 0)
    PrintLine(fmt::format("{} left out: their times are no possible ones",
                          Count(static_cast<std::size_t>(summary.left_out), "event")),
              0);
  return {};
}

}  // namespace

int RunTimeline(std::span<const std::string> arguments) {
  Arguments app(
      "Write a run, or a part of it, as a file in the trace-event format, for Perfetto "
      "(ui.perfetto.dev) and chrome://tracing: what the compiler timed, graph calls, profiles with "
      "the flows from launches to kernels, collectives and memory, on one clock. What overlaps on "
      "a "
      "thread is on further threads of that name.",
      "timeline");
  TimelineOptions options;
  std::string path, output;
  std::optional<std::string> run, compile, steps;
  app.Add("database", path, "a database, or an output directory of tlparse").Required();
  app.Add("-o,--output", output, "the file to write; one that ends in .gz is compressed")
      .Required();
  app.Add("--run", run, "the run of this name (default: the latest)");
  app.Add("--launch", options.launch, "only this launch (1 is the first)").Positive();
  app.Add("--rank", options.rank, "only this rank");
  app.Add("--compile", compile,
          "only this compile, like 1/0: its events, calls, kernels and collectives");
  app.Add("--steps", steps, "only what ran during these steps of the profiler, like 3-5");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  if (steps && !ParseSteps(*steps, options.first_step, options.last_step)) return kExitUsage;
  options.compile = compile.value_or("");
  return AnswerFrom(path, [&](Database& database) -> Result<void> {
    ASSIGN_OR_RETURN(options.run_id, FindRun(database, run.value_or("")));
    return WriteTimelineFile(database, options, output);
  });
}

}  // namespace tlparse

// tlparse bundle <dir> -o report.zip: what a bug report to PyTorch needs, in one file.
#include "redact/bundle.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/plural.h"
#include "cli/answer_input.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/sharing.h"
#include "cli/terminal.h"
#include "cli/version_text.h"
#include "findings/findings.h"
#include "inputs/find_inputs.h"
#include "queries/cli/bundle.h"
#include "redact/redact_files.h"
#include "report/finding_text.h"

namespace tlparse {
namespace {

constexpr std::int64_t kMegabyte = 1'000'000;

// A directory that is removed with what is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "tlparse-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryFolder() {
    std::error_code none;
    if (!path_.empty()) std::filesystem::remove_all(path_, none);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string Manifest(const std::vector<BundledEntry>& entries) {
  std::string text = "# What is in this file\n\n";
  for (const BundledEntry& entry : entries)
    text += fmt::format("* `{}`, {}{}\n", entry.name, HumanBytes(entry.size_bytes),
                        entry.is_left_out ? ": left out, too large" : "");
  return text;
}

Result<std::string> Versions(Database& database) {
  std::string text = VersionText(true) + "\n";
  FOR_EACH_ROW(const VersionOfTorch& row, Query<VersionOfTorch>(database)) {
    text += fmt::format("PyTorch {}\n", row.torch_version);
  }
  utsname system{};
  if (uname(&system) == 0)
    text += fmt::format("bundled on {} {} {}\n", system.sysname, system.release, system.machine);
  return text;
}

// The findings and versions first, then the files: logs before the larger profiles.
Result<std::vector<BundleEntry>> EntriesOf(const std::string& directory) {
  ASSIGN_OR_RETURN(AnswerInput input, OpenAnswerInputs({directory}));
  ASSIGN_OR_RETURN(const std::vector<Finding> findings, FindFindings(input.database, {}));
  const std::string heading = Count(findings.size(), "finding");
  std::vector<BundleEntry> entries;
  entries.push_back({"findings.md", {}, FindingsMarkdown(findings, heading)});
  ASSIGN_OR_RETURN(std::string versions, Versions(input.database));
  entries.push_back({"versions.txt", {}, std::move(versions)});
  ASSIGN_OR_RETURN(const FoundInputs found, FindInputs(directory));
  const auto add = [&](const std::string& path) {
    entries.push_back(
        {"files/" + std::filesystem::path(path).lexically_relative(directory).string(), path, {}});
  };
  for (const RuntimeInput& one : found.runtime)
    if (one.kind == InputKind::kRunFile) add(one.path);
  for (const FoundLog& log : found.logs) add(log.path);
  for (const RuntimeInput& one : found.runtime)
    if (one.kind != InputKind::kRunFile && one.kind != InputKind::kProfile) add(one.path);
  for (const RuntimeInput& one : found.runtime)
    if (one.kind == InputKind::kProfile) add(one.path);
  return entries;
}

Result<void> Bundle(const std::string& directory, const std::string& output,
                    std::int64_t most_bytes) {
  ASSIGN_OR_RETURN(const std::vector<BundleEntry> entries, EntriesOf(directory));
  ASSIGN_OR_RETURN(const std::vector<BundledEntry> bundled,
                   WriteBundle(entries, output, most_bytes, &Manifest));
  std::error_code none;
  std::printf(
      "%s: %s\n", Printable(output).c_str(),
      HumanBytes(static_cast<std::int64_t>(std::filesystem::file_size(output, none))).c_str());
  for (const BundledEntry& entry : bundled)
    if (entry.is_left_out)
      std::printf("left out: %s (%s in the zip file); --max-mb allows more\n",
                  Printable(entry.name).c_str(), HumanBytes(entry.packed_bytes).c_str());
  return {};
}

Result<void> RedactAndBundle(const std::string& directory, const std::string& key, bool hides_sizes,
                             const std::string& output, std::int64_t most_bytes) {
  const TemporaryFolder folder;
  if (folder.path().empty())
    return Fail(ErrorCode::kIo, "cannot make a temporary directory; set TMPDIR");
  Pseudonyms pseudonyms;
  if (!key.empty()) RETURN_IF_ERROR(pseudonyms.Load(key));
  const std::string copies = folder.path() + "/copies";
  ASSIGN_OR_RETURN(const RedactionReport report,
                   RedactFiles({directory}, copies, pseudonyms, hides_sizes));
  if (!key.empty()) RETURN_IF_ERROR(pseudonyms.Save(key));
  for (const RedactedFile& file : report.files)
    if (file.written.empty())
      std::printf("left out: %s: %s\n", Printable(file.path).c_str(),
                  Printable(file.reason).c_str());
  return Bundle(copies, output, most_bytes);
}

}  // namespace

int RunBundle(std::span<const std::string> arguments) {
  Arguments app(
      "Write a zip file for a bug report: the findings as Markdown, the versions, the logs, "
      "recorder "
      "dumps and profiles of a directory. What does not fit into --max-mb is left out, profiles "
      "first, and said.",
      "bundle");
  std::string directory, output, key;
  bool is_redacted = false, no_shapes = false;
  int max_mb = 25;
  constexpr int kMostMb = 4000;
  app.Add("directory", directory,
          "what the job wrote: TORCH_TRACE's directory, or that of tlparse run")
      .Required();
  app.Add("-o,--output", output, "the zip file to write").Required();
  app.Flag("--redact", is_redacted, "redact the files first (see 'tlparse redact')");
  app.Add("--key", key, "with --redact: file of the names and their pseudonyms");
  app.Flag("--no-shapes", no_shapes, "with --redact: hide sizes of tensors as well");
  app.Add("--max-mb", max_mb, "size of the zip file at most, in MB; forges take 25")
      .Between(1, kMostMb)
      .ShowDefault();
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  if ((!key.empty() || no_shapes) && !is_redacted)
    return ReportError({ErrorCode::kUsage, fmt::format("bundle: {} needs --redact",
                                                       no_shapes ? "--no-shapes" : "--key")});
  if (!std::filesystem::is_directory(directory))
    return ReportError({ErrorCode::kNotFound, fmt::format("'{}' is no directory", directory)});
  const Result<void> done =
      is_redacted ? RedactAndBundle(directory, key, no_shapes, output, max_mb * kMegabyte)
                  : Bundle(directory, output, max_mb * kMegabyte);
  return done ? kExitDone : ReportError(done.error());
}

}  // namespace tlparse

#include "redact/redact_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>

#include "inputs/common/pickle_reader.h"
#include "inputs/common/plain_json.h"
#include "inputs/find_inputs.h"
#include "redact/file_pieces.h"
#include "redact/log_file.h"
#include "redact/snapshot_pickle.h"
#include "redact/text_redactor.h"

namespace tlparse {
namespace {

namespace fs = std::filesystem;

struct InputFile {
  std::string path;
  std::string name;  // below the output directory, not redacted yet
  InputKind kind = InputKind::kLog;
};

bool IsRedactable(InputKind kind) {
  return kind == InputKind::kLog || kind == InputKind::kProfile ||
         kind == InputKind::kRecorderDump || kind == InputKind::kRunFile ||
         kind == InputKind::kMemorySnapshot || kind == InputKind::kTorchLogs ||
         kind == InputKind::kNcclRas || kind == InputKind::kDebugServer;
}

Result<void> FindIn(const std::string& input, bool hides_sizes, std::vector<InputFile>& files,
                    RedactionReport& report) {
  ASSIGN_OR_RETURN(const FoundInputs found, FindInputs(input));
  const auto name_of = [&](const std::string& path) {
    std::error_code error;
    return fs::is_directory(input, error) ? fs::path(path).lexically_relative(input).string()
                                          : fs::path(path).filename().string();
  };
  for (const FoundLog& log : found.logs) {
    // A named file that is nothing else counts as a log: it must look like one.
    const Result<InputKind> kind = RecognizeFile(log.path);
    if (IsTraceFileName(log.path) || (kind && *kind == InputKind::kLog))
      files.push_back({log.path, name_of(log.path), InputKind::kLog});
    else
      report.files.push_back({.path = log.path, .reason = "it is no structured trace"});
  }
  for (const RuntimeInput& one : found.runtime) {
    if (hides_sizes && one.kind == InputKind::kMemorySnapshot)
      report.files.push_back({.path = one.path,
                              .reason = "a snapshot of the allocator is made of sizes: --no-shapes "
                                        "leaves nothing of it"});
    else if (IsRedactable(one.kind))
      files.push_back({one.path, name_of(one.path), one.kind});
    else
      report.files.push_back(
          {.path = one.path,
           .reason = fmt::format(
               "it is {}: only logs, profiles, recorder dumps, snapshots of the allocator, output "
               "of programs, reports of NCCL and run.json are redacted",
               Describe(one.kind))});
  }
  for (const SkippedFile& one : found.skipped)
    report.files.push_back({.path = one.path, .reason = one.reason});
  return {};
}

// A pickle as JSON, JSON as JSON without what its reader does not take.
Result<std::string> DumpAsJson(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, redact::WholeFile(path));
  const PlainDocument document = LooksLikePickle(bytes) ? ReadPickle(bytes) : ReadPlainJson(bytes);
  std::string json;
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  if (!document.tree.root().AppendJson(json, kMostBytes))
    return Fail(ErrorCode::kDamagedInput, "the dump is nested too deep or too large");
  return json;
}

// The directories of an input may have the names of people.
std::string NameOfOutput(std::string name, bool is_pickle, TextRedactor& redactor) {
  for (const std::string_view ending : {".gz", ".zst", ".pickle", ".pkl"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  std::string out;
  for (const fs::path& part : fs::path(name)) {
    if (!out.empty()) out += '/';
    out += redactor.Redact(part.string());
  }
  if (is_pickle) out += ".pickle";
  return out;
}

memory::StreamSource SourceOf(InputStream& stream) {
  return memory::StreamSource(
      [&](char* buffer, std::size_t capacity) { return stream.Read(buffer, capacity); });
}

bool IsPickledSnapshot(const InputFile& input, memory::StreamSource& source) {
  return input.kind == InputKind::kMemorySnapshot && LooksLikePickle(source.Ahead(3));
}

bool IsText(const InputFile& input, memory::StreamSource& source) {
  return input.kind == InputKind::kTorchLogs || input.kind == InputKind::kDebugServer ||
         (input.kind == InputKind::kNcclRas && !source.Ahead(1).starts_with('{'));
}

Result<void> HarvestOne(const InputFile& input, TextRedactor& redactor) {
  if (input.kind == InputKind::kRecorderDump) {
    ASSIGN_OR_RETURN(const std::string json, DumpAsJson(input.path));
    redactor.Harvest(json, {});
    return {};
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<InputStream> stream, OpenInput(input.path));
  if (input.kind == InputKind::kLog) return redact::HarvestLog(*stream, redactor);
  memory::StreamSource source = SourceOf(*stream);
  if (IsText(input, source)) return redact::HarvestText(source, redactor);
  return IsPickledSnapshot(input, source) ? redact::HarvestSnapshot(source, redactor)
                                          : redact::HarvestJson(source, redactor);
}

// Calls `write` with a new file at `path`, which goes if that fails.
template <typename Write>
Result<void> WriteFile(const fs::path& path, Write write) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const Result<void> written = write(out);
  out.close();
  if (!written) fs::remove(path, error);
  if (written && !out)
    return Fail(ErrorCode::kIo, fmt::format("'{}' cannot be written", path.string()));
  return written;
}

Result<void> WriteCopy(const InputFile& input, const std::string& directory, TextRedactor& redactor,
                       RedactedFile& file) {
  const auto begin = [&](bool is_pickle) {
    file.written = NameOfOutput(input.name, is_pickle, redactor);
    return fs::path(directory) / file.written;
  };
  if (input.kind == InputKind::kRecorderDump) {
    ASSIGN_OR_RETURN(const std::string json, DumpAsJson(input.path));
    return WriteFile(begin(false), [&](std::ostream& out) -> Result<void> {
      out << redactor.RedactJson(json);
      return {};
    });
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<InputStream> stream, OpenInput(input.path));
  if (input.kind == InputKind::kLog)
    return WriteFile(begin(false), [&](std::ostream& out) {
      return redact::RedactLog(*stream, redactor, file, out);
    });
  memory::StreamSource source = SourceOf(*stream);
  const bool is_pickle = IsPickledSnapshot(input, source);
  const bool is_text = IsText(input, source);
  return WriteFile(begin(is_pickle), [&](std::ostream& out) {
    if (is_text) return redact::RedactTextFile(source, redactor, out);
    return is_pickle ? redact::RedactSnapshot(source, redactor, out)
                     : redact::RedactJsonFile(source, redactor, out);
  });
}

RedactedFile RedactOne(const InputFile& input, const std::string& directory,
                       TextRedactor& redactor) {
  RedactedFile file{.path = input.path};
  const std::int64_t before = redactor.replaced();
  if (const Result<void> written = WriteCopy(input, directory, redactor, file); !written)
    return {.path = input.path, .reason = written.error().message};
  file.replaced = redactor.replaced() - before;
  return file;
}

}  // namespace

Result<RedactionReport> RedactFiles(const std::vector<std::string>& inputs,
                                    const std::string& directory, Pseudonyms& pseudonyms,
                                    bool hides_sizes) {
  std::error_code error;
  if (fs::exists(directory, error) && !fs::is_empty(directory, error))
    return Fail(ErrorCode::kRefused,
                fmt::format("the directory '{}' is not empty; give a new one", directory));
  RedactionReport report;
  std::vector<InputFile> files;
  for (const std::string& input : inputs)
    RETURN_IF_ERROR(FindIn(input, hides_sizes, files, report));
  TextRedactor redactor(pseudonyms, hides_sizes);
  for (const InputFile& input : files)
    (void)HarvestOne(input, redactor);  // what cannot be read is said below
  fs::create_directories(directory, error);
  for (const InputFile& input : files)
    report.files.push_back(RedactOne(input, directory, redactor));
  report.names = pseudonyms.size();
  return report;
}

}  // namespace tlparse

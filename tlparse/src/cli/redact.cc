// tlparse redact <inputs> -o DIR: logs that may be shown to others; tlparse unredact: what was said about them, with the names.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <optional>

#include "base/fields.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/schemas.h"
#include "cli/sharing.h"
#include "cli/terminal.h"
#include "redact/log_file.h"
#include "redact/redact_files.h"

namespace tlparse {

template <>
struct FieldsOf<RedactedFile> {
  using Of = RedactedFile;
  static constexpr FieldList list{
      Field{"path", &Of::path, "of the input"},
      Field{"written", OrNull{&Of::written},
            "the copy, below the output directory; null: the file was left out"},
      Field{"reason", OrNull{&Of::reason}, "why it was left out"},
      Field{"replaced", &Of::replaced, "occurrences of names"},
      Field{"kept_records", &Of::kept_records, "of a log"},
      Field{"dropped_records", &Of::dropped_records, "of a log: their envelope cannot be parsed"},
      Field{"dropped_lines", &Of::dropped_lines, "of a log: they belong to no record"},
  };
};

template <>
struct FieldsOf<RedactionReport> {
  using Of = RedactionReport;
  static constexpr FieldList list{
      Field{"names", &Of::names, "names that have a pseudonym, those of an earlier key included"},
      Field{"files", &Of::files},
  };
};

std::string RedactSchema() { return SchemaOf<RedactionReport>("tlparse redact --json"); }

namespace {

void PrintRedaction(const RedactionReport& report, const std::string& directory) {
  std::int64_t written = 0, replaced = 0, kept = 0, records = 0, lines = 0;
  for (const RedactedFile& file : report.files) {
    replaced += file.replaced;
    kept += file.kept_records;
    records += file.dropped_records;
    lines += file.dropped_lines;
    if (!file.written.empty())
      ++written;
    else
      std::printf("left out: %s: %s\n", Printable(file.path).c_str(),
                  Printable(file.reason).c_str());
  }
  std::printf(
      "%lld files in %s; replaced: %lld occurrences of %zu names; kept: %lld records; dropped: "
      "%lld records and %lld lines that cannot be parsed\n",
      static_cast<long long>(written), Printable(directory).c_str(),
      static_cast<long long>(replaced), report.names, static_cast<long long>(kept),
      static_cast<long long>(records), static_cast<long long>(lines));
}

}  // namespace

int RunRedact(std::span<const std::string> arguments) {
  Arguments app(
      "Write copies of logs, profiles, recorder dumps, snapshots of the allocator and run.json "
      "that "
      "may be shown to others: names of paths, functions, classes, variables and modules, words of "
      "strings, comments and code, "
      "hosts and groups that PyTorch itself does not use become pseudonyms, the same in all files. "
      "Ops, shapes, dtypes, configuration, ids, times stay, so every answer stays, pseudonyms "
      "aside. "
      "A name that PyTorch has too, like forward or batch, stays. What cannot be parsed is "
      "dropped. "
      "Read the copies before you give them away.",
      "redact");
  std::vector<std::string> inputs;
  std::string directory, key;
  bool json = false, no_shapes = false;
  constexpr int kMost = 1000;
  app.Add("inputs", inputs,
          "logs, profiles, recorder dumps, snapshots of the allocator, directories of them")
      .Required()
      .Times(1, kMost);
  app.Add("-o,--output", directory, "a new directory for the copies").Required();
  app.Add("--key", key,
          "file of the names and their pseudonyms, for unredact: keep it to yourself. One that "
          "exists is used and added to");
  app.Flag("--no-shapes", no_shapes,
           "hide sizes of tensors as well: whole numbers from 10 on become others, the same in all "
           "files, where they can be sizes, strides or numbers of bytes. What answers compute of "
           "sizes is then wrong");
  app.Flag("--json", json,
           "what was replaced, kept and dropped (schemas/json/answers/redact.schema.json)");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Pseudonyms pseudonyms;
  if (!key.empty())
    if (const Result<void> loaded = pseudonyms.Load(key); !loaded)
      return ReportError(loaded.error());
  const Result<RedactionReport> report = RedactFiles(inputs, directory, pseudonyms, no_shapes);
  if (!report) return ReportError(report.error());
  if (!key.empty())
    if (const Result<void> saved = pseudonyms.Save(key); !saved) return ReportError(saved.error());
  if (json)
    PrintJson(ToJson(*report));
  else
    PrintRedaction(*report, directory);
  for (const RedactedFile& file : report->files)
    if (!file.written.empty()) return kExitDone;
  return ReportError({ErrorCode::kNotFound, "nothing that can be redacted in the inputs"});
}

int RunUnredact(std::span<const std::string> arguments) {
  Arguments app(
      "Print a text about redacted files, like findings, with the names instead of the pseudonyms.",
      "unredact");
  std::string key;
  std::string path = "-";
  app.Add("--key", key, "the file that redact --key wrote").Required();
  app.Add("file", path, "the text (default: standard input)");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Pseudonyms pseudonyms;
  if (const Result<void> loaded = pseudonyms.Load(key); !loaded) return ReportError(loaded.error());
  if (pseudonyms.size() == 0)
    return ReportError({ErrorCode::kNotFound, fmt::format("the key '{}' has no names", key)});
  const Result<std::string> text = redact::WholeFile(path);
  if (!text) return ReportError(text.error());
  const std::string translated = pseudonyms.Translate(*text);
  std::fwrite(translated.data(), 1, translated.size(), stdout);
  return kExitDone;
}

}  // namespace tlparse

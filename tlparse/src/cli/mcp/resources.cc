#include "cli/mcp/resources.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/embedded_texts.h"
#include "cli/playbooks.h"
#include "queries/cli/mcp/resources.h"

namespace tlparse {
namespace {

constexpr std::string_view kSchemaUri = "tlparse://schema", kFindingsUri = "tlparse://findings",
                           kPlaybookUri = "tlparse://playbook/",
                           kDocumentUri = "tlparse://document/";

// The documents are the embedded Markdown files outside of folders: docs, and the README of schemas.
constexpr std::string_view kMarkdown = ".md", kTables = "README.md", kTablesName = "tables";

bool IsDocument(const EmbeddedFile& file) {
  return file.name.ends_with(kMarkdown) && file.name.find('/') == std::string_view::npos;
}

std::string_view NameOfDocument(const EmbeddedFile& file) {
  return file.name == kTables ? kTablesName
                              : file.name.substr(0, file.name.size() - kMarkdown.size());
}

// "# The heading"
std::string_view HeadingOf(const EmbeddedFile& file) {
  const std::string_view line = file.text.substr(0, file.text.find('\n'));
  return line.substr(std::min(line.size(), line.find_first_not_of("# ")));
}

void WriteResource(JsonWriter& json, std::string_view uri, std::string_view name,
                   std::string_view description) {
  json.BeginObject().Key("uri").String(uri).Key("name").String(name);
  json.Key("description").String(description).Key("mimeType").String(MimeTypeOf(uri)).EndObject();
}

// "name: text", without the line breaks of the comment.
std::string DescribedLine(std::string_view name, std::string_view text) {
  std::string line(name);
  if (!text.empty()) line += ": ";
  for (const char c : text) line += c == '\n' ? ' ' : c;
  return line + '\n';
}

Result<std::string> SchemaText(Database& database, const std::string& table) {
  std::string text;
  if (table.empty()) {
    FOR_EACH_ROW(const DescribedTable& row, Query<DescribedTable>(database)) {
      text += DescribedLine(row.name, row.text);
    }
    return text;
  }
  FOR_EACH_ROW(const DescribedColumn& row,
               Query<DescribedColumn>(database, {.name = std::string_view(table)})) {
    text += DescribedLine(std::string(row.name) + ' ' + std::string(row.type), row.text);
  }
  if (text.empty()) return Fail(ErrorCode::kNotFound, "there is no table '" + table + "'");
  return text;
}

}  // namespace

void WriteResources(JsonWriter& json) {
  json.BeginObject().Key("resources").BeginArray();
  WriteResource(json, kSchemaUri, "schema", "tables and views of the database, for the tool sql");
  WriteResource(json, kFindingsUri, "findings", "all findings of the first database");
  for (std::size_t i = 0; i < kFindingKindCount; ++i) {
    const auto kind = static_cast<FindingKind>(i);
    WriteResource(json, std::string(kPlaybookUri) + std::string(Name(kind)), Name(kind),
                  MeaningOf(kind));
  }
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    if (IsDocument(file))
      WriteResource(json, std::string(kDocumentUri) + std::string(NameOfDocument(file)),
                    NameOfDocument(file), HeadingOf(file));
  }
  json.EndArray().EndObject();
}

void WriteResourceTemplates(JsonWriter& json) {
  json.BeginObject().Key("resourceTemplates").BeginArray().BeginObject();
  json.Key("uriTemplate").String("tlparse://schema/{table}").Key("name").String("columns");
  json.Key("description").String("the columns of a table or view");
  json.Key("mimeType").String("text/plain").EndObject().EndArray().EndObject();
}

void WritePrompts(JsonWriter& json) {
  json.BeginObject().Key("prompts").BeginArray();
  for (std::size_t i = 0; i < kFindingKindCount; ++i) {
    const auto kind = static_cast<FindingKind>(i);
    json.BeginObject().Key("name").String(Name(kind)).Key("description").String(MeaningOf(kind));
    json.EndObject();
  }
  json.EndArray().EndObject();
}

std::string_view MimeTypeOf(std::string_view uri) {
  return uri == kFindingsUri                                              ? "application/json"
         : uri.starts_with(kPlaybookUri) || uri.starts_with(kDocumentUri) ? "text/markdown"
                                                                          : "text/plain";
}

std::optional<std::string> EmbeddedResource(std::string_view uri) {
  if (uri.starts_with(kDocumentUri)) {
    uri.remove_prefix(kDocumentUri.size());
    for (const EmbeddedFile& file : EmbeddedFiles())
      if (IsDocument(file) && NameOfDocument(file) == uri) return std::string(file.text);
    return std::nullopt;
  }
  if (!uri.starts_with(kPlaybookUri)) return std::nullopt;
  const std::optional<FindingKind> kind = FindingKindOf(uri.substr(kPlaybookUri.size()));
  if (!kind) return std::nullopt;
  return std::string(PlaybookOf(*kind));
}

int PrintResource(const std::string& path, const std::string& uri) {
  if (uri == kFindingsUri) {
    const std::string arguments[] = {"--json", path};
    return RunFindings(arguments);
  }
  if (uri != kSchemaUri && !uri.starts_with(std::string(kSchemaUri) + '/'))
    return ReportError({ErrorCode::kNotFound, "there is no resource '" + uri + "'"});
  Result<Database> database = OpenAnswerDatabase(path);
  if (!database) return ReportError(database.error());
  const Result<std::string> text =
      SchemaText(*database, uri == kSchemaUri ? std::string() : uri.substr(kSchemaUri.size() + 1));
  if (!text) return ReportError(text.error());
  std::fputs(text->c_str(), stdout);
  return kExitDone;
}

}  // namespace tlparse

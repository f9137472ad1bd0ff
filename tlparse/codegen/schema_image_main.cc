// Makes the image of a new database, compressed, as C++ source, and with it the script of the
// indexes. Run at build time: to parse the scripts takes ten times as long as to unpack the image.
// usage: tlparse_schema_image OUT.cc INDEXES.sql SCRIPT.sql …
//
// The image holds the tables and views of the scripts in this order, the rows of import_code, and
// the comments of the public tables and views as rows of schema_doc: a comment directly above
// CREATE describes the table or view; one beside a column, with the comment lines below it, the
// column; one on a line of its own the column that follows, if that has none. A column of a view is
// described as the column that it shows.
#include <sqlite3.h>
#include <zstd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "log/import_code.h"
#include "store/schema.h"

namespace {

// By table or view, then by column; "": the table or view itself.
using Docs = std::map<std::string, std::map<std::string, std::string>>;

std::string Trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

void Append(std::string& text, std::string_view more) {
  if (!text.empty() && !more.empty()) text += ' ';
  text += more;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) throw std::runtime_error(path + ": cannot be read");
  return text;
}

// The comments of one script.
class CommentReader {
 public:
  explicit CommentReader(Docs& docs) : docs_(docs) {}

  void Read(const std::string& script) {
    std::size_t begin = 0;
    while (begin < script.size()) {
      const std::size_t end = std::min(script.find('\n', begin), script.size());
      Line(script.substr(begin, end - begin));
      begin = end + 1;
    }
  }

 private:
  void Line(const std::string& line) {
    static const std::regex kCreate("CREATE (TABLE|VIEW) (\\w+).*");
    std::smatch match;
    if (std::regex_match(line, match, kCreate)) {
      if (!above_.empty()) docs_[match[2]][""] = above_;
      above_.clear();
      table_ = match[1] == "TABLE" ? match[2].str() : "";
      column_.clear();
    } else if (table_.empty()) {
      if (line.starts_with("--")) {
        Append(above_, Trim(std::string_view(line).substr(2)));
      } else {
        above_.clear();
      }
    } else if (line.starts_with(")")) {
      table_.clear();
      above_.clear();
    } else {
      ColumnLine(line);
    }
  }

  void ColumnLine(const std::string& line) {
    static const std::regex kColumn("\\s+(\\w+)\\s+(INTEGER|TEXT|REAL|BLOB|ANY)\\b.*");
    const std::size_t dashes = line.find("--");
    const std::string comment =
        dashes == line.npos ? "" : Trim(std::string_view(line).substr(dashes + 2));
    std::smatch match;
    if (std::regex_match(line, match, kColumn)) {
      column_ = comment.empty() ? "" : match[1].str();
      std::string text = std::exchange(above_, {});
      if (!comment.empty()) text = comment;
      if (!text.empty()) docs_[table_][match[1]] = text;
    } else if (Trim(line).starts_with("--")) {
      Append(column_.empty() ? above_ : docs_[table_][column_], comment);
    } else {
      column_.clear();
    }
  }

  Docs& docs_;
  std::string table_;   // that the lines are in; "": none
  std::string column_;  // whose comment may continue
  std::string above_;   // comment lines that precede what they describe
};

struct Column {
  std::string name;
  std::string origin_table, origin_column;  // "": computed
};

class Schema {
 public:
  Schema() {
    if (sqlite3_open(":memory:", &database_) != SQLITE_OK)
      throw std::runtime_error("cannot open a database in memory");
  }
  ~Schema() { sqlite3_close(database_); }
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  void Run(const std::string& script) {
    if (sqlite3_exec(database_, script.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
      throw std::runtime_error(sqlite3_errmsg(database_));
  }

  // The file that a database of this content is.
  std::string Image() {
    Run("VACUUM");
    sqlite3_int64 size_bytes = 0;
    unsigned char* const bytes = sqlite3_serialize(database_, "main", &size_bytes, 0);
    if (bytes == nullptr) throw std::runtime_error("cannot write the database as bytes");
    std::string image(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size_bytes));
    sqlite3_free(bytes);
    return image;
  }

  // The first column of a query, each row's value followed by `separator` but the last.
  std::string Joined(const std::string& sql, std::string_view separator) {
    std::string text;
    sqlite3_stmt* statement = Prepare(sql);
    while (sqlite3_step(statement) == SQLITE_ROW) {
      if (!text.empty()) text += separator;
      text += reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    }
    sqlite3_finalize(statement);
    return text;
  }

  std::vector<std::string> Names(const std::string& type) {
    std::vector<std::string> names;
    sqlite3_stmt* statement = Prepare("SELECT name FROM sqlite_schema WHERE type = '" + type +
                                      "' AND name NOT LIKE 'sqlite_%' ORDER BY name");
    while (sqlite3_step(statement) == SQLITE_ROW)
      names.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(statement, 0)));
    sqlite3_finalize(statement);
    return names;
  }

  std::vector<Column> Columns(const std::string& name) {
    std::vector<Column> columns;
    sqlite3_stmt* statement = Prepare("SELECT * FROM \"" + name + "\"");
    const auto text = [](const char* value) { return std::string(value == nullptr ? "" : value); };
    for (int i = 0; i < sqlite3_column_count(statement); ++i)
      columns.push_back({text(sqlite3_column_name(statement, i)),
                         text(sqlite3_column_table_name(statement, i)),
                         text(sqlite3_column_origin_name(statement, i))});
    sqlite3_finalize(statement);
    return columns;
  }

 private:
  sqlite3_stmt* Prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
      throw std::runtime_error(sql + ": " + sqlite3_errmsg(database_));
    return statement;
  }
  sqlite3* database_ = nullptr;
};

std::string Find(const Docs& docs, const std::string& name, const std::string& column) {
  const auto table = docs.find(name);
  if (table == docs.end()) return {};
  const auto text = table->second.find(column);
  return text == table->second.end() ? std::string() : text->second;
}

std::string DescribeLookup(Schema& schema, const Docs& docs, const std::string& table) {
  std::string text = Find(docs, table, "");
  Append(text,
         "One of: " + schema.Joined("SELECT name FROM \"" + table + "\" ORDER BY id", ", ") + ".");
  return text;
}

// A column that references a lookup table: what the values stand for.
void DescribeLookups(Schema& schema, Docs& docs) {
  for (const std::string& table : schema.Names("table")) {
    for (const Column& column : schema.Columns(table)) {
      const std::string lookup =
          schema.Joined("SELECT \"table\" FROM pragma_foreign_key_list('" + table +
                            "') f WHERE \"from\" = '" + column.name +
                            "' AND (SELECT group_concat(name) FROM pragma_table_info(f.\"table\")) "
                            "= 'id,name'",
                        "");
      if (lookup.empty()) continue;
      Append(docs[table][column.name], DescribeLookup(schema, docs, lookup));
    }
  }
}

// The lookup table that a view takes the names of a column from; "": none.
std::string LookupOf(const std::string& view_sql, const std::string& column) {
  const std::regex pattern("\\(SELECT name FROM (\\w+) WHERE [^()]*\\) AS " + column + "\\b");
  std::smatch match;
  return std::regex_search(view_sql, match, pattern) ? match[1].str() : "";
}

void DescribeViews(Schema& schema, Docs& docs) {
  for (const std::string& view : schema.Names("view")) {
    const std::string storage = view + "_row";
    const std::string sql =
        schema.Joined("SELECT sql FROM sqlite_schema WHERE name = '" + view + "'", "");
    if (Find(docs, view, "").empty()) {
      if (const std::string text = Find(docs, storage, ""); !text.empty()) docs[view][""] = text;
    }
    for (const Column& column : schema.Columns(view)) {
      std::string text = Find(docs, storage, column.name);
      if (const std::string lookup = LookupOf(sql, column.name); text.empty() && !lookup.empty())
        text = DescribeLookup(schema, docs, lookup);
      if (text.empty() && column.origin_table != "text_row")
        text = Find(docs, column.origin_table, column.origin_column);
      if (text.empty()) text = Find(docs, storage, column.name + "_id");
      if (!text.empty()) docs[view][column.name] = text;
    }
  }
}

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted.append(c == '\'' ? 2 : 1, c);
  return quoted + "'";
}

void AddDocs(Schema& schema, const Docs& docs) {
  for (const auto& [name, columns] : docs) {
    if (name.ends_with("_row")) continue;  // storage
    for (const auto& [column, doc] : columns) {
      schema.Run("INSERT INTO schema_doc VALUES(" + Quoted(name) + ", " + Quoted(column) + ", " +
                 Quoted(doc) + ")");
    }
  }
}

void AddImportCodes(Schema& schema) {
  for (int code = 1; code < static_cast<int>(tlparse::ImportCode::kCount); ++code) {
    const tlparse::ImportCodeInfo& info = tlparse::Info(static_cast<tlparse::ImportCode>(code));
    schema.Run("INSERT INTO import_code VALUES(" + std::to_string(code) + ", " +
               Quoted(tlparse::Name(info.severity)) + ", " + Quoted(info.name) + ", " +
               Quoted(info.advice) + ", " + (info.harm != tlparse::Harm::kNone ? "1" : "0") + ", " +
               (info.harm == tlparse::Harm::kCut ? "1" : "0") + ")");
  }
}

std::string Compressed(const std::string& bytes) {
  constexpr int kWindowBits = 16;  // what unpacking keeps in memory
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, ZSTD_maxCLevel());
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, kWindowBits);
  const std::size_t size =
      ZSTD_compress2(context, packed.data(), packed.size(), bytes.data(), bytes.size());
  ZSTD_freeCCtx(context);
  if (ZSTD_isError(size)) throw std::runtime_error(ZSTD_getErrorName(size));
  packed.resize(size);
  return packed;
}

void Write(const std::string& path, const std::string& image, const std::string& indexes) {
  std::ofstream out(path, std::ios::binary);
  out << "// Generated by tlparse_schema_image.\n#include \"store/schema.h\"\n\n"
         "namespace tlparse {\n\nSchemaImage EmbeddedSchema() {\n"
         "  static constexpr unsigned char kPacked[] = {";
  const std::string packed = Compressed(image);
  for (std::size_t i = 0; i < packed.size(); ++i)
    out << (i % 32 == 0 ? "\n      " : "") << int{static_cast<unsigned char>(packed[i])} << ',';
  out << "};\n  return {kPacked, sizeof kPacked, " << image.size() << "};\n}\n\n"
      << "const char* IndexScript() {\n  return R\"--sql--(" << indexes << ")--sql--\";\n}\n\n"
      << "}  // namespace tlparse\n";
  out.close();
  if (!out) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: tlparse_schema_image OUT.cc INDEXES.sql SCRIPT.sql ...\n");
    return 2;
  }
  try {
    Schema schema;
    schema.Run("PRAGMA page_size = " + std::to_string(tlparse::kPageBytes) +
               "; PRAGMA application_id = " + std::to_string(tlparse::kApplicationId) +
               "; PRAGMA user_version = " + std::to_string(tlparse::kSchemaVersion));
    Docs docs;
    for (int i = 3; i < argc; ++i) {
      const std::string script = ReadFile(argv[i]);
      schema.Run(script);
      CommentReader(docs).Read(script);
    }
    DescribeLookups(schema, docs);
    DescribeViews(schema, docs);
    AddDocs(schema, docs);
    AddImportCodes(schema);
    Write(argv[1], schema.Image(), ReadFile(argv[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tlparse_schema_image: %s\n", error.what());
    return 1;
  }
  return 0;
}

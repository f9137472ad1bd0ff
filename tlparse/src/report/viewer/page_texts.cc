#include "report/viewer/page_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/base64.h"
#include "base/json_writer.h"
#include "facts/job/participants.h"
#include "queries/report/viewer/page_texts.h"
#include "report/viewer/chunk.h"
#include "report/viewer/chunk_file.h"
#include "report/viewer/text_filter.h"
#include "store/any_rows.h"
#include "store/value_pieces.h"

namespace tlparse {
namespace {

// `row`: of payload_row, with the column is_binary.
void AddText(const AnyRow& row, std::string_view content, ChunkWriter& writer) {
  writer.AddNumber(row.Int("size_bytes"));
  writer.AddNumber(row.Int("is_binary"));
  writer.AddNewText(row.Text("hash"));
  writer.AddNewText(content);
}

void BeginTexts(ChunkWriter& writer) {
  writer.BeginTable("text", {"size_bytes", "is_binary"}, {"hash", "content"});
}

}  // namespace

Result<PageTexts> PageTexts::Find(Database& database, std::int64_t run_id) {
  PageTexts texts;
  ASSIGN_OR_RETURN(const std::int64_t last_id,
                   database.QueryInt("SELECT max(id) FROM payload_row"));
  texts.uses_.resize(static_cast<std::size_t>(last_id) + 1);
  FOR_EACH_ROW(const RecordWithText& row, Query<RecordWithText>(database, {.run_id = run_id})) {
    Use& use = texts.uses_[static_cast<std::size_t>(row.payload_id)];
    if (use.record_count++ == 0) {
      use.first_record_id = row.id;
      use.compile_id = row.compile_id;
      use.title_id = row.name_id ? row.name_id : row.kind_id;
    }
    if (!row.rank) continue;
    const auto at = std::lower_bound(use.ranks.begin(), use.ranks.end(), *row.rank);
    if (at == use.ranks.end() || *at != *row.rank) use.ranks.insert(at, *row.rank);
  }
  RETURN_IF_ERROR(texts.FindKinds(database));
  std::int64_t small_bytes = 0;  // of those that share chunks
  FOR_EACH_ROW(const PayloadSize& row, Query<PayloadSize>(database)) {
    if (texts.uses_[static_cast<std::size_t>(row.id)].record_count > 0 &&
        row.size_bytes < kAloneBytes)
      small_bytes += row.size_bytes;
  }
  for (std::int64_t group = small_bytes / 16; group > kChunkBytes; group /= 16)
    ++texts.prefix_digits_;
  return texts;
}

Result<void> PageTexts::FindKinds(Database& database) {
  std::unordered_map<std::int64_t, Use*> by_record;
  for (Use& use : uses_)
    if (use.record_count > 0) by_record.emplace(use.first_record_id, &use);
  FOR_EACH_ROW(const KindOfText& row, Query<KindOfText>(database)) {
    const auto found = by_record.find(row.record_id);
    if (found == by_record.end()) continue;
    Use& use = *found->second;
    use.kind = std::min(use.kind, static_cast<TextKind>(row.kind));
    if (use.direction.empty()) use.direction = row.direction;
  }
  return {};
}

// Of one group: its chunks of texts, and what is said of them.
class TextGroupWriter {
 public:
  TextGroupWriter(Database& database, const PageTexts& texts, const Directory& data)
      : database_(database),
        texts_(texts),
        file_(data),
        payloads_(AnyRows::Of(database, kPayload)) {}

  Result<void> Run(std::int64_t group) {
    const int digits = texts_.prefix_digits();
    for (std::int64_t prefix = group * 16; prefix < group * 16 + 16; ++prefix)
      RETURN_IF_ERROR(WriteTexts(fmt::format("{:0{}x}", prefix, digits)));
    return WriteSearch(group);
  }

 private:
  // A chunk of texts. Without a filter it is read in every search.
  struct Part {
    std::string name;
    std::optional<TextFilter> filter;
  };
  struct Row {
    std::size_t part = 0;
    std::int64_t size_bytes = 0;
    const PageTexts::Use* use = nullptr;
  };

  // Text columns are read where they are asked for: not the content of a large text.
  static constexpr const char* kPayload =
      "SELECT size_bytes, typeof(content) = 'blob' AS is_binary, hash, content "
      "FROM payload_row WHERE id = ?";

  // A few texts are read as fast as their filters.
  bool HasFilters() const { return texts_.prefix_digits() > 1; }

  std::size_t AddPart(std::string name) {
    parts_.push_back({std::move(name), std::nullopt});
    if (HasFilters()) parts_.back().filter.emplace();
    return parts_.size() - 1;
  }

  // The texts whose hashes begin with `prefix`: one file for all, and one for each large text.
  Result<void> WriteTexts(const std::string& prefix) {
    const std::string end = prefix + "g";  // behind every hex digit
    ChunkWriter group;
    std::optional<std::size_t> part;
    FOR_EACH_ROW(const HashWithPrefix& found,
                 Query<HashWithPrefix>(database_, {.first = prefix, .end = end})) {
      const PageTexts::Use& use = texts_.uses_[static_cast<std::size_t>(found.id)];
      if (use.record_count == 0) continue;
      if (!payloads_.has_error()) {
        payloads_.statement().Reset();
        payloads_.statement().Bind(1, found.id);
      }
      if (!payloads_.Next()) {
        if (const std::unique_ptr<Error> error = payloads_.TakeError())
          return tl::unexpected<Error>(std::move(*error));
        continue;
      }
      const AnyRow& row = payloads_.row();
      const std::int64_t size_bytes = row.Int("size_bytes");
      if (size_bytes >= PageTexts::kAloneBytes) {
        rows_.push_back({AddPart(std::string(row.Text("hash"))), size_bytes, &use});
        RETURN_IF_ERROR(WriteLargeText(found.id, row, parts_.back()));
        continue;
      }
      if (!part) {
        part = AddPart(prefix);
        BeginTexts(group);
      }
      rows_.push_back({*part, size_bytes, &use});
      const std::string_view content = row.Text("content");
      if (parts_[*part].filter) parts_[*part].filter->Add(content);
      AddText(row, content, group);
    }
    return part ? file_.Write("text/" + prefix, group.Finish()) : Result<void>();
  }

  // The chunk of one large text, whose content is never in memory as a whole.
  Result<void> WriteLargeText(std::int64_t payload_id, const AnyRow& row, Part& part) {
    ChunkWriter writer;
    BeginTexts(writer);
    AddText(row, "", writer);
    const std::string json = writer.Finish();
    const std::size_t content = json.find("\"\"") + 1;
    RETURN_IF_ERROR(file_.Open("text/" + part.name));
    file_.Append(std::string_view(json).substr(0, content));
    std::string escaped;
    RETURN_IF_ERROR(
        ReadInPieces(database_, "payload_row", "content", payload_id, [&](std::string_view piece) {
          if (part.filter) part.filter->Add(piece);
          escaped.clear();
          AppendJsonString(piece, escaped);
          const std::string_view quoted = escaped;
          file_.Append(quoted.substr(1, quoted.size() - 2));
        }));
    file_.Append(std::string_view(json).substr(content));
    return file_.Close();
  }

  Result<void> WriteSearch(std::int64_t group) {
    ChunkWriter writer;
    writer.BeginTable("part", {}, {"name", "filter"});
    for (const Part& part : parts_) {
      writer.AddNewText(part.name);
      writer.AddText(part.filter ? std::optional<std::string>(Base64(part.filter->Bytes()))
                                 : std::nullopt);
    }
    // In the order of the rows of their chunks.
    writer.BeginTable("text", {"part", "record_id", "compile_id", "record_count", "size_bytes"},
                      {"kind", "title", "direction", "ranks"});
    for (const Row& row : rows_) {
      const PageTexts::Use& use = *row.use;
      writer.AddNumber(static_cast<std::int64_t>(row.part));
      writer.AddNumber(use.first_record_id);
      writer.AddNumber(use.compile_id);
      writer.AddNumber(use.record_count);
      writer.AddNumber(row.size_bytes);
      writer.AddText(kTextKindNames[static_cast<std::size_t>(use.kind)]);
      if (use.title_id) {
        RETURN_IF_ERROR(writer.AddTextOfId(database_, *use.title_id));
      } else {
        writer.AddText(std::nullopt);
      }
      writer.AddText(OptionalText(use.direction));
      writer.AddText(OptionalText(FormatRankRanges(use.ranks)));
    }
    return file_.Write(fmt::format("search/{}", group), writer.Finish());
  }

  Database& database_;
  const PageTexts& texts_;
  ChunkFile file_;
  AnyRows payloads_;
  std::vector<Part> parts_;
  std::vector<Row> rows_;
};

Result<void> PageTexts::WriteGroup(Database& database, const Directory& data,
                                   std::int64_t group) const {
  return TextGroupWriter(database, *this, data).Run(group);
}

}  // namespace tlparse

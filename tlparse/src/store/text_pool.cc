#include "store/text_pool.h"

#include <simdjson.h>

#include <cstring>

#include "base/utf8.h"
#include "rows/core.h"
#include "store/database.h"

namespace tlparse {

namespace {
constexpr std::string_view kFixedTexts[] = {
    "chromium_event",   "str",
    "describe_storage", "describe_tensor",
    "describe_source",  "expression_created",
    "create_symbol",    "create_unbacked_symbol",
    "artifact",
};
}

TextPool::TextPool(TableSet& tables) { tables.Use<TextRow>(); }

Result<void> TextPool::Load(Database& database) {
  ASSIGN_OR_RETURN(Statement texts, database.Prepare("SELECT id, text FROM text_row"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, texts.Step());
    if (!has_row) return {};
    ids_.emplace(HashBytes(texts.Text(1)), texts.Int(0));
    if (texts.Int(0) >= next_) next_ = texts.Int(0) + 1;
  }
}

void TextPool::AddFixedRows(RowBatch& rows) {
  TextId id = 1;
  for (std::string_view text : kFixedTexts) {
    rows.Add(TextRow{.id = id, .text = StaticText{text}});
    ids_.emplace(HashBytes(text), id++);
  }
}

TextId TextPool::Id(RowBatch& rows, std::string_view text) {
  if (text.empty() || text.size() > sizeof Recent::text) return Find(rows, text);
  const std::size_t mix = text.size() * 31 + static_cast<unsigned char>(text.back()) * 7 +
                          static_cast<unsigned char>(text[text.size() / 2]) * 13 +
                          static_cast<unsigned char>(text.front());
  Recent& recent = recent_[mix % recent_.size()];
  if (recent.size == text.size() && std::memcmp(recent.text, text.data(), text.size()) == 0)
    return recent.id;
  recent.id = Find(rows, text);
  recent.size = static_cast<std::uint8_t>(text.size());
  std::memcpy(recent.text, text.data(), text.size());
  return recent.id;
}

std::string TextPool::Stored(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size()) ? std::string(text) : SanitizeUtf8(text);
}

TextId TextPool::Find(RowBatch& rows, std::string_view text) {
  const auto [entry, is_new] = ids_.try_emplace(HashBytes(text), next_);
  if (!is_new) return entry->second;
  if (!simdjson::validate_utf8(text.data(), text.size())) {
    // The raw bytes' hash becomes an alias of the repaired text's id.
    const std::string safe = Stored(text);
    const TextId id = Find(rows, safe);
    ids_[HashBytes(text)] = id;
    return id;
  }
  ++next_;
  rows.Add(TextRow{.id = entry->second, .text = text});
  return entry->second;
}

}  // namespace tlparse

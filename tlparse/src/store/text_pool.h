// Strings that many rows share, stored once in table `text_row`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "store/hash128.h"
#include "store/row_batch.h"

namespace tlparse {

class Database;

using TextId = std::int64_t;

// Record keys with fixed ids, so that SQL can name them: records with ids 1 … 8 are very frequent
// and are left out of the table `compile_record_row`.
enum FixedText : TextId {
  kTextChromiumEvent = 1,
  kTextStr = 2,
  kTextDescribeStorage = 3,
  kTextDescribeTensor = 4,
  kTextDescribeSource = 5,
  kTextExpressionCreated = 6,
  kTextCreateSymbol = 7,
  kTextCreateUnbackedSymbol = 8,
  kTextArtifact = 9,
  kFirstFreeText = 33,
};

// Gives every distinct string an id. Remembers 128-bit hashes, not the strings: memory is about 40
// bytes a string. Strings that are not valid UTF-8 are stored with U+FFFD instead (and share an id
// if equal after that). A NUL inside a name is kept: SQL compares the whole name.
class TextPool {
 public:
  explicit TextPool(TableSet& tables);

  // Takes over the strings of an existing database. Call before Id.
  Result<void> Load(Database& database);
  // The rows of the fixed ids, for a new database.
  void AddFixedRows(RowBatch& rows);

  // The id of `text`; a string not seen before becomes a row of `rows`.
  TextId Id(RowBatch& rows, std::string_view text);
  // `text` as its row has it.
  static std::string Stored(std::string_view text);
  // Nothing for the empty string
  std::optional<TextId> OptionalId(RowBatch& rows, std::string_view text) {
    if (text.empty()) return std::nullopt;
    return Id(rows, text);
  }

 private:
  TextId Find(RowBatch& rows, std::string_view text);

  TextId next_ = kFirstFreeText;
  std::unordered_map<Hash128, TextId, Hash128Hasher> ids_;
  // Recently used short strings: kinds, names and paths recur in every record.
  struct Recent {
    TextId id = 0;
    std::uint8_t size = 0;
    char text[119];
  };
  std::array<Recent, 128> recent_{};
};

}  // namespace tlparse

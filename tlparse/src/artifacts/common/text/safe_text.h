// Text for a TEXT column that does not go through TextPool (which does the same).
#pragma once

#include <string_view>

#include "base/utf8.h"
#include "store/row_batch.h"

namespace tlparse {

// `text` in the batch's arena, with U+FFFD for what SQLite's TEXT cannot hold (NUL, invalid UTF-8).
inline StaticText SafeText(RowBatch& rows, std::string_view text) {
  if (IsTextSafe(text)) return {rows.arena().Copy(text)};
  return {rows.arena().Copy(SanitizeUtf8(text))};
}

}  // namespace tlparse

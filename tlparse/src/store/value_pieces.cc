#include "store/value_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

#include "store/database.h"

namespace tlparse {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;

struct BlobCloser {
  void operator()(sqlite3_blob* blob) const { sqlite3_blob_close(blob); }
};

// Where a piece may end: in front of a sequence that may continue after `bytes`.
std::size_t EndOfPiece(std::string_view bytes) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if (byte < 0x80) break;
    if (byte >= 0xC0) return bytes.size() - back;
  }
  return bytes.size();
}

}  // namespace

Result<void> ReadInPieces(Database& database, const char* table, const char* column,
                          std::int64_t id, const std::function<void(std::string_view)>& use) {
  sqlite3_blob* opened = nullptr;
  const int status =
      sqlite3_blob_open(database.handle(), "main", table, column, id, /*flags=*/0, &opened);
  const std::unique_ptr<sqlite3_blob, BlobCloser> blob(opened);
  const auto fail = [&] {
    return Fail(ErrorCode::kDatabase, fmt::format("cannot read row {} of {}: {}", id, table,
                                                  sqlite3_errmsg(database.handle())));
  };
  if (status != SQLITE_OK) return fail();
  const auto size = static_cast<std::size_t>(sqlite3_blob_bytes(blob.get()));
  std::string piece;
  std::size_t kept = 0;  // bytes at the start of `piece` that were not handed over yet
  for (std::size_t at = 0; at < size;) {
    const std::size_t count = std::min(kPieceBytes - kept, size - at);
    piece.resize(kept + count);
    if (sqlite3_blob_read(blob.get(), piece.data() + kept, static_cast<int>(count),
                          static_cast<int>(at)) != SQLITE_OK)
      return fail();
    at += count;
    const std::size_t end = at == size ? piece.size() : EndOfPiece(piece);
    use(std::string_view(piece).substr(0, end));
    piece.erase(0, end);
    kept = piece.size();
  }
  return {};
}

}  // namespace tlparse

#include "fleet/row_stream.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <optional>

namespace tlparse {

bool PullLimit::Take(std::size_t bytes) {
  taken_ += bytes;
  if (taken_ > most_bytes_) {
    why_ = "the server sends far more than was pushed";
    return false;
  }
  constexpr std::uint64_t kStep = std::uint64_t{32} << 20;
  if (taken_ >= looked_at_) {
    looked_at_ = taken_ + kStep;
    struct statvfs space {};
    if (statvfs(directory_.c_str(), &space) == 0 &&
        static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize < 4 * kStep) {
      why_ = fmt::format("no room is left in '{}'", directory_);
      return false;
    }
  }
  return true;
}

Result<std::uint64_t> StreamRows(ClickHouseClient& client, const std::string& sql, PullLimit& limit,
                                 const std::function<Result<void>(RowBinaryReader&)>& read) {
  std::string buffer;
  std::uint64_t rows = 0;
  std::size_t wanted = 0;  // bytes before it is worth another try at the row under way
  std::optional<Error> error;
  const auto parse = [&]() {
    std::size_t begin = 0;
    while (begin < buffer.size()) {
      RowBinaryReader reader(std::string_view(buffer).substr(begin));
      const std::size_t before = reader.left();
      if (Result<void> done = read(reader); !done) {
        error = std::move(done).error();
        return false;
      }
      if (reader.is_damaged()) {
        error =
            Error{ErrorCode::kRefused, "the server's rows are damaged: " +
                                           ExceptionText(std::string_view(buffer).substr(begin))};
        return false;
      }
      if (reader.is_short()) break;
      ++rows;
      begin += before - reader.left();
    }
    buffer.erase(0, begin);
    wanted = begin > 0 ? buffer.size() : 2 * buffer.size();
    return true;
  };
  const Result<void> streamed =
      client.Stream(sql + " FORMAT RowBinary", [&](std::string_view piece) {
        if (!limit.Take(piece.size())) {
          error = Error{ErrorCode::kIo, limit.why()};
          return false;
        }
        buffer += piece;
        constexpr std::size_t kEnough = 1 << 18;
        return buffer.size() < std::max(wanted, kEnough) || parse();
      });
  if (!error && streamed) parse();
  if (error) return tl::unexpected<Error>(*error);
  if (!streamed) return tl::unexpected<Error>(streamed.error());
  if (!buffer.empty())
    return Fail(ErrorCode::kRefused,
                fmt::format("the server's answer ends within a row: {}", ExceptionText(buffer)));
  return rows;
}

}  // namespace tlparse

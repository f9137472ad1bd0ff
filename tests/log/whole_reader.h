// The three steps of reading one log, in one thread.
#pragma once

#include <memory>
#include <utility>

#include "log/record_reader.h"
#include "log/window_settler.h"
#include "log/window_verifier.h"

namespace tlparse {

class WholeReader {
 public:
  template <typename... Limits>
  WholeReader(std::unique_ptr<InputStream> input, ReadShared& shared, Limits... limits)
      : reader_(std::move(input), limits...), verifier_(shared), settler_(shared) {}

  // False: the file had ended before.
  Result<bool> Next(Window& window) {
    if (!reader_.Fill(window)) return false;
    verifier_.Verify(window);
    RETURN_IF_ERROR(settler_.Settle(window));
    record_count_ += static_cast<std::int64_t>(window.records.size());
    return true;
  }
  const RecordReader& file() const { return reader_; }
  std::int64_t record_count() const { return record_count_; }
  std::int64_t line_count() const { return settler_.line_count(); }

 private:
  RecordReader reader_;
  WindowVerifier verifier_;
  WindowSettler settler_;
  std::int64_t record_count_ = 0;
};

}  // namespace tlparse

// Reads a log window by window: prefix, envelope, payload without tabs, verified by its MD5. What is
// damaged or foreign becomes an ImportFinding; nothing is dropped silently, and no input stops the
// reader.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/input.h"
#include "base/result.h"
#include "log/byte_buffer.h"
#include "log/envelope.h"
#include "log/window.h"

namespace tlparse {

// Reads one file. Used by one thread at a time.
class RecordReader {
 public:
  static constexpr std::size_t kWindowBytes = 2 << 20;
  // A record that is longer is cut; SQLite takes no value above 1,000,000,000 bytes.
  static constexpr std::size_t kMaxRecordBytes = 768 << 20;
  // What is read does not depend on `window_bytes`; tests make windows and limits small.
  explicit RecordReader(std::unique_ptr<InputStream> input, std::size_t window_bytes = kWindowBytes,
                        std::size_t max_record_bytes = kMaxRecordBytes);

  // The first step of reading: fills `window` (cleared first) with the bytes of whole records.
  // False: the file had ended before; window is empty. With the last window ends_file is true.
  // Input errors are findings.
  bool Fill(Window& window);
  // The same of an input that may still grow (OpenGrowingInput): the records that nothing written
  // later can change. With `whole`, which parses its envelope, the last one counts as such if it is
  // whole by itself: its payload has the claimed MD5, or it names none. False: no more by now. What
  // is read does not depend on where the file was cut by the calls unless is_odd().
  bool FillWhole(Window& window, EnvelopeParser* whole);
  // From now on Fill reads what is left.
  void EndGrowth() { input_->EndGrowth(); }
  // Payload lines followed a record that had been taken for whole: the file should be read anew.
  bool is_odd() const { return is_odd_; }
  // Bytes that were read and belong to no record yet.
  std::size_t held_bytes() const { return carry_.size(); }

  // Of the file so far.
  std::int64_t bytes_read() const { return bytes_read_; }
  std::string ContentHash() const;  // XXH3-128 of all bytes read, hex
  const InputStream& input() const { return *input_; }

 private:
  // How far a file that may grow is taken.
  struct Growth {
    bool may_grow = false;
    EnvelopeParser* whole = nullptr;
  };
  // Reads until the window holds a whole record; returns where the unfinished one begins. 0 of an
  // input that may grow: nothing is whole yet.
  std::size_t ReadRecords(Window& window, const Growth& growth);
  std::size_t CutOfGrowing(const Window& window, EnvelopeParser* whole) const;
  // What ReadRecords has found is the window; what is behind it is carried over.
  void Take(Window& window);
  void NoteOdd(const Window& window);

  std::unique_ptr<InputStream> input_;
  const std::size_t window_bytes_;
  const std::size_t max_record_bytes_;
  struct HashFree {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, HashFree> hash_;

  ByteBuffer carry_;                // the unfinished record of the window before
  std::int64_t window_offset_ = 0;  // of the window's first byte in the file
  std::int64_t bytes_read_ = 0;
  bool is_at_end_ = false;
  std::string input_error_;  // empty: none
  bool is_done_ = false;
  bool took_last_ = false;  // the window before ended with a record that might have gone on
  bool is_odd_ = false;
};

}  // namespace tlparse

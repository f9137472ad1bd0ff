// Reads a log window by window: prefix, envelope, payload without tabs, verified by its MD5. What is
// damaged or foreign becomes an ImportProblem; nothing is dropped silently, and no input stops the
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

  // The first step of reading: clears `window` and fills it with the bytes of whole records. False:
  // the file has ended and the window is empty. In the last window ends_file is true. Input errors
  // become problems.
  bool Fill(Window& window);
  // The same for an input that may still grow (OpenGrowingInput): returns the records that no later
  // bytes can change. With `whole`, which parses the envelope, the last record is included if it is
  // complete: its payload has the claimed MD5, or it claims none. False: nothing more yet. The
  // records do not depend on how the calls divide the file, unless is_odd().
  bool FillWhole(Window& window, EnvelopeParser* whole);
  // The file, which may grow, has another name.
  void SetPath(const std::string& path) { input_->SetPath(path); }
  // The file will not grow: from now on Fill reads the rest.
  void EndGrowth() { input_->EndGrowth(); }
  // Payload lines followed a record that was taken for complete: the file should be read again.
  bool is_odd() const { return is_odd_; }
  // Bytes that were read and belong to no record yet.
  std::size_t held_bytes() const { return carry_.size(); }

  // Of the file so far.
  std::int64_t bytes_read() const { return bytes_read_; }
  std::string ContentHash() const;  // XXH3-128 of all bytes read, hex
  const InputStream& input() const { return *input_; }

 private:
  // How much of a file that may grow is read.
  struct Growth {
    bool may_grow = false;
    EnvelopeParser* whole = nullptr;
  };
  // Reads until the window holds a whole record; returns where the unfinished one begins. 0 for an
  // input that may grow: no record is complete yet.
  std::size_t ReadRecords(Window& window, const Growth& growth);
  std::size_t CutOfGrowing(const Window& window, EnvelopeParser* whole) const;
  // Ends the window there; the bytes after it are carried over to the next one.
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
  bool took_last_ = false;  // the last record of the window before may be incomplete
  bool is_odd_ = false;
};

}  // namespace tlparse

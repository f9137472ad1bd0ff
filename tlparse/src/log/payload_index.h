// The table of known payloads: a repeated payload costs a comparison instead of an MD5 and an
// insert. Memory is bounded regardless of the number of payloads: a full hash table is
// sorted, written to an unlinked temporary file and looked up there (a Bloom filter of 10 bits an
// entry keeps most misses away from the file).
//
// Measured, each payload looked up and then inserted: 10 million take 13.5 s of CPU and 34 MB, with a table for all of them in
// memory 3.9 s and 772 MB, which is three times what a load may take. A million take 0.36 s, without the filter 2.0 s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/md5.h"
#include "base/result.h"

namespace tlparse {

// Find may be called by several threads at once, as long as no thread calls another function.
class PayloadIndex {
 public:
  struct Entry {
    Md5Digest md5;
    // Keyed hash of the bytes as in the log, with TABs (a cheap first comparison); 0 = unknown.
    std::uint64_t fingerprint;
    // The payload's row in the database.
    std::uint32_t id;
  };

  // Temporary files are made in `spill_directory`, only if needed, and vanish with the process.
  // The hash table takes 32 bytes a place, at most 3 of 4 places are taken, and it never takes more
  // than `max_table_bytes` (at least 1 kB; while it doubles, the old half exists as well).
  // Of spilled runs the Bloom filters (1.25 bytes an entry) and the first 8 bytes of every 128th
  // entry stay in memory; 4 kB of the file are read where a filter lets an entry pass.
  explicit PayloadIndex(std::string spill_directory, std::size_t max_table_bytes = 16 << 20);
  ~PayloadIndex();
  PayloadIndex(PayloadIndex&&) noexcept;
  PayloadIndex& operator=(PayloadIndex&&) noexcept;

  // Nothing if unknown.
  std::optional<Entry> Find(const Md5Digest& md5) const;

  // Requires that Find(entry.md5) returns nothing (not checked). kIo if a temporary file cannot
  // be written (disk full); the index then still holds everything inserted before.
  Result<void> Insert(const Entry& entry);

  // Entries of an existing database, ascending by md5 (memcmp order) without repetition; `next`
  // fills its argument and returns true, or returns false at the end. They are found from then on,
  // but ForEachSorted leaves them out. kIo as above; kInternal if they are not ascending.
  Result<void> AddSortedRun(std::function<bool(Entry&)> next);

  // Number of entries, those of AddSortedRun included.
  std::size_t size() const;

  // All entries that Insert added, ascending by md5 (memcmp order). Call no other function
  // afterwards.
  Result<void> ForEachSorted(const std::function<void(const Entry&)>& visit);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tlparse

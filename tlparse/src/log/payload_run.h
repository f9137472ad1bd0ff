// Sorted runs of entries, which a PayloadIndex writes to files when its table is full, each with a
// filter in memory. Internal to PayloadIndex.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "log/payload_index.h"

namespace tlparse::payload_run {

using Entry = PayloadIndex::Entry;

// A digest as two numbers in the order of memcmp.
struct Key {
  std::uint64_t high, low;

  auto operator<=>(const Key&) const = default;
};

inline Key ToKey(const Md5Digest& md5) {
  static_assert(std::endian::native == std::endian::little);
  Key key;
  std::memcpy(&key, md5.data(), sizeof(key));
  return {__builtin_bswap64(key.high), __builtin_bswap64(key.low)};
}

// An entry in the table (all zero if the place is free) and in the files.
struct PackedEntry {
  Key key;
  std::uint64_t fingerprint;
  std::uint32_t id;
  std::uint32_t is_taken;
};
static_assert(sizeof(PackedEntry) == 32);

inline PackedEntry Pack(const Entry& entry) {
  return {ToKey(entry.md5), entry.fingerprint, entry.id, 1};
}

inline Entry ToEntry(const PackedEntry& packed) {
  const std::uint64_t halves[2] = {__builtin_bswap64(packed.key.high),
                                   __builtin_bswap64(packed.key.low)};
  Entry entry{{}, packed.fingerprint, packed.id};
  std::memcpy(entry.md5.data(), halves, sizeof(halves));
  return entry;
}

// Digests come from a log and may be chosen by an attacker; the random seed keeps chosen digests
// from sharing a place.
class Hasher {
 public:
  Hasher() {
    std::random_device random;
    for (std::uint64_t& seed : seeds_) seed = std::uint64_t{random()} << 32 | random();
  }
  std::uint64_t operator()(const Key& key) const {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{key.high ^ seeds_[0]} * (key.low ^ seeds_[1]);
    const std::uint64_t mixed =
        static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    return (mixed ^ seeds_[2]) * 0x9e3779b97f4a7c15;  // the golden ratio, for the upper bits
  }

 private:
  std::uint64_t seeds_[3];
};

// Five bits in one cache line per entry; of unknown keys about 1 in 70 passes.
class BloomFilter {
 public:
  explicit BloomFilter(std::size_t entry_count) : lines_(entry_count * 10 / 512 + 1) {}

  void Add(std::uint64_t hash) {
    Line& line = lines_[LineIndex(hash)];
    for (unsigned i = 0; i < kBits; ++i) line[WordOf(hash, i)] |= BitOf(hash, i);
  }
  bool MayContain(std::uint64_t hash) const {
    const Line& line = lines_[LineIndex(hash)];
    bool may_contain = true;
    for (unsigned i = 0; i < kBits; ++i) {
      may_contain &= (line[WordOf(hash, i)] & BitOf(hash, i)) != 0;
    }
    return may_contain;
  }

 private:
  static constexpr unsigned kBits = 5;
  using Line = std::array<std::uint64_t, 8>;

  // The line by the upper bits of the hash, each bit by nine of its 45 lower ones.
  std::size_t LineIndex(std::uint64_t hash) const { return ((hash >> 32) * lines_.size()) >> 32; }
  static std::size_t WordOf(std::uint64_t hash, unsigned i) { return hash >> (9 * i) & 7; }
  static std::uint64_t BitOf(std::uint64_t hash, unsigned i) {
    return std::uint64_t{1} << (hash >> (9 * i + 3) & 63);
  }

  std::vector<Line> lines_;
};

// A file without a name, written from the start to the end.
class TemporaryFile {
 public:
  Result<void> Open(const std::string& directory);
  Result<void> Append(const PackedEntry& packed) {
    buffer_.push_back(packed);
    ++size_;
    return buffer_.size() == kBufferedEntries ? Flush() : Result<void>();
  }
  Result<void> Flush();
  // Fills `entries` with those from the one numbered `first`, which must be flushed. False if the
  // file cannot be read (LastError returns why, if called at once).
  bool Read(std::size_t first, std::span<PackedEntry> entries) const;
  Error LastError() const;
  // Number of entries.
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kBufferedEntries = 2048;

  std::string directory_;
  FileDescriptor descriptor_;
  std::size_t size_ = 0;
  std::vector<PackedEntry> buffer_;
};

// Immutable entries in a file, ascending by key, without equal ones. They are read, not mapped: pages
// of a mapping would count as memory of this process as long as they are in use.
class SortedRun {
 public:
  // `file` holds at least one entry and is flushed. `is_existing`: see PayloadIndex::AddSortedRun.
  static Result<SortedRun> Make(TemporaryFile file, const Hasher& hash, bool is_existing);

  // Sets *found and returns true if there is such a key. A block that cannot be read counts as one
  // without the key: a payload in it is then stored again, which the database refuses; nothing is
  // lost silently.
  bool Find(const Key& key, std::uint64_t hash, PackedEntry* found) const;

  std::size_t size() const { return file_.size(); }
  bool is_existing() const { return is_existing_; }
  Error ReadError() const { return file_.LastError(); }

  // The entries from the first to the last, some at a time. The run must outlive it.
  class Reader {
   public:
    explicit Reader(const SortedRun& run) : run_(&run) {}
    // nullptr after the last one, and if the file cannot be read (is_at_end() is then false). Valid
    // until the next call.
    const PackedEntry* Next() {
      if (at_ == buffer_.size() && !Fill()) return nullptr;
      ++position_;
      return &buffer_[at_++];
    }
    bool is_at_end() const { return position_ == run_->size(); }
    Error ReadError() const { return run_->ReadError(); }

   private:
    bool Fill();

    const SortedRun* run_;
    std::vector<PackedEntry> buffer_;
    std::size_t at_ = 0;
    std::size_t position_ = 0;  // of the next entry in the file
  };

 private:
  SortedRun(TemporaryFile file, bool is_existing)
      : file_(std::move(file)), is_existing_(is_existing), filter_(file_.size()) {}

  TemporaryFile file_;
  bool is_existing_;
  BloomFilter filter_;
  std::vector<std::uint64_t> block_starts_;  // the first half of each block's first key
};

}  // namespace tlparse::payload_run

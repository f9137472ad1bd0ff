#include "base/payload_index.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <queue>
#include <random>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

namespace tlparse {
namespace {

using Entry = PayloadIndex::Entry;

// A digest as two numbers in the order of memcmp.
struct Key {
  std::uint64_t high, low;

  auto operator<=>(const Key&) const = default;
};

Key ToKey(const Md5Digest& md5) {
  static_assert(std::endian::native == std::endian::little);
  Key key;
  std::memcpy(&key, md5.data(), sizeof(key));
  return {__builtin_bswap64(key.high), __builtin_bswap64(key.low)};
}

// An entry in the table (all zero if the slot is free) and in the files.
struct Slot {
  Key key;
  std::uint64_t fingerprint;
  std::uint32_t id;
  std::uint32_t is_taken;
};
static_assert(sizeof(Slot) == 32);

Slot ToSlot(const Entry& entry) { return {ToKey(entry.md5), entry.fingerprint, entry.id, 1}; }

Entry ToEntry(const Slot& slot) {
  const std::uint64_t halves[2] = {__builtin_bswap64(slot.key.high),
                                   __builtin_bswap64(slot.key.low)};
  Entry entry{{}, slot.fingerprint, slot.id};
  std::memcpy(entry.md5.data(), halves, sizeof(halves));
  return entry;
}

// Digests come from a log, so they may be chosen: without the seed nobody can choose them so that
// they share a slot.
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

tl::unexpected<Error> FileError(const std::string& directory, int error) {
  return Fail(ErrorCode::kIo,
              fmt::format("{}: cannot hold a temporary file of the payload table: {}", directory,
                          std::generic_category().message(error)));
}

// A file without a name, written from the start to the end.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  TemporaryFile(TemporaryFile&& other) noexcept
      : directory_(std::move(other.directory_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_),
        buffer_(std::move(other.buffer_)) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;

  Result<void> Open(const std::string& directory) {
    directory_ = directory;
    descriptor_ = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor_ < 0) {  // some file systems have no files without a name
      std::string name = directory + "/.tlparse-payloads-XXXXXX";
      descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
      if (descriptor_ < 0) return FileError(directory_, errno);
      ::unlink(name.c_str());
    }
    return {};
  }

  Result<void> Append(const Slot& slot) {
    buffer_.push_back(slot);
    ++size_;
    return buffer_.size() == kBufferedSlots ? Flush() : Result<void>();
  }

  Result<void> Flush() {
    const char* data = reinterpret_cast<const char*>(buffer_.data());
    std::size_t rest = buffer_.size() * sizeof(Slot);
    while (rest > 0) {
      const ssize_t written = ::write(descriptor_, data, rest);
      if (written < 0 && errno != EINTR) return FileError(directory_, errno);
      if (written > 0) {
        data += written;
        rest -= static_cast<std::size_t>(written);
      }
    }
    buffer_.clear();
    return {};
  }

  // Fills `slots` with those from the one numbered `first`, which must be flushed. False if the file cannot be read.
  bool Read(std::size_t first, std::span<Slot> slots) const {
    char* to = reinterpret_cast<char*>(slots.data());
    std::size_t rest = slots.size_bytes();
    auto offset = static_cast<off_t>(first * sizeof(Slot));
    while (rest > 0) {
      const ssize_t count = ::pread(descriptor_, to, rest, offset);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      to += count;
      offset += count;
      rest -= static_cast<std::size_t>(count);
    }
    return true;
  }
  Error LastError() const { return FileError(directory_, errno).value(); }

  // Number of slots.
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kBufferedSlots = 2048;

  std::string directory_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
  std::vector<Slot> buffer_;
};

// Immutable slots in a file, ascending by key, without equal ones. They are read, not mapped: pages of a mapping would count as
// memory of this process as long as they are in use.
class SortedRun {
 public:
  // `file` holds at least one slot and is flushed.
  static Result<SortedRun> Make(TemporaryFile file, const Hasher& hash, bool is_existing) {
    SortedRun run(std::move(file), is_existing);
    Reader reader(run);
    for (std::size_t i = 0; i < run.size(); ++i) {
      const Slot* const slot = reader.Next();
      if (slot == nullptr) return tl::unexpected<Error>(run.ReadError());
      run.filter_.Add(hash(slot->key));
      if (i % kBlockSlots == 0) run.block_starts_.push_back(slot->key.high);
    }
    return run;
  }

  // Sets *found and returns true if there is such a key. A block that cannot be read is one without the key: what is in it then
  // is stored once more, which the database refuses; nothing is lost silently.
  bool Find(const Key& key, std::uint64_t hash, Slot* found) const {
    if (!filter_.MayContain(hash)) return false;
    // From the last block that starts below the key's first half: with equal halves (digests may be
    // chosen) the key can stand in any of several blocks, up to the last that does not start above.
    const auto first = std::lower_bound(block_starts_.begin(), block_starts_.end(), key.high);
    const auto last = std::upper_bound(first, block_starts_.end(), key.high);
    const auto end_block = static_cast<std::size_t>(last - block_starts_.begin());
    auto block = static_cast<std::size_t>(first - block_starts_.begin());
    if (block > 0) --block;
    std::array<Slot, kBlockSlots> slots;
    for (; block < end_block; ++block) {
      const std::size_t count = std::min(kBlockSlots, size() - block * kBlockSlots);
      if (!file_.Read(block * kBlockSlots, std::span(slots).first(count))) return false;
      if (slots[count - 1].key < key) continue;
      const Slot* const at = std::lower_bound(slots.data(), slots.data() + count, key,
                                              [](const Slot& slot, const Key& wanted) { return slot.key < wanted; });
      if (at->key != key) return false;
      *found = *at;
      return true;
    }
    return false;
  }

  std::size_t size() const { return file_.size(); }
  bool is_existing() const { return is_existing_; }
  Error ReadError() const { return file_.LastError(); }

  // The slots from the first to the last, some at a time.
  class Reader {
   public:
    explicit Reader(const SortedRun& run) : run_(&run) {}
    // nullptr behind the last one, and if the file cannot be read (is_at_end() tells). Valid until the next call.
    const Slot* Next() {
      if (at_ == buffer_.size() && !Fill()) return nullptr;
      ++position_;
      return &buffer_[at_++];
    }
    bool is_at_end() const { return position_ == run_->size(); }

   private:
    bool Fill() {
      constexpr std::size_t kBufferedSlots = 1024;
      buffer_.resize(std::min(kBufferedSlots, run_->size() - position_));
      at_ = 0;
      if (buffer_.empty() || run_->file_.Read(position_, buffer_)) return !buffer_.empty();
      buffer_.clear();
      return false;
    }
    const SortedRun* run_;
    std::vector<Slot> buffer_;
    std::size_t at_ = 0;
    std::size_t position_ = 0;  // of the next slot in the file
  };

 private:
  static constexpr std::size_t kBlockSlots = 128;  // one page

  SortedRun(TemporaryFile file, bool is_existing) : file_(std::move(file)), is_existing_(is_existing), filter_(file_.size()) {
    block_starts_.reserve(size() / kBlockSlots + 1);
  }

  TemporaryFile file_;
  bool is_existing_;
  BloomFilter filter_;
  std::vector<std::uint64_t> block_starts_;
};

// Open addressing with linear probing; a power of two of slots.
class Table {
 public:
  explicit Table(std::size_t capacity)
      : slots_(static_cast<Slot*>(std::calloc(capacity, sizeof(Slot)))), capacity_(capacity) {
    if (slots_ == nullptr) throw std::bad_alloc();
  }

  // The slot that holds `key`, or the free one where it belongs.
  Slot& Find(const Key& key, std::uint64_t hash) {
    // The upper bits of the hash; the capacity is a power of two.
    std::size_t position = hash >> std::countl_zero(capacity_ - 1);
    for (;; position = (position + 1) & (capacity_ - 1)) {
      Slot& slot = slots_.get()[position];
      if (!slot.is_taken || slot.key == key) return slot;
    }
  }
  void Add(const Slot& slot, std::uint64_t hash) {
    Find(slot.key, hash) = slot;
    ++size_;
  }
  bool is_full() const { return (size_ + 1) * 4 > capacity_ * 3; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  const Slot* begin() const { return slots_.get(); }
  const Slot* end() const { return slots_.get() + capacity_; }

  // The taken slots, ascending by key, in place: the table is good for nothing else afterwards.
  std::span<const Slot> Sort() {
    Slot* const begin = slots_.get();
    Slot* const end = std::partition(begin, begin + capacity_,
                                     [](const Slot& slot) { return slot.is_taken != 0; });
    std::sort(begin, end, [](const Slot& a, const Slot& b) { return a.key < b.key; });
    return {begin, end};
  }

 private:
  struct Free {
    void operator()(Slot* slots) const { std::free(slots); }
  };
  std::unique_ptr<Slot, Free> slots_;  // calloc: large tables cost memory only where they are used
  std::size_t capacity_;
  std::size_t size_ = 0;
};

constexpr std::size_t kMinSlots = 32;

}  // namespace

struct PayloadIndex::State {
  State(std::string directory, std::size_t max_table_bytes)
      : spill_directory(std::move(directory)),
        max_slots(std::bit_floor(std::max(max_table_bytes / sizeof(Slot), kMinSlots))),
        table(std::min<std::size_t>(max_slots, 1024)) {}

  // Makes room for one more entry. On failure nothing has changed.
  Result<void> Grow() {
    if (table.capacity() < max_slots) {
      Table larger(table.capacity() * 2);
      for (const Slot& slot : table) {
        if (slot.is_taken) larger.Add(slot, hash(slot.key));
      }
      table = std::move(larger);
      return {};
    }
    const std::span<const Slot> sorted = table.Sort();
    const Result<void> spilled = Spill(sorted);
    Table empty(table.capacity());
    if (!spilled) {
      for (const Slot& slot : sorted) empty.Add(slot, hash(slot.key));
    }
    table = std::move(empty);
    return spilled;
  }

  Result<void> Spill(std::span<const Slot> sorted) {
    TemporaryFile file;
    RETURN_IF_ERROR(file.Open(spill_directory));
    for (const Slot& slot : sorted) RETURN_IF_ERROR(file.Append(slot));
    return AddRun(std::move(file), false);
  }

  Result<void> AddRun(TemporaryFile file, bool is_existing) {
    RETURN_IF_ERROR(file.Flush());
    if (file.size() == 0) return {};
    ASSIGN_OR_RETURN(SortedRun run, SortedRun::Make(std::move(file), hash, is_existing));
    runs.push_back(std::move(run));
    return {};
  }

  std::string spill_directory;
  std::size_t max_slots;
  Hasher hash;
  Table table;
  std::vector<SortedRun> runs;
  std::size_t size = 0;
  Entry found{};
};

PayloadIndex::PayloadIndex(std::string spill_directory, std::size_t max_table_bytes)
    : state_(std::make_unique<State>(std::move(spill_directory), max_table_bytes)) {}
PayloadIndex::~PayloadIndex() = default;
PayloadIndex::PayloadIndex(PayloadIndex&&) noexcept = default;
PayloadIndex& PayloadIndex::operator=(PayloadIndex&&) noexcept = default;

const PayloadIndex::Entry* PayloadIndex::Find(const Md5Digest& md5) {
  State& state = *state_;
  const Key key = ToKey(md5);
  const std::uint64_t hash = state.hash(key);
  Slot slot = state.table.Find(key, hash);
  const auto holds = [&](const SortedRun& run) { return run.Find(key, hash, &slot); };
  if (!slot.is_taken && std::none_of(state.runs.begin(), state.runs.end(), holds)) return nullptr;
  state.found = ToEntry(slot);
  return &state.found;
}

Result<void> PayloadIndex::Insert(const Entry& entry) {
  State& state = *state_;
  if (state.table.is_full()) RETURN_IF_ERROR(state.Grow());
  const Slot slot = ToSlot(entry);
  state.table.Add(slot, state.hash(slot.key));
  ++state.size;
  return {};
}

Result<void> PayloadIndex::AddSortedRun(std::function<bool(Entry&)> next) {
  State& state = *state_;
  TemporaryFile file;
  RETURN_IF_ERROR(file.Open(state.spill_directory));
  Key previous{};
  for (Entry entry{}; next(entry);) {
    const Slot slot = ToSlot(entry);
    if (file.size() > 0 && slot.key <= previous) {
      return Fail(ErrorCode::kInternal, "the payloads of the database are not in order of hash");
    }
    previous = slot.key;
    RETURN_IF_ERROR(file.Append(slot));
  }
  const std::size_t count = file.size();
  RETURN_IF_ERROR(state.AddRun(std::move(file), true));
  state.size += count;
  return {};
}

std::size_t PayloadIndex::size() const { return state_->size; }

Result<void> PayloadIndex::ForEachSorted(const std::function<void(const Entry&)>& visit) {
  struct Source {
    const Slot* next;
    SortedRun::Reader* reader;
  };
  State& state = *state_;
  const std::span<const Slot> table = state.table.Sort();
  const auto later = [](const Source& a, const Source& b) { return b.next->key < a.next->key; };
  std::priority_queue<Source, std::vector<Source>, decltype(later)> sources(later);
  std::deque<SortedRun::Reader> readers;
  const auto add = [&](SortedRun::Reader& reader) -> Result<void> {
    if (const Slot* const next = reader.Next()) {
      sources.push({next, &reader});
    } else if (!reader.is_at_end()) {
      return FileError(state.spill_directory, errno);
    }
    return {};
  };
  for (const SortedRun& run : state.runs) {
    if (!run.is_existing()) RETURN_IF_ERROR(add(readers.emplace_back(run)));
  }
  auto in_table = table.begin();
  while (in_table != table.end() || !sources.empty()) {
    if (sources.empty() || (in_table != table.end() && in_table->key < sources.top().next->key)) {
      visit(ToEntry(*in_table++));
      continue;
    }
    const Source source = sources.top();
    sources.pop();
    visit(ToEntry(*source.next));
    RETURN_IF_ERROR(add(*source.reader));
  }
  return {};
}

}  // namespace tlparse

#include "base/payload_index.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <queue>
#include <random>
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
    Line& line = LineOf(hash);
    for (unsigned i = 0; i < kBits; ++i) line[WordOf(hash, i)] |= BitOf(hash, i);
  }
  bool MayContain(std::uint64_t hash) {
    const Line& line = LineOf(hash);
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
  Line& LineOf(std::uint64_t hash) { return lines_[((hash >> 32) * lines_.size()) >> 32]; }
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

  int descriptor() const { return descriptor_; }
  // Number of slots.
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kBufferedSlots = 2048;

  std::string directory_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
  std::vector<Slot> buffer_;
};

// Immutable slots in a file, ascending by key, without equal ones.
class SortedRun {
 public:
  // `file` holds at least one slot and is flushed.
  static Result<SortedRun> Map(const TemporaryFile& file, const std::string& directory,
                               const Hasher& hash, bool is_existing) {
    const std::size_t bytes = file.size() * sizeof(Slot);
    void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.descriptor(), 0);
    if (memory == MAP_FAILED) return FileError(directory, errno);
    SortedRun run(static_cast<const Slot*>(memory), file.size(), is_existing);
    for (std::size_t i = 0; i < run.size_; ++i) {
      run.filter_.Add(hash(run.slots_[i].key));
      if (i % kBlockSlots == 0) run.block_starts_.push_back(run.slots_[i].key.high);
    }
    ::madvise(memory, bytes, MADV_RANDOM);
    return run;
  }
  ~SortedRun() {
    if (slots_ != nullptr) ::munmap(const_cast<Slot*>(slots_), size_ * sizeof(Slot));
  }
  SortedRun(SortedRun&& other) noexcept
      : slots_(std::exchange(other.slots_, nullptr)),
        size_(other.size_),
        is_existing_(other.is_existing_),
        filter_(std::move(other.filter_)),
        block_starts_(std::move(other.block_starts_)) {}
  SortedRun& operator=(SortedRun&&) = delete;

  const Slot* Find(const Key& key, std::uint64_t hash) {
    if (!filter_.MayContain(hash)) return nullptr;
    // From the last block that starts below the key's first half: with equal halves (digests may be
    // chosen) the key can stand in any of several blocks, up to the last that does not start above.
    const auto first = std::lower_bound(block_starts_.begin(), block_starts_.end(), key.high);
    const auto last = std::upper_bound(first, block_starts_.end(), key.high);
    const auto block = static_cast<std::size_t>(first - block_starts_.begin());
    const auto end_block = static_cast<std::size_t>(last - block_starts_.begin());
    const Slot* const begin = slots_ + (block == 0 ? 0 : block - 1) * kBlockSlots;
    const Slot* const end = slots_ + std::min(end_block * kBlockSlots, size_);
    const Slot* const found = std::lower_bound(
        begin, end, key, [](const Slot& slot, const Key& wanted) { return slot.key < wanted; });
    return found != end && found->key == key ? found : nullptr;
  }

  const Slot* begin() const { return slots_; }
  const Slot* end() const { return slots_ + size_; }
  bool is_existing() const { return is_existing_; }

 private:
  static constexpr std::size_t kBlockSlots = 128;  // one page

  SortedRun(const Slot* slots, std::size_t size, bool is_existing)
      : slots_(slots), size_(size), is_existing_(is_existing), filter_(size) {
    block_starts_.reserve(size / kBlockSlots + 1);
  }

  const Slot* slots_;
  std::size_t size_;
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

  // The taken slots, ascending by key.
  std::vector<const Slot*> Sorted() const {
    // The first half of the key beside the pointer saves most visits to the slot.
    std::vector<std::pair<std::uint64_t, const Slot*>> order;
    order.reserve(size_);
    for (const Slot& slot : *this) {
      if (slot.is_taken) order.emplace_back(slot.key.high, &slot);
    }
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second->key.low < b.second->key.low;
    });
    std::vector<const Slot*> sorted;
    sorted.reserve(size_);
    for (const auto& [high, slot] : order) sorted.push_back(slot);
    return sorted;
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
    TemporaryFile file;
    RETURN_IF_ERROR(file.Open(spill_directory));
    for (const Slot* slot : table.Sorted()) RETURN_IF_ERROR(file.Append(*slot));
    RETURN_IF_ERROR(AddRun(file, false));
    table = Table(table.capacity());
    return {};
  }

  Result<void> AddRun(TemporaryFile& file, bool is_existing) {
    RETURN_IF_ERROR(file.Flush());
    if (file.size() == 0) return {};
    ASSIGN_OR_RETURN(SortedRun run, SortedRun::Map(file, spill_directory, hash, is_existing));
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
  const Slot* slot = &state.table.Find(key, hash);
  if (!slot->is_taken) {
    slot = nullptr;
    for (SortedRun& run : state.runs) {
      slot = run.Find(key, hash);
      if (slot != nullptr) break;
    }
    if (slot == nullptr) return nullptr;
  }
  state.found = ToEntry(*slot);
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
  RETURN_IF_ERROR(state.AddRun(file, true));
  state.size += file.size();
  return {};
}

std::size_t PayloadIndex::size() const { return state_->size; }

Result<void> PayloadIndex::ForEachSorted(const std::function<void(const Entry&)>& visit) {
  struct Source {
    const Slot* next;
    const Slot* end;
  };
  State& state = *state_;
  const std::vector<const Slot*> table = state.table.Sorted();
  const auto later = [](const Source& a, const Source& b) { return b.next->key < a.next->key; };
  std::priority_queue<Source, std::vector<Source>, decltype(later)> sources(later);
  for (const SortedRun& run : state.runs) {
    if (!run.is_existing()) sources.push({run.begin(), run.end()});
  }
  auto in_table = table.begin();
  while (in_table != table.end() || !sources.empty()) {
    if (sources.empty() ||
        (in_table != table.end() && (*in_table)->key < sources.top().next->key)) {
      visit(ToEntry(**in_table++));
      continue;
    }
    Source source = sources.top();
    sources.pop();
    visit(ToEntry(*source.next++));
    if (source.next != source.end) sources.push(source);
  }
  return {};
}

}  // namespace tlparse

#include "log/payload_index.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "log/payload_run.h"

namespace tlparse {
namespace {

using payload_run::Hasher;
using payload_run::Key;
using payload_run::Slot;
using payload_run::SortedRun;
using payload_run::TemporaryFile;
using payload_run::ToEntry;
using payload_run::ToKey;
using payload_run::ToSlot;

// Open addressing with linear probing; a power of two of slots.
class Table {
 public:
  explicit Table(std::size_t capacity)
      : slots_(static_cast<Slot*>(std::calloc(capacity, sizeof(Slot)))), capacity_(capacity) {
    if (slots_ == nullptr) throw std::bad_alloc();
  }

  // The slot that holds `key`, or the free one where it belongs.
  const Slot& Find(const Key& key, std::uint64_t hash) const {
    return slots_.get()[PositionOf(key, hash)];
  }
  void Add(const Slot& slot, std::uint64_t hash) {
    slots_.get()[PositionOf(slot.key, hash)] = slot;
    ++size_;
  }
  bool is_full() const { return (size_ + 1) * 4 > capacity_ * 3; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  const Slot* begin() const { return slots_.get(); }
  const Slot* end() const { return slots_.get() + capacity_; }

  // The taken slots, ascending by key, in place: the table is good for nothing but Clear()
  // afterwards.
  std::span<const Slot> Sort() {
    Slot* const begin = slots_.get();
    Slot* const end = std::partition(begin, begin + capacity_,
                                     [](const Slot& slot) { return slot.is_taken != 0; });
    std::sort(begin, end, [](const Slot& a, const Slot& b) { return a.key < b.key; });
    return {begin, end};
  }
  void Clear() {
    std::memset(static_cast<void*>(slots_.get()), 0, capacity_ * sizeof(Slot));
    size_ = 0;
  }

 private:
  std::size_t PositionOf(const Key& key, std::uint64_t hash) const {
    // The upper bits of the hash; the capacity is a power of two.
    std::size_t position = hash >> std::countl_zero(capacity_ - 1);
    for (;; position = (position + 1) & (capacity_ - 1)) {
      const Slot& slot = slots_.get()[position];
      if (!slot.is_taken || slot.key == key) return position;
    }
  }
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
    if (spilled) {
      table.Clear();
      return {};
    }
    Table again(table.capacity());
    for (const Slot& slot : sorted) again.Add(slot, hash(slot.key));
    table = std::move(again);
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
};

PayloadIndex::PayloadIndex(std::string spill_directory, std::size_t max_table_bytes)
    : state_(std::make_unique<State>(std::move(spill_directory), max_table_bytes)) {}
PayloadIndex::~PayloadIndex() = default;
PayloadIndex::PayloadIndex(PayloadIndex&&) noexcept = default;
PayloadIndex& PayloadIndex::operator=(PayloadIndex&&) noexcept = default;

std::optional<PayloadIndex::Entry> PayloadIndex::Find(const Md5Digest& md5) const {
  const State& state = *state_;
  const Key key = ToKey(md5);
  const std::uint64_t hash = state.hash(key);
  Slot slot = state.table.Find(key, hash);
  const auto holds = [&](const SortedRun& run) { return run.Find(key, hash, &slot); };
  if (!slot.is_taken && std::none_of(state.runs.begin(), state.runs.end(), holds))
    return std::nullopt;
  return ToEntry(slot);
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
      return tl::unexpected<Error>(reader.ReadError());
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
